"""The numbers of a job's pods by phase, each pod counted exactly once.

Counts are those after the decision is executed: a pod to be created is Pending, one to be deleted is terminating. So a
reconciliation that repeats the decision finds the same counts and writes nothing. Finished pods that are kept, or that
a client deleted, are counted too (volcano#4616).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from vcbatch.api.pod import PodPhase
from vcbatch.core.job.causes import is_being_taken
from vcbatch.core.job.ledger import Ledger, TaskRecord
from vcbatch.core.job.plan import Plan
from vcbatch.core.job.roster import Member, Roster


@dataclass(slots=True)
class Counts:
    """Pods by phase; `tasks` the same by task, without terminating ones."""

    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    unknown: int = 0
    terminating: int = 0
    blocked: int = 0
    """Pods that are never created: a dependency of their task has failed."""
    tasks: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])

    @property
    def alive(self) -> int:
        """The number of pods that use resources, or will."""
        return self.terminating + self.pending + self.running + self.unknown

    def succeeded_of(self, task: str) -> int:
        return self.tasks.get(task, {}).get(PodPhase.SUCCEEDED, 0)

    def add(self, task: str, phase: str) -> None:
        """Count one more pod of the task that isn't being deleted; an unknown phase counts as Unknown."""
        match phase:
            case PodPhase.PENDING:
                self.pending += 1
            case PodPhase.RUNNING:
                self.running += 1
            case PodPhase.SUCCEEDED:
                self.succeeded += 1
            case PodPhase.FAILED:
                self.failed += 1
            case _:
                phase = PodPhase.UNKNOWN
                self.unknown += 1
        of_task = self.tasks.setdefault(task, {})
        of_task[phase] = of_task.get(phase, 0) + 1


def count(
    plan: Plan,
    roster: Roster,
    ledger: Ledger,
    *,
    deleting: Collection[str],
    creating: Mapping[str, Collection[int]],
    never: Collection[str] = (),
) -> Counts:
    """Count the members, those in `deleting` (UIDs) as terminating and those in `creating` (by task) as Pending. The
    tasks in `never` get no more pods: their missing ones are counted as blocked."""
    counts = Counts()
    for name in plan.tasks:
        record = ledger.tasks[name]
        members = roster.places[name]
        for member in members.values():
            phase = _fate(member, record, going=member.uid in deleting)
            if phase is None:
                counts.terminating += 1
            else:
                counts.add(name, phase)
        for _ in creating.get(name, ()):
            counts.add(name, PodPhase.PENDING)
        for _ in record.done - members.keys():
            counts.add(name, PodPhase.SUCCEEDED)
        for _ in record.failed - members.keys():
            counts.add(name, PodPhase.FAILED)
        if name in never:
            counts.blocked += plan.tasks[name].replicas - len(members.keys() | record.done | record.failed)
    for member in roster.surplus:
        if member.terminating or member.uid in deleting:
            counts.terminating += 1
        else:
            counts.add(member.task, member.phase)
    return counts


def _fate(member: Member, record: TaskRecord, *, going: bool) -> str | None:
    """The phase that a member counts as; None while it terminates. A finished index keeps its phase while its pod is
    being deleted."""
    if going:
        return None
    if member.terminating or is_being_taken(member.pod):
        if member.index in record.done:
            return PodPhase.SUCCEEDED
        return PodPhase.FAILED if member.index in record.failed else None
    return member.phase
