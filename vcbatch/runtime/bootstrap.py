"""What has to exist before the first job: the root queue and the default one, as Volcano's scheduler makes them."""

from __future__ import annotations

import logging

from vcbatch.api.resources import QUEUES
from vcbatch.runtime.backoff import Backoff
from vcbatch.seams.api import Api, ApiError, Json
from vcbatch.seams.clock import Clock
from vcbatch.seams.random import Random

log = logging.getLogger(__name__)

ROOT_QUEUE = "root"
_RETRY = Backoff(initial=0.1, limit=5.0)


def _queue(name: str, *, reclaimable: bool, parent: str | None) -> Json:
    spec: Json = {"weight": 1, "reclaimable": reclaimable}
    if parent is not None:
        spec["parent"] = parent
    return {
        "apiVersion": QUEUES.api_version,
        "kind": QUEUES.kind,
        "metadata": {"name": name},
        "spec": spec,
    }


async def ensure_queues(api: Api, *, clock: Clock, random: Random, default_queue: str = "default") -> None:
    """Make the queues that don't exist. Tries until the server takes them: its admission may not be up yet."""
    for body in (
        _queue(ROOT_QUEUE, reclaimable=False, parent=None),
        _queue(default_queue, reclaimable=True, parent=ROOT_QUEUE),
    ):
        failures = 0
        while True:
            try:
                await api.create(QUEUES, body)
            except ApiError as error:
                if error.already_exists:
                    break
                failures += 1
                log.warning("queue %s can't be made yet: %s", body["metadata"]["name"], error.message)
                await clock.sleep(_RETRY.delay(failures, random))
            else:
                break
