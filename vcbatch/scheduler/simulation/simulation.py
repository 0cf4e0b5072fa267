"""Runs cycles on objects that change by their decisions."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import msgspec

from vcbatch.api.names import DEFAULT_SCHEDULER, GROUP_NAME
from vcbatch.api.pod import Pod, PodCondition, PodPhase
from vcbatch.api.quota import Quota
from vcbatch.api.reasons import PodConditionType
from vcbatch.api.resources import (
    PERSISTENTVOLUMECLAIMS,
    PODDISRUPTIONBUDGETS,
    PODGROUPS,
    PODS,
    RESOURCEQUOTAS,
    Resource,
)
from vcbatch.api.scheduling import PodGroupStatusView, PodGroupView
from vcbatch.api.storage import Claim, ClaimPhase
from vcbatch.scheduler.framework.policy import Policy
from vcbatch.scheduler.model.result import Bind, CycleResult, PodConditionUpdate, PodGroupUpdate
from vcbatch.scheduler.model.share import WHOLE, Share
from vcbatch.scheduler.scheduler import Scheduler
from vcbatch.scheduler.simulation.limits import Limits
from vcbatch.scheduler.simulation.outcome import Outcome, Round
from vcbatch.scheduler.simulation.world import World

T = TypeVar("T", bound=msgspec.Struct)

MOMENT = datetime(2026, 6, 1, tzinfo=UTC)
"""The time at which recorded cases are run, so that results don't depend on the day."""
_SCHEDULED = PodConditionType.POD_SCHEDULED.value
PERIOD = timedelta(seconds=1)
"""The time between rounds if the previous round changed something."""


