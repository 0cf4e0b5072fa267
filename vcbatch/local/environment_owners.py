"""Records to which job each submitted environment belongs, and removes it with that job."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from vcbatch.api.loose import part
from vcbatch.api.names import ENVIRONMENT
from vcbatch.api.resources import JOBS
from vcbatch.hosting.health import Health
from vcbatch.hosting.supervise import Background
from vcbatch.interfaces.api import Api
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.local.environments import Environments
from vcbatch.local.kubelet.informer import Informer

Json = dict[str, Any]
log = logging.getLogger(__name__)


def environment_of(item: Json) -> str:
    """The id of the environment that a job or a pod names; "" without one. The object may have any shape."""
    given = part(part(item, "metadata"), "annotations").get(ENVIRONMENT)
    return given if isinstance(given, str) else ""


class EnvironmentOwners:
    """Follows the jobs of a server. Of each job it keeps the metadata only."""

    def __init__(
        self, api: Api, environments: Environments, *, clock: Clock, random: Random, health: Health | None = None
    ) -> None:
        self._environments = environments
        self._background = Background(clock=clock, random=random, health=health)
        self._jobs = Informer(
            api=api, clock=clock, random=random, resource=JOBS, changed=self._on_job, trimmed=_metadata_only
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set, or cancelled."""
        try:
            self._background.keep("environments: jobs", self._jobs.run)
            self._background.finish("environments: without a job", self._clear)
            await stop.wait()
        finally:
            await self._background.close()

    def _on_job(self, old: Json | None, new: Json | None) -> None:
        if new is not None:
            if number := environment_of(new):
                metadata = new["metadata"]
                self._environments.claim(number, namespace=metadata["namespace"], job=metadata["uid"])
        elif old is not None and (number := environment_of(old)):
            self._environments.release(number, job=old["metadata"]["uid"])

    async def _clear(self) -> None:
        """Remove the environments of jobs that were lost while the server didn't run."""
        await self._jobs.synced.wait()
        self._environments.retain(self._jobs.objects.keys())


def _metadata_only(job: Json) -> Json:
    metadata = job["metadata"]
    kept = {key: metadata[key] for key in ("name", "namespace", "uid", "resourceVersion") if key in metadata}
    number = environment_of(job)
    return {"metadata": {**kept, "annotations": {ENVIRONMENT: number}} if number else kept}
