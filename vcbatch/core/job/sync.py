"""SyncJob: the pods that the spec asks for, against those that there are."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from vcbatch.core.job.ledger import Ledger
from vcbatch.core.job.plan import Plan
from vcbatch.core.job.roster import FINISHED, Member, Roster


@dataclass(frozen=True, slots=True)
class Difference:
    """`missing` indices by task, and pods in the way: scaled down, or left over from what was restarted."""

    missing: dict[str, list[int]]
    superfluous: list[Member]


def compare(plan: Plan, roster: Roster, ledger: Ledger, *, held: Container[str] = ()) -> Difference:
    """What is to be created and deleted.

    An index that succeeded or failed by its own doing is not run again, whoever deleted its pod. Nothing is created
    while a pod of an older attempt is still alive, no name is reused before its pod is gone, the tasks in `held` wait
    for others, and no more pods are made than may be alive together.
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
    """The first of them, as many as there is room for beside the pods that are alive."""
    if plan.max_parallel is None:
        return missing
    room = max(plan.max_parallel - sum(not member.finished for member in roster.all()), 0)
    taken: dict[str, list[int]] = {}
    for name, indices in missing.items():
        if room > 0:
            taken[name] = indices[:room]
            room -= len(taken[name])
    return taken
