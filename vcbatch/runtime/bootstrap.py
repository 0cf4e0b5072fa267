"""Creates the objects that must exist before the first job: the queues that `vcbatch.core.queue.bootstrap` names."""

from __future__ import annotations

import logging

from vcbatch.api.resources import QUEUES
from vcbatch.core.queue import bootstrap
from vcbatch.hosting.backoff import Backoff
from vcbatch.interfaces.api import Api, ApiError
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random

log = logging.getLogger(__name__)

_RETRY = Backoff(initial=0.1, limit=5.0)


async def ensure_queues(api: Api, *, clock: Clock, random: Random) -> None:
    """Create the queues that don't exist. Retries until the server accepts them: its admission webhooks may not be
    ready yet."""
    failures = 0
    while True:
        try:
            existing = {queue["metadata"]["name"] for queue in (await api.list(QUEUES)).items}
            for create in bootstrap(existing).creates:
                await api.create(create.resource, create.body)
        except ApiError as error:
            if not error.already_exists:
                log.warning("the default queues can't be created yet: %s", error.message)
            failures += 1
            await clock.sleep(_RETRY.delay(failures, random))
        else:
            return
