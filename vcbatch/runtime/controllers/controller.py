"""The common part of all controllers: a queue of UIDs, a reconcile that decides and applies, and the handling of
refused writes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from vcbatch.api.model import MalformedObject
from vcbatch.core.machine import Decision
from vcbatch.hosting.supervise import Part
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.apply import Applier, NotAppliedError, StaleError
from vcbatch.runtime.metrics.meter import Meter, NoMeter
from vcbatch.runtime.pacing.workqueue import WorkQueue
from vcbatch.runtime.tracing.tracer import Tracer

log = logging.getLogger(__name__)

# The longest time, in seconds, that a scheduled reconcile is waited for at once. The wait uses the monotonic clock and
# `requeue_at` the wall clock, which may jump; a reconcile that runs too early does no harm.
_LONGEST_WAIT = 300.0
_GOOD = ("done", "gone")
# All workers are busy for this long only where no request of theirs gets an answer.
_STUCK_SECONDS = 120.0

Decide = Callable[[str, datetime], Awaitable[Decision | None]]
"""Returns the decision about the object with that UID; None where it doesn't exist. Raises `MalformedObject` where the
object, or another one that the decision depends on, can't be parsed."""
CarriedOut = Callable[[str, NotAppliedError | None], None]
"""Called after each attempt to apply a decision: with None if all of it was applied, else with the part that was
refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerConfig:
    """`workers` is the number of objects that are reconciled concurrently."""

    name: str
    workers: int = 16


class Controller:
    """Reconciles at most one object per UID at a time, again after a failure, and again when the decision requests
    it."""

    def __init__(
        self,
        config: ControllerConfig,
        decide: Decide,
        applier: Applier,
        *,
        clock: Clock,
        random: Random,
        meter: Meter | None = None,
        carried_out: CarriedOut | None = None,
        yields: Callable[[str], bool] | None = None,
    ) -> None:
        """`yields` returns whether the object with that UID lets others be reconciled first."""
        self.name = config.name
        self.queue: WorkQueue[str] = WorkQueue(clock=clock, random=random, yields=yields)
        self._workers = config.workers
        self._decide = decide
        self._applier = applier
        self._clock = clock
        self._meter = meter or NoMeter()
        self._carried_out = carried_out
        self.tracer: Tracer | None = None
        """Gets each reconcile as a span."""

    def part(self) -> Part:
        """The background task that reconciles the objects."""
        return Part(name=self.name, run=lambda: self.queue.run(self.reconcile, workers=self._workers))

    def error(self) -> str:
        """Why objects wait and none is reconciled, "" otherwise."""
        seconds = self.queue.waiting_for()
        return f"{self.name}: {len(self.queue)} objects wait for {seconds:.0f}s" if seconds > _STUCK_SECONDS else ""

    async def reconcile(self, uid: str) -> bool:
        """Reconcile once; returns False if the object has to be retried later."""
        started = self._clock.monotonic()
        began = self._clock.now() if self.tracer is not None else None
        result = "error"
        try:
            result = await self._reconcile(uid)
        except asyncio.CancelledError:
            result = ""
            raise
        finally:
            if result:
                self._count(result, self._clock.monotonic() - started)
                self._trace(uid, result, began)
        return result in _GOOD

    def _count(self, result: str, seconds: float) -> None:
        self._meter.count("reconcile", controller=self.name, result=result)
        self._meter.duration("reconcile_duration_seconds", seconds, controller=self.name)
        self._meter.gauge("workqueue_depth", len(self.queue), controller=self.name)
        if result not in _GOOD:
            self._meter.count("workqueue_retries", controller=self.name)

    def _trace(self, uid: str, result: str, began: datetime | None) -> None:
        if self.tracer is not None and began is not None:
            attributes = {"vcbatch.controller": self.name, "vcbatch.result": result, "k8s.object.uid": uid}
            self.tracer.record("reconcile", begin=began, end=self._clock.now(), attributes=attributes)

    async def _reconcile(self, uid: str) -> str:
        try:
            decision = await self._decide(uid, self._clock.now())
        except MalformedObject as error:
            # No decision is possible until the object is changed, and that causes an event.
            log.warning(
                "the objects of a decision can't be read: %s", error, extra={"controller": self.name, "uid": uid}
            )
            decision = Decision()
        if decision is None:
            self.queue.forget(uid)
            return "gone"
        try:
            await self._applier.carry_out(decision)
        except StaleError as stale:
            log.debug("a decision was stale: %s", stale, extra={"controller": self.name, "uid": uid})
            return "stale"
        except NotAppliedError as error:
            log.warning("%s", error, extra={"controller": self.name, "uid": uid, "code": error.error.code})
            if self._carried_out is not None:
                self._carried_out(uid, error)
            return "refused"
        if self._carried_out is not None:
            self._carried_out(uid, None)
        if decision.requeue_at is not None:
            wait = (decision.requeue_at - self._clock.now()).total_seconds()
            self.queue.add_after(uid, min(max(wait, 0.001), _LONGEST_WAIT))
        return "done"
