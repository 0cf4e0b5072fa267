"""The PersistentVolumeClaims that jobs mount, as the job controller sees them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from vcbatch.api import names
from vcbatch.api.job import Job
from vcbatch.api.loose import listed, part
from vcbatch.api.pod_references import references_of
from vcbatch.api.resources import PERSISTENTVOLUMECLAIMS
from vcbatch.api.storage import Claim
from vcbatch.core.job import claims_to_check
from vcbatch.interfaces.api import Api, Json, get_or_none
from vcbatch.runtime.caches.cache import Cache


class Claims:
    """Claims from a watched cache, read from the server where the cache may be out of date."""

    def __init__(self, api: Api, cache: Cache[Claim]) -> None:
        self._api = api
        self.cache = cache

    def of(self, namespace: str, wanted: Iterable[str]) -> dict[str, Claim]:
        """Those of `wanted` that exist."""
        found = {name: self.cache.by_key(f"{namespace}/{name}") for name in wanted}
        return {name: claim for name, claim in found.items() if claim is not None}

    async def verify(self, job: Job) -> None:
        """Read the claims that should exist and aren't in the cache: the watch may not have delivered one that was
        created just before the job. Raises `ApiError` where the server doesn't answer."""
        if not job.spec.volumes:
            return
        for name in claims_to_check(job):
            if self.cache.by_key(f"{job.namespace}/{name}") is None:
                claim = await get_or_none(
                    self._api, PERSISTENTVOLUMECLAIMS, name, namespace=job.namespace, model=self.cache.model
                )
                if claim is not None:
                    self.cache.put(claim)


def claims_of_job(job: Json) -> Iterator[str]:
    """The keys of the claims of a stored job: those that it names, those whose names are derived from its name, and
    those that its templates name."""
    metadata, volumes = job["metadata"], (job.get("spec") or {}).get("volumes")
    for position, volume in enumerate(cast("list[Any]", volumes) if isinstance(volumes, list) else ()):
        named = cast(Mapping[str, Any], volume).get("volumeClaimName") if isinstance(volume, dict) else None
        claim = named or names.claim_name(metadata["name"], metadata["uid"], position)
        yield f"{metadata.get('namespace', '')}/{claim}"
    for name in sorted(_named_by_templates(part(job, "spec"))):
        yield f"{metadata.get('namespace', '')}/{name}"


def _named_by_templates(spec: Json) -> set[str]:
    tasks = (cast(Json, task) for task in listed(spec, "tasks") if isinstance(task, dict))
    found = (one for task in tasks for one in references_of(part(part(task, "template"), "spec")))
    return {one.name for one in found if one.resource == PERSISTENTVOLUMECLAIMS}
