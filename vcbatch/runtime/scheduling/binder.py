"""Binds pods to the chosen nodes: many concurrently, each with a known result."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable

from vcbatch.api.pod import Pod
from vcbatch.api.resources import PODS
from vcbatch.hosting.backoff import Backoff
from vcbatch.interfaces.api import Api, ApiError
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.metrics.meter import Meter
from vcbatch.runtime.pacing.at_once import BINDS
from vcbatch.scheduler.model.result import Bind

log = logging.getLogger(__name__)

_RETRY = Backoff(initial=0.05, limit=2.0)
_TRIES = 5


class Binder:
    """Executes binds in the order given, `concurrency` at a time.

    `bound(bind)` is called for each pod that is on its node, `failed(uid, error)` for a bind that was refused for good;
    that pod waits to be placed again. If the response to a bind was lost, the pod is read to find the result.
    """

    def __init__(
        self,
        api: Api,
        *,
        clock: Clock,
        random: Random,
        meter: Meter,
        bound: Callable[[Bind], None],
        failed: Callable[[str, str], None],
        concurrency: int = BINDS,
    ) -> None:
        self._api = api
        self._clock = clock
        self._random = random
        self._meter = meter
        self._bound = bound
        self._failed = failed
        self._concurrency = concurrency
        self._queue: deque[Bind] = deque()
        self._work = asyncio.Event()

    def submit(self, binds: Iterable[Bind]) -> None:
        self._queue.extend(binds)
        self._work.set()

    async def run(self) -> None:
        """Bind pods until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._concurrency):
                group.create_task(self._serve())

    async def _serve(self) -> None:
        while True:
            while not self._queue:
                self._work.clear()
                await self._work.wait()
            bind = self._queue.popleft()
            started = self._clock.monotonic()
            try:
                error = await self._bind(bind)
            except Exception as raised:  # a bind without a result would hold its node's resources for ever
                error = f"{type(raised).__name__}: {raised}"
            self._meter.count("binds", result="bound" if error is None else "refused")
            spent = self._clock.monotonic() - started
            self._meter.duration("scheduling_stage_duration_milliseconds", spent * 1000, stage="Bind")
            if error is None:
                self._bound(bind)
            else:
                log.warning(
                    "binding %s/%s to %s failed: %s", bind.namespace, bind.name, bind.node, error,
                    extra={"uid": bind.uid},
                )  # fmt: skip
                self._failed(bind.uid, error)

    async def _bind(self, bind: Bind) -> str | None:
        """None once the pod is bound, else the reason of the failure."""
        error: ApiError | None = None
        for attempt in range(1, _TRIES + 1):
            try:
                await self._api.bind(
                    namespace=bind.namespace, name=bind.name, uid=bind.uid, node=bind.node, annotations=bind.annotations
                )
            except ApiError as refused:
                error = refused
            else:
                return None
            if (error.code == 0 or error.conflict) and await self._is_bound(bind):
                return None
            if not error.transient:
                return error.message
            await self._clock.sleep(_RETRY.delay(attempt, self._random))
        return error.message if error is not None else None

    async def _is_bound(self, bind: Bind) -> bool:
        """Whether this pod (by UID) is on this node now; False where the server doesn't answer."""
        try:
            pod = await self._api.get(PODS, bind.name, namespace=bind.namespace, model=Pod)
        except ApiError:
            return False
        return pod.metadata.uid == bind.uid and pod.spec.node_name == bind.node
