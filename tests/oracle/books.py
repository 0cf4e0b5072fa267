"""The state that an evicting action changes, and the tiers, switches and queue quotas of a policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from typing import Any

from tests.oracle.model import ALLOCATED, Amounts, Job, Json, Queue, Task, amounts, plus
from tests.oracle.near import NearOracle
from tests.oracle.quota import Gang, Quota, Spec

HELD = (*ALLOCATED, "Pipelined")


@dataclass(frozen=True)
class Saved:
    """A copy of all state that a decision changes."""

    tasks: dict[str, tuple[str, str]]
    nodes: list[list[Task]]
    allocated: dict[str, Amounts]
    evicted: list[str]
    pushed: set[tuple[str, str]]


class Books(NearOracle):
    """The state of one cycle, with copies that can be restored, and the quotas of queues."""

    def __init__(self, world: Json, document: Json) -> None:
        self.tiers: Sequence[Sequence[Json]] = [tier["plugins"] for tier in document["tiers"]]
        given: Sequence[Json] = document.get("configurations") or ()
        self.prevents_take_back = {one["name"] for one in given if one["arguments"].get("preventTakeBack")}
        self.raw: dict[str, Json] = {}
        self.tasks: dict[str, Task] = {}
        self.evicted: list[str] = []
        self.pushed: set[tuple[str, str]] = set()
        self.groups = {f"{g['metadata']['namespace']}/{g['metadata']['name']}": g for g in world["podGroups"]}
        self.specs = {q["metadata"]["name"]: q.get("spec") or {} for q in world["queues"]}
        self.budgets: Sequence[Json] = world.get("podDisruptionBudgets") or ()
        options = [(p["name"], p.get("arguments") or {}) for tier in self.tiers for p in tier]
        super().__init__(world, [a.strip() for a in document["actions"].split(",")], options)
        self.started = {j.key for j in self.jobs.values() if j.phase == "Running" and j.count(*ALLOCATED) >= j.minimum}

    def _task(self, pod: Json) -> Task:
        task = super()._task(pod)
        self.raw[task.uid] = pod
        self.tasks[task.uid] = task
        return task

    # Statements ------------------------------------------------------------------------------------------------------

    def _save(self) -> Saved:
        return Saved(
            tasks={uid: (t.status, t.node) for uid, t in self.tasks.items()},
            nodes=[list(n.tasks) for n in self.nodes],
            allocated={name: dict(q.allocated) for name, q in self.queues.items()},
            evicted=list(self.evicted),
            pushed=set(self.pushed),
        )

    def _restore(self, saved: Saved) -> None:
        for uid, (status, node) in saved.tasks.items():
            self.tasks[uid].status, self.tasks[uid].node = status, node
        for node, tasks in zip(self.nodes, saved.nodes, strict=True):
            node.tasks = list(tasks)
        for name, held in saved.allocated.items():
            self.queues[name].allocated = dict(held)
        self.evicted = list(saved.evicted)
        self.pushed = set(saved.pushed)

    def _evict(self, victim: Task, actor: Job) -> None:
        assert victim.job is not None
        victim.status = "Releasing"
        victim.job.queue.allocated = plus(victim.job.queue.allocated, victim.request, -1)
        self.evicted.append(victim.uid)
        self.pushed.add((actor.key, victim.job.key))

    def _relieved(self, job: Job) -> bool:
        """Whether pods of other gangs were evicted for this gang in this cycle. Those evictions would be useless if it
        lost a pod now."""
        return any(actor == job.key != lost for actor, lost in self.pushed)

    # Switches --------------------------------------------------------------------------------------------------------

    def _deciding(self, switch: str, names: Sequence[str]) -> list[list[str]]:
        """Tier by tier, the given plugins that are in the policy and whose switch isn't off."""
        return [[p["name"] for p in tier if p["name"] in names and p.get(switch, True)] for tier in self.tiers]

    # Quotas ----------------------------------------------------------------------------------------------------------

    @property
    def _hierarchy(self) -> bool:
        return any(p["name"] == "capacity" and p.get("enableHierarchy") for tier in self.tiers for p in tier)

    def _quota(self) -> Quota:
        specs = {
            name: Spec(
                parent=spec.get("parent", ""),
                priority=spec.get("priority", 0),
                deserved=amounts(spec.get("deserved")),
                guarantee=amounts((spec.get("guarantee") or {}).get("resource")),
                capability=amounts(spec.get("capability")),
                gangs=[
                    Gang(
                        held=[no_pods(t.request) for t in job.tasks if t.status in HELD],
                        minimum=job.min_resources,
                        admitted=job.phase == "Inqueue" or job.key in self.started,
                    )
                    for job in self.jobs.values()
                    if job.queue.name == name
                ],
            )
            for name, spec in self.specs.items()
        }
        levels = int(self.plugins["capacity"].get("ancestorReclaimLevel", 0))
        return Quota(specs, no_pods(self.total), hierarchy=self._hierarchy, levels=levels)

    def _queue_key(self, queue: Queue) -> tuple[Any, ...]:
        if "capacity" not in self.plugins:
            return super()._queue_key(queue)
        eldest = sorted(self.queues.values(), key=lambda q: (q.creation, q.uid, q.name))
        age = {q.name: i for i, q in enumerate(eldest)}
        quota = self._quota()

        def compare(one: str, other: str) -> int:
            return 0 if one == other else -1 if quota.before(one, other, age) else 1

        return (cmp_to_key(compare)(queue.name),)

    def _room_for(self, queue: Queue, asked: Amounts) -> bool:
        if "capacity" not in self.plugins:
            return super()._room_for(queue, asked)
        return queue.open and self._quota().allocatable(queue.name, no_pods(asked))

    def _may_enqueue(self, job: Job) -> bool:
        if not super()._may_enqueue(job):
            return False
        if "capacity" not in self.plugins or job.min_resources is None:
            return True
        return self._quota().enqueueable(job.queue.name, no_pods(job.min_resources))

    def _preemptive(self, queue: Queue, request: Amounts) -> bool:
        """Whether pods of other queues may be evicted for this request of the queue."""
        if "capacity" not in self.plugins:
            return self._room_for(queue, request)
        return queue.open and self._quota().preemptive(queue.name, no_pods(request))


def no_pods(given: Amounts) -> Amounts:
    return {n: v for n, v in given.items() if n != "pods"}
