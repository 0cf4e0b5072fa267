"""The scheduler as a running program: it receives changes as they come, runs a cycle as soon as one matters, and writes
the results in the background.

The cost of a cycle depends on what changed, so there is no fixed tick: it starts a moment after a change, long enough
for a gang's pods to arrive together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ParamSpec

from vcbatch.api.node import Node
from vcbatch.api.pod import Pod
from vcbatch.api.resources import NODE_USAGES, NODES, PODGROUPS, PODS, QUEUES, Resource
from vcbatch.api.scheduling import PodGroupView, QueueView
from vcbatch.api.usage import NodeUsage
from vcbatch.hosting.supervise import Part
from vcbatch.interfaces.api import Api
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.caches.cache import Change
from vcbatch.runtime.caches.informers import Informers
from vcbatch.runtime.events.own_object import OwnObject
from vcbatch.runtime.events.recorder import Recorder
from vcbatch.runtime.metrics.cycles import CycleMetrics
from vcbatch.runtime.metrics.laps import CycleLaps
from vcbatch.runtime.metrics.meter import Meter, NoMeter
from vcbatch.runtime.metrics.tasks import TaskMetrics
from vcbatch.runtime.pacing.allowance import Allowance
from vcbatch.runtime.pacing.pause import pause
from vcbatch.runtime.pacing.timed_event import TimedEvent
from vcbatch.runtime.scheduling.announcer import Announcer
from vcbatch.runtime.scheduling.bind_path import BindPath
from vcbatch.runtime.scheduling.config_maps import ConfigMaps
from vcbatch.runtime.scheduling.held_back import HeldBack
from vcbatch.runtime.scheduling.plugin_trouble import PluginTrouble
from vcbatch.runtime.scheduling.plugin_watch import PluginWatch
from vcbatch.runtime.scheduling.usage_source import UsageSource
from vcbatch.runtime.scheduling.writes import SchedulerWrites
from vcbatch.runtime.tracing.cycles import CycleSpans
from vcbatch.runtime.tracing.gangs import GangSpans
from vcbatch.runtime.tracing.tracer import Tracer
from vcbatch.scheduler import Policy, Scheduler
from vcbatch.scheduler.model.reads import READS
from vcbatch.scheduler.model.result import Bind

P = ParamSpec("P")

_OVERDUE_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopConfig:
    """Times in seconds. `period` is the longest delay of a cycle; `settle` the time that changes in a burst are waited
    for; `rest` the share of a cycle's duration that is left to other work after it. After `burst` cycles in a row there
    is one every `beat`, so that continuous changes are decided in batches."""

    period: float = 1.0
    settle: float = 0.005
    rest: float = 0.5
    burst: int = 16
    beat: float = 0.1


class SchedulerLoop:
    """Feeds one `Scheduler` with changes and applies its decisions."""

    def __init__(
        self,
        api: Api,
        scheduler: Scheduler,
        informers: Informers,
        recorder: Recorder,
        *,
        clock: Clock,
        random: Random,
        config: LoopConfig | None = None,
        meter: Meter | None = None,
        own: OwnObject | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        """`own` is the scheduler's Lease, for events that concern no gang. Cycles and the progress of gangs are
        recorded by `tracer`."""
        self.scheduler = scheduler
        self._clock = clock
        self._config = config or LoopConfig()
        self._meter = meter or NoMeter()
        self._wake = TimedEvent(clock)
        self._requeue_at: datetime | None = None
        self._due = False
        self._turns = Allowance(burst=self._config.burst, seconds=self._config.beat, now=clock.monotonic())
        pods = informers.follow(PODS, Pod)
        podgroups = informers.follow(PODGROUPS, PodGroupView)
        queues = informers.follow(QUEUES, QueueView)
        for read in READS:
            if not read.single:
                cache = informers.follow(read.resource, read.struct, optional=read.optional)
                cache.listen(self._feeder(read.resource))
        self._refusals = HeldBack(clock=clock, failed=self._waking(scheduler.bind_failed))
        self._announcer = Announcer(recorder, clock=clock, pods=pods, podgroups=podgroups)
        self._times = TaskMetrics(self._meter, pods, clock=clock, scheduler_names=scheduler.scheduler_names)
        self._binds = BindPath(
            api,
            informers,
            clock=clock,
            random=random,
            meter=self._meter,
            reaches=scheduler.reaches_its_claims,
            waits=self._announcer.waits,
            prepared=self._times.prepared,
            bound=self._bound,
            failed=self._bind_failed,
            places=scheduler.places,
        )
        self._config_maps = ConfigMaps(api, scheduler, clock=clock, wake=self._wake)
        self._writes = SchedulerWrites(
            api,
            clock=clock,
            meter=self._meter,
            random=random,
            report=self._announcer.report,
            pods=pods,
            podgroups=podgroups,
            queues=queues,
            podgroup_failed=self._waking(scheduler.podgroup_write_failed),
            shard_failed=scheduler.shard_write_failed,
            eviction_failed=self._waking(scheduler.eviction_failed),
            gate_removal_failed=self._waking(scheduler.gate_removal_failed),
        )
        self._informers = informers
        self._trouble = PluginTrouble(recorder, own, meter=self._meter)
        self._watch = PluginWatch(self._trouble.slow)
        self._cycle_metrics = CycleMetrics(self._meter, scheduler)
        laps = CycleLaps(clock, self._meter)
        self._cycle_spans = CycleSpans(tracer, laps, clock=clock) if tracer is not None else None
        self._gang_spans = GangSpans(tracer, podgroups, clock=clock) if tracer is not None else None
        scheduler.laps = self._cycle_spans or laps
        self._usage = UsageSource(
            api,
            informers.follow(NODES, Node),
            clock=clock,
            section=scheduler.policy.metrics,
            measured=self._measured,
        )

    def use(self, policy: Policy) -> None:
        """Use another scheduler configuration from the next cycle on, which starts at once."""
        self.scheduler.set_policy(policy)
        self._usage.use(policy.metrics)
        self._wake.set()

    def parts(self) -> list[Part]:
        """The background tasks, besides the informers."""
        return [
            *self._binds.parts(),
            Part(name="holding back what is refused again", run=self._refusals.run),
            Part(name="reading single ConfigMaps", run=self._config_maps.run),
            Part(name="writing the scheduler's results", run=self._writes.run),
            Part(name="telling of plugins that fail", run=self._trouble.run),
            Part(name="measuring the load of nodes", run=self._usage.run),
            # A scheduler whose snapshot may be inconsistent must not run another cycle.
            Part(name="scheduling", run=self.run, restart=False),
        ]

    def error(self) -> str:
        """Why a change is pending and no cycle runs, "" otherwise."""
        seconds = self._wake.set_for()
        return f"a cycle has been due for {seconds:.0f}s" if seconds > _OVERDUE_SECONDS else ""

    def _feeder(self, resource: Resource) -> Callable[[Change[Any]], None]:
        def feed(change: Change[Any]) -> None:
            event = "DELETED" if change.new is None else "ADDED" if change.old is None else "MODIFIED"
            self.scheduler.apply(resource, event, change.current)
            self._wake.set()
            if not self._due and self.scheduler.dirty:
                self._note_due()

        return feed

    def _note_due(self) -> None:
        """Export that a cycle is due since now."""
        self._due = True
        self._meter.gauge("cycle_due_timestamp_seconds", self._clock.now().timestamp())

    def _measured(self, event: str, usage: NodeUsage) -> None:
        self.scheduler.apply(NODE_USAGES, event, usage)
        self._wake.set()

    def _waking(self, report: Callable[P, None]) -> Callable[P, None]:
        """Wrap `report`: pass the change to the scheduler, and start a cycle."""

        def waking(*args: P.args, **kwargs: P.kwargs) -> None:
            report(*args, **kwargs)
            self._wake.set()

        return waking

    def _bound(self, bind: Bind) -> None:
        self._times.bound(bind)
        self._announcer.bound(bind)

    def _bind_failed(self, uid: str, error: str) -> None:
        self._announcer.failed(uid)
        self._times.failed(uid)
        self._refusals.refused(uid, error)

    async def run(self) -> None:
        """Run cycles until cancelled. Nothing is decided before every cache has its first list."""
        await self._informers.synced()
        await self._config_maps.refresh()
        self._times.watch()
        if self._gang_spans is not None:
            self._gang_spans.watch()
        while True:
            self._wake.clear()
            due = self._requeue_at is not None and self._clock.now() >= self._requeue_at
            if self.scheduler.dirty or due:
                await self._clock.sleep(self._config.settle + self._turns.wait(now=self._clock.monotonic()))
                self._turns.take(now=self._clock.monotonic())
                spent = self.cycle()
                await self._clock.sleep(min(spent * self._config.rest, self._config.period))
            else:
                await self._wait()

    def cycle(self) -> float:
        """Run one cycle and pass its results on. Returns the seconds it took."""
        started = self._clock.monotonic()
        if not self._due:
            self._note_due()
        with self._watch.over(self.scheduler.policy.extensions):
            result = self.scheduler.cycle(self._clock.now())
        spent = self._clock.monotonic() - started
        self._requeue_at = result.requeue_at
        self._due = False
        if self._cycle_spans is not None and self._gang_spans is not None:
            self._cycle_spans.of(result)
            self._gang_spans.of(result.figures)
        self._cycle_metrics.of(result, now=self._clock.now(), seconds=spent)
        self._announcer.trying(result.binds)
        self._times.placed(result.binds)
        self._binds.submit(result.binds)
        self._writes.submit(result)
        self._trouble.failed(result.failures)
        return spent

    async def _wait(self) -> None:
        """Wait until a change arrives, or until the time that the last cycle returned."""
        if self._requeue_at is None:
            await self._wake.wait()
            return
        left = max(0.0, (self._requeue_at - self._clock.now()).total_seconds())
        # In steps: the wall clock may jump, and its new time counts.
        await pause(self._clock, min(left, max(self._config.period, 0.05)), woken=self._wake)
