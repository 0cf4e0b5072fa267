"""The scheduler as a running program: deltas in as they come, a cycle as soon as one matters, its results behind it.

A cycle costs what changed, so there is no reason to wait for a tick: it starts a moment after a change, long enough
for a gang's pods to arrive together.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from vcbatch.api.dra import ResourceClaim
from vcbatch.api.node import Node
from vcbatch.api.pod import Pod
from vcbatch.api.resources import (
    NODE_USAGES,
    NODES,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    PODGROUPS,
    PODS,
    QUEUES,
    RESOURCECLAIMS,
    Resource,
)
from vcbatch.api.scheduling import PodGroupView, QueueView
from vcbatch.api.storage import Claim, PersistentVolume
from vcbatch.api.usage import NodeUsage
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
from vcbatch.runtime.scheduling.announcer import Announcer
from vcbatch.runtime.scheduling.binder import Binder
from vcbatch.runtime.scheduling.claim_binder import ClaimBinder
from vcbatch.runtime.scheduling.config_maps import ConfigMaps
from vcbatch.runtime.scheduling.device_binder import DeviceBinder
from vcbatch.runtime.scheduling.held_back import HeldBack
from vcbatch.runtime.scheduling.plugin_trouble import PluginTrouble
from vcbatch.runtime.scheduling.plugin_watch import PluginWatch
from vcbatch.runtime.scheduling.usage_source import UsageSource
from vcbatch.runtime.scheduling.volume_binder import VolumeBinder
from vcbatch.runtime.scheduling.writes import SchedulerWrites
from vcbatch.runtime.supervise import Part
from vcbatch.scheduler import Policy, Scheduler
from vcbatch.scheduler.picture.reads import READS
from vcbatch.scheduler.result import Bind
from vcbatch.seams.api import Api
from vcbatch.seams.clock import Clock
from vcbatch.seams.random import Random

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopConfig:
    """Times in seconds. `period` is how long a cycle may be put off at most; `settle` how long changes that come in a
    burst are waited for; `rest` the share of a cycle's own time that is left to everything else after it. After `burst`
    cycles in a row there is one every `beat`: what goes on for long is decided on in heaps."""

    period: float = 1.0
    settle: float = 0.005
    rest: float = 0.5
    burst: int = 16
    beat: float = 0.1


class SchedulerLoop:
    """Feeds one `Scheduler` and carries its decisions out."""

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
    ) -> None:
        """`own` is the scheduler's Lease, on which is said what concerns no gang."""
        self.scheduler = scheduler
        self._clock = clock
        self._config = config or LoopConfig()
        self._meter = meter or NoMeter()
        self._wake = asyncio.Event()
        self._look_again: datetime | None = None
        self._turns = Allowance(burst=self._config.burst, seconds=self._config.beat, now=clock.monotonic())
        pods = informers.follow(PODS, Pod)
        podgroups = informers.follow(PODGROUPS, PodGroupView)
        queues = informers.follow(QUEUES, QueueView)
        claims = informers.follow(PERSISTENTVOLUMECLAIMS, Claim)
        volumes = informers.follow(PERSISTENTVOLUMES, PersistentVolume)
        for read in READS:
            if not read.single:
                cache = informers.follow(read.resource, read.struct, optional=read.optional)
                cache.listen(self._feeder(read.resource))
        self._refusals = HeldBack(clock=clock, told=self._bind_refused)
        self._announcer = Announcer(recorder, clock=clock, pods=pods, podgroups=podgroups)
        self._times = TaskMetrics(self._meter, pods, clock=clock, scheduler_names=scheduler.scheduler_names)
        self._binder = Binder(
            api, clock=clock, random=random, meter=self._meter, bound=self._bound, failed=self._bind_failed
        )
        self._devices = DeviceBinder(api, clock=clock, ready=self._bind, failed=self._bind_failed)
        self._claims = ClaimBinder(
            api,
            informers.follow(RESOURCECLAIMS, ResourceClaim, optional=True),
            clock=clock,
            random=random,
            ready=self._devices.submit,
            failed=self._bind_failed,
            waits=self._announcer.waits,
        )
        self._config_maps = ConfigMaps(api, scheduler, clock=clock, wake=self._wake)
        self._volumes = VolumeBinder(
            api,
            claims,
            volumes,
            clock=clock,
            ready=self._claims.submit,
            failed=self._bind_failed,
            reaches=scheduler.reaches_its_claims,
        )
        self._writes = SchedulerWrites(
            api,
            clock=clock,
            meter=self._meter,
            random=random,
            tell=self._announcer.tell,
            pods=pods,
            podgroups=podgroups,
            queues=queues,
            podgroup_failed=self._podgroup_failed,
            shard_failed=self._shard_failed,
            eviction_failed=self._eviction_failed,
            gate_removal_failed=self._gate_removal_failed,
        )
        self._informers = informers
        self._trouble = PluginTrouble(recorder, own, meter=self._meter)
        self._watch = PluginWatch(self._trouble.slow)
        self._told = CycleMetrics(self._meter, scheduler)
        scheduler.laps = CycleLaps(clock, self._meter)
        self._usage = UsageSource(
            api,
            informers.follow(NODES, Node),
            clock=clock,
            section=scheduler.policy.metrics,
            told=self._measured,
        )

    def use(self, policy: Policy) -> None:
        """Decide by another policy from the next cycle on, which comes at once."""
        self.scheduler.set_policy(policy)
        self._usage.use(policy.metrics)
        self._wake.set()

    def parts(self) -> list[Part]:
        """What has to run, beside the informers."""
        return [
            Part(name="binding pods", run=self._binder.run),
            Part(name="holding back what is refused again", run=self._refusals.run),
            Part(name="binding claims", run=self._volumes.run),
            Part(name="writing claims for devices", run=self._claims.run),
            Part(name="locking nodes", run=self._devices.run),
            Part(name="reading single ConfigMaps", run=self._config_maps.run),
            Part(name="writing the scheduler's results", run=self._writes.run),
            Part(name="telling of plugins that fail", run=self._trouble.run),
            Part(name="measuring the load of nodes", run=self._usage.run),
            # A scheduler whose picture may be broken is not to be trusted with another cycle.
            Part(name="scheduling", run=self.run, restart=False),
        ]

    def _feeder(self, resource: Resource) -> Callable[[Change[Any]], None]:
        def feed(change: Change[Any]) -> None:
            event = "DELETED" if change.new is None else "ADDED" if change.old is None else "MODIFIED"
            self.scheduler.apply(resource, event, change.current)
            self._wake.set()

        return feed

    def _measured(self, event: str, usage: NodeUsage) -> None:
        self.scheduler.apply(NODE_USAGES, event, usage)
        self._wake.set()

    def _bind(self, binds: Iterable[Bind]) -> None:
        prepared = list(binds)
        self._times.prepared(prepared)
        self._binder.submit(prepared)

    def _bound(self, bind: Bind) -> None:
        self._times.bound(bind)
        self._devices.bound(bind.uid)
        self._claims.bound(bind.uid)
        self._announcer.bound(bind)

    def _bind_failed(self, uid: str, error: str) -> None:
        self._devices.refused(uid)
        self._claims.refused(uid)
        self._announcer.failed(uid)
        self._times.failed(uid)
        self._refusals.refused(uid, error)

    def _bind_refused(self, uid: str, error: str) -> None:
        self.scheduler.bind_failed(uid, error)
        self._wake.set()

    def _podgroup_failed(self, uid: str) -> None:
        self.scheduler.podgroup_write_failed(uid)
        self._wake.set()

    def _gate_removal_failed(self, uid: str) -> None:
        self.scheduler.gate_removal_failed(uid)
        self._wake.set()

    def _eviction_failed(self, uid: str, error: str) -> None:
        self.scheduler.eviction_failed(uid, error)
        self._wake.set()

    def _shard_failed(self, uid: str) -> None:
        self.scheduler.shard_write_failed(uid)

    async def run(self) -> None:
        """Cycle until cancelled. Nothing is decided before every cache has its first list."""
        await self._informers.synced()
        await self._config_maps.look()
        self._times.watch()
        while True:
            self._wake.clear()
            due = self._look_again is not None and self._clock.now() >= self._look_again
            if self.scheduler.dirty or due:
                await self._clock.sleep(self._config.settle + self._turns.wait(now=self._clock.monotonic()))
                self._turns.take(now=self._clock.monotonic())
                spent = self.cycle()
                await self._clock.sleep(min(spent * self._config.rest, self._config.period))
            else:
                await self._wait()

    def cycle(self) -> float:
        """One cycle, its results handed on. Returns the seconds it took."""
        started = self._clock.monotonic()
        with self._watch.over(self.scheduler.policy.extensions):
            result = self.scheduler.cycle(self._clock.now())
        spent = self._clock.monotonic() - started
        self._look_again = result.look_again_at
        self._told.of(result, now=self._clock.now(), seconds=spent)
        self._announcer.trying(result.binds)
        self._times.placed(result.binds)
        self._volumes.submit(result.binds)
        self._writes.submit(result)
        self._trouble.failed(result.failures)
        return spent

    async def _wait(self) -> None:
        """Until a change comes, or the time that the last cycle named."""
        if self._look_again is None:
            await self._wake.wait()
            return
        left = max(0.0, (self._look_again - self._clock.now()).total_seconds())
        # In steps: the wall clock may jump, and what it says then counts.
        await pause(self._clock, min(left, max(self._config.period, 0.05)), woken=self._wake)
