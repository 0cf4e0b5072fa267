"""The results of a simulation, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from vcbatch.api.remedies import remedy_json
from vcbatch.api.timestamps import format_time
from vcbatch.scheduler.model.objects import Phase
from vcbatch.scheduler.model.result import Bind, ClosestDomain, Eviction, Explanation, Held, PluginFailure

_SCHEDULED = ("Running", "Bound", "Succeeded", "Failed", "Releasing")


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The decisions of one cycle. `held` are placements that were kept until it ended."""

    at: datetime
    binds: Sequence[Bind]
    evictions: Sequence[Eviction]
    held: Sequence[Held]
    failures: Sequence[PluginFailure] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The decisions of all rounds, and the state of each gang after the last one. Gangs by `namespace/name`.

    Attributes:
        rounds: the requested number, or fewer if nothing was left to decide.
        phases: each PodGroup's phase.
        counts: how many pods of each gang are in which state: Pending, Allocated and Pipelined (placed and not bound,
            see `Round.held`), Binding, Bound, Running, Releasing, Succeeded, Failed, Unknown.
        queues: each gang's queue.
        reasons: why gangs are pending.
        gangs: the gang of each pod that has one, pods by `namespace/name`.
        minimums: how many pods each gang needs.
        strays: pods whose PodGroup doesn't exist, with its name, both as `namespace/name`.
    """

    rounds: Sequence[Round]
    phases: Mapping[str, str]
    counts: Mapping[str, Mapping[str, int]]
    queues: Mapping[str, str]
    reasons: Mapping[str, Explanation]
    gangs: Mapping[str, str]
    minimums: Mapping[str, int]
    strays: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def binds(self) -> dict[str, str]:
        """Pod to node, of all rounds."""
        return {key(bind): bind.node for done in self.rounds for bind in done.binds}

    @property
    def evicted(self) -> list[str]:
        """Pods in the order of their eviction, of all rounds."""
        return [key(eviction) for done in self.rounds for eviction in done.evictions]

    @property
    def pipelined(self) -> dict[str, str]:
        """Pod to node, as of the last round: placed on resources that terminating pods release."""
        return {key(held): held.node for held in self.rounds[-1].held if held.promised}

    @property
    def allocated(self) -> dict[str, str]:
        """Pod to node, as of the last round: placed on free resources, and kept for a gang whose other members wait for
        terminating pods."""
        return {key(held): held.node for held in self.rounds[-1].held if not held.promised}

    @property
    def recorded_phases(self) -> dict[str, str]:
        """The phases as in recorded decisions, which were taken after the actions and before the gang plugin set gangs
        that lost members to Unknown. While enough of its members are terminating, such a gang was Running then."""
        return {
            gang: phase if phase != Phase.UNKNOWN.wire else "Running" if self._scheduled(gang) else "Pending"
            for gang, phase in self.phases.items()
        }

    def _scheduled(self, gang: str) -> bool:
        """Whether the gang has its minimum, finished and terminating pods included."""
        return sum(self.counts[gang].get(state, 0) for state in _SCHEDULED) >= self.minimums[gang]

    def as_json(self, *, recorded: bool = False) -> dict[str, Any]:
        """The outcome under the names of recorded decisions; with `recorded`, the phases are those of
        `recorded_phases`."""
        return {
            "binds": dict(sorted(self.binds.items())),
            "evicted": self.evicted,
            "pipelined": dict(sorted(self.pipelined.items())),
            "allocated": dict(sorted(self.allocated.items())),
            "podGroupPhase": self.recorded_phases if recorded else dict(self.phases),
            "taskStatusCounts": {gang: dict(counts) for gang, counts in self.counts.items()},
            "reasons": {gang: reason_json(why) for gang, why in self.reasons.items()},
            "rounds": len(self.rounds),
            "seconds": self.after(len(self.rounds)).total_seconds(),
            **({"strays": dict(self.strays)} if self.strays else {}),
            **({"failures": failures} if (failures := self.failures) else {}),
        }

    def after(self, round_number: int) -> timedelta:
        """The time between the first round and this one, counted from 1."""
        return self.rounds[round_number - 1].at - self.rounds[0].at

    @property
    def failures(self) -> list[str]:
        """The failures of custom plugins and actions in all rounds, each once."""
        return list(dict.fromkeys(failure.sentence for done in self.rounds for failure in done.failures))


def key(record: Bind | Eviction | Held) -> str:
    """The pod as `namespace/name`."""
    return f"{record.namespace}/{record.name}"


def reason_json(why: Explanation) -> dict[str, Any]:
    """An explanation under its JSON names, without empty fields."""
    reported: dict[str, Any] = {
        "reason": why.reason.value,
        "message": why.message,
        "queue": why.queue,
        "minimum": why.minimum,
        "placed": why.placed,
    }
    more: dict[str, Any] = {
        "task": why.task,
        "shortages": [
            {"resource": s.resource, "requested": s.requested, "available": s.available, "shortBy": s.short_by}
            for s in why.shortages
        ],
        "place": why.place,
        "wouldStartIf": [remedy_json(remedy) for remedy in why.remedies],
        "nodesExamined": why.nodes_examined,
        "nodes": dict(why.nodes or {}),
        "position": why.position,
        "ahead": list(why.ahead),
        "closestDomain": _closest(why.closest),
        "expectedStart": "" if why.expected_start is None else format_time(why.expected_start),
    }
    return reported | {name: value for name, value in more.items() if value}


def _closest(domain: ClosestDomain | None) -> dict[str, Any]:
    return (
        {}
        if domain is None
        else {"name": domain.name, "tier": domain.tier, "needed": domain.needed, "room": domain.room}
    )