class Simulation:
    """A scheduler, and a cluster that carries its decisions out at once: bound pods run, evicted pods are deleted."""

    def __init__(
        self,
        world: World,
        policy: Policy | None = None,
        *,
        scheduler_names: Collection[str] = (DEFAULT_SCHEDULER,),
        default_queue: str = "default",
        share: Share = WHOLE,
        queue_gates: bool = False,
    ) -> None:
        """The settings are those of `Scheduler`."""
        # No controller creates missing pods here, so they are reported in the first cycle.
        self.scheduler = Scheduler(
            policy,
            scheduler_names=scheduler_names,
            default_queue=default_queue,
            pods_grace=timedelta(0),
            share=share,
            queue_gates=queue_gates,
        )
        self._gangs: dict[str, str] = {}
        """Of all pods that ever existed."""
        self._pods: dict[str, Pod] = {}
        self._groups: dict[str, PodGroupView] = {}
        self._claims: dict[str, Claim] = {}
        for resource, obj in world.objects:
            self._report(resource, "ADDED", obj)
        self._limits = Limits()
        self._limits.begin((obj for _, obj in world.objects), self._pods, self._groups.values())

    def run(self, *, now: datetime = MOMENT, rounds: int = 1) -> Outcome:
        """Run up to `rounds` cycles, fewer if nothing is left to decide. They are `PERIOD` apart; after one that
        changed nothing the next one runs when something is due, as with a running scheduler."""
        done: list[Round] = []
        while True:
            result = self.scheduler.cycle(now)
            done.append(
                Round(
                    at=now,
                    binds=result.binds,
                    evictions=result.evictions,
                    held=result.held,
                    failures=result.failures,
                )
            )
            outcome = self._outcome(done)
            self._happen(result)
            due = now + PERIOD
            if not self.scheduler.dirty:
                if result.requeue_at is None:
                    return outcome
                due = max(due, result.requeue_at)
            if len(done) >= rounds:
                return outcome
            now = due

    def _report(self, resource: Resource, event: str, obj: msgspec.Struct) -> None:
        known: dict[str, Pod] | dict[str, PodGroupView] | dict[str, Claim] | None = None
        match obj:
            case Pod():
                self._pods[obj.metadata.uid] = obj
                self._gangs[obj.metadata.key] = _gang(obj)
                known = self._pods
            case PodGroupView():
                self._groups[obj.metadata.uid] = obj
                known = self._groups
            case Claim():
                self._claims[obj.metadata.uid] = obj
                known = self._claims
            case _:
                pass
        if event == "DELETED" and known is not None and isinstance(obj, (Pod, PodGroupView, Claim)):
            del known[obj.metadata.uid]
        self.scheduler.apply(resource, event, obj)

    # Effects of decisions --------------------------------------------------------------------------------------------

    def _happen(self, result: CycleResult) -> None:
        for eviction in result.evictions:
            self._report(PODS, "DELETED", self._pods[eviction.uid])
        for bind in result.binds:
            self._bound(bind)
        for removal in result.gate_removals:
            pod = self._pods[removal.uid]
            self._report(PODS, "MODIFIED", _changed(pod, spec=_changed(pod.spec, scheduling_gates=None)))
        for condition in result.pod_conditions:
            self._reported(condition)
        for update in result.podgroup_updates:
            self._written(update)
        for limit in self._limits.changed(self._pods, self._groups.values()):
            self._report(RESOURCEQUOTAS if isinstance(limit, Quota) else PODDISRUPTIONBUDGETS, "MODIFIED", limit)

    def _bound(self, bind: Bind) -> None:
        pod = self._pods[bind.uid]
        notes = {**(pod.metadata.annotations or {}), **(bind.annotations or {})}
        run = _changed(
            pod,
            metadata=_changed(pod.metadata, annotations=notes or None),
            spec=_changed(pod.spec, node_name=bind.node),
            status=_changed(pod.status, phase=PodPhase.RUNNING.value),
        )
        for binding in bind.claims:
            claim = self._claims[binding.uid]
            spec = _changed(claim.spec, volume_name=binding.volume or f"pvc-{binding.uid}")
            status = _changed(claim.status, phase=ClaimPhase.BOUND.value)
            self._report(PERSISTENTVOLUMECLAIMS, "MODIFIED", _changed(claim, spec=spec, status=status))
        self._report(PODS, "MODIFIED", run)

    def _reported(self, update: PodConditionUpdate) -> None:
        """Apply a report to the pod: why it is pending, and its nominated node."""
        pod = self._pods[update.uid]
        if pod.spec.node_name:
            return
        kept = [held for held in pod.status.conditions or () if held.type != _SCHEDULED]
        made = PodCondition(type=_SCHEDULED, status="False", reason=update.reason, message=update.message)
        status = _changed(pod.status, conditions=[*kept, made])
        if update.nominated is not None:
            status = _changed(status, nominated_node_name=update.nominated)
        self._report(PODS, "MODIFIED", _changed(pod, status=status))

    def _written(self, update: PodGroupUpdate) -> None:
        group = self._groups[update.uid]
        notes = dict(group.metadata.annotations or {})
        for name, value in (update.annotations or {}).items():
            notes.pop(name, None)
            if value is not None:
                notes[name] = value
        meta = _changed(group.metadata, annotations=notes or None)
        status = msgspec.convert(update.status, PodGroupStatusView)
        self._report(PODGROUPS, "MODIFIED", _changed(group, metadata=meta, status=status))

    # Results ---------------------------------------------------------------------------------------------------------

    def _outcome(self, rounds: Iterable[Round]) -> Outcome:
        groups = {g.metadata.key: g.metadata for g in self._groups.values()}
        done = tuple(rounds)
        phases = {key: self.scheduler.phase(m.namespace, m.name) or "" for key, m in sorted(groups.items())}
        found = {key: self.scheduler.explain(m.namespace, m.name) for key, m in sorted(groups.items())}
        return Outcome(
            rounds=done,
            phases=phases,
            counts={key: self._counts(m.namespace, m.name, done[-1]) for key, m in sorted(groups.items())},
            queues={g.metadata.key: g.spec.queue or self.scheduler.default_queue for g in self._groups.values()},
            reasons={key: why for key, why in found.items() if why is not None},
            minimums={g.metadata.key: g.spec.min_member for g in self._groups.values()},
            gangs={pod: gang for pod, gang in self._gangs.items() if gang in groups},
            strays=dict(sorted(self.scheduler.strays().items())),
        )

    def _counts(self, namespace: str, name: str, last: Round) -> dict[str, int]:
        """The counts with the states of the pods that the cycle held placements for, which end with it."""
        counts = dict(self.scheduler.counts(namespace, name))
        for held in last.held:
            pod = self._pods[held.uid]
            if _gang(pod) == f"{namespace}/{name}":
                counts["Pending"] -= 1
                state = "Pipelined" if held.promised else "Allocated"
                counts[state] = counts.get(state, 0) + 1
        return {state: count for state, count in counts.items() if count}


def simulate(world: World, policy: Policy | None = None, *, now: datetime = MOMENT, rounds: int = 1) -> Outcome:
    """The outcome of a scheduler with this configuration on these objects."""
    return Simulation(world, policy).run(now=now, rounds=rounds)


def _gang(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{(pod.metadata.annotations or {}).get(GROUP_NAME, '')}"


def _changed(obj: T, **fields: object) -> T:
    return msgspec.structs.replace(obj, **fields)
