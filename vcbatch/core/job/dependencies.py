"""dependsOn: tasks whose pods wait until other tasks are ready
(Volcano `pkg/controllers/job/job_controller_actions.go`, waitDependsOnTaskMeetCondition).

A waiting task counts for the gang with the pods that it already has: a gang whose minimum includes pods that are
created only once it runs could never start (Volcano's waits for ever).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vcbatch.api.pod import Pod, PodPhase
from vcbatch.core.job.ledger import Ledger
from vcbatch.core.job.plan import Plan, Task
from vcbatch.core.job.roster import Roster


@dataclass(frozen=True, slots=True)
class Held:
    """`waiting`: the tasks whose missing pods may not be created yet, with the tasks that each still waits for.
    `never`: those of them whose dependencies can't be met any more."""

    waiting: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    never: frozenset[str] = frozenset()


def held_back(plan: Plan, roster: Roster, ledger: Ledger) -> Held:
    """The tasks that wait. A dependency is met when as many of its pods as its minAvailable have succeeded, or run with
    all their containers ready. It can't be met any more when too many of its indices failed for good, or when it can't
    start itself; a policy whose timeout is still running keeps it open."""
    if not any(task.depends_on for task in plan.tasks.values()):
        return Held()
    ready = {name for name, task in plan.tasks.items() if _ready_pods(task, roster, ledger) >= task.min_pods}
    waiting: dict[str, tuple[str, ...]] = {}
    for name, task in plan.tasks.items():
        unmet = tuple(other for other in task.depends_on if other not in ready)
        if len(unmet) == len(task.depends_on) > 0 or (unmet and not task.any_dependency):
            waiting[name] = unmet
    return Held(waiting, frozenset() if ledger.delayed else _never(plan, ledger, waiting))


def _never(plan: Plan, ledger: Ledger, waiting: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    lost = {name for name, task in plan.tasks.items() if len(ledger.tasks[name].failed) > task.replicas - task.min_pods}
    never: set[str] = set()
    while True:
        hopeless = lost | never
        found = {
            name
            for name, unmet in waiting.items()
            if (all if plan.tasks[name].any_dependency else any)(other in hopeless for other in unmet)
        }
        if found <= never:
            return frozenset(never)
        never |= found


def _ready_pods(task: Task, roster: Roster, ledger: Ledger) -> int:
    done = ledger.tasks[task.name].done
    running = sum(
        member.index not in done and not member.terminating and not ledger.doomed(member) and _ready(member.pod)
        for member in roster.places[task.name].values()
    )
    return len(done) + running


def _ready(pod: Pod) -> bool:
    containers = pod.status.container_statuses or ()
    return pod.status.phase == PodPhase.RUNNING and all(container.ready for container in containers)
