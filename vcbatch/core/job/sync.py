"""SyncJob: compares the pods that the spec requires with those that exist."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from vcbatch.core.job.ledger import Ledger
from vcbatch.core.job.plan import Plan
from vcbatch.core.job.roster import FINISHED, Member, Roster


@dataclass(frozen=True, slots=True)
class Difference:
    """`missing` indices by task, and pods to delete: scaled down, or left over from a restart."""

    missing: dict[str, list[int]]
    superfluous: list[Member]


def compare(plan: Plan, roster: Roster, ledger: Ledger, *, held: Container[str] = ()) -> Difference:
    """The pods to create and to delete.

    An index that succeeded or failed on its own is not run again, even if its pod was deleted. Nothing is created while
    a pod of an older attempt is still alive, no name is reused before its pod is deleted, the tasks in `held` wait for
    others, and no more pods are created than may be alive together.
    """
    superfluous = [member for member in roster.surplus if not member.terminating]
    missing: dict[str, list[int]] = {}
    barred = False
    for name, task in plan.tasks.items():
        members, record = roster.places[name], ledger.tasks[name]
        for member in members.values():
            if ledger.doomed(member):
                barred = barred or (member.version < ledger.version and member.pod.status.phase not in FINISHED)
                if not member.terminating:
                    superfluous.append(member)
        if len(members) < task.replicas and name not in held:
            settled = record.done | record.failed
            absent = [index for index in range(task.replicas) if index not in members and index not in settled]
            if absent:
                missing[name] = absent
    return Difference({} if barred else _in_turn(plan, roster, missing), superfluous)


def _in_turn(plan: Plan, roster: Roster, missing: dict[str, list[int]]) -> dict[str, list[int]]:
    """The first missing indices, as many as the limit of parallel pods allows besides the pods that are alive."""
    if plan.max_parallel is None:
        return missing
    room = max(plan.max_parallel - sum(not member.finished for member in roster.all()), 0)
    taken: dict[str, list[int]] = {}
    for name, indices in missing.items():
        if room > 0:
            taken[name] = indices[:room]
            room -= len(taken[name])
    return taken
