"""What the scheduler should decide, said a second time: one task after the other, plain numbers, no arrays, no caches.

Written from the rules and from nothing of the scheduler's code, so that a mistake has to be made twice to pass. It
reads the same objects and knows the plugins of the default policy; others are in `plugins.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from tests.oracle.claims import Claims
from tests.oracle.shares import Claimant, deserved
from vcbatch.api.quantity import parse_quantity

Json = Mapping[str, Any]
Amounts = dict[str, float]
EPS = 0.1
ALLOCATED = ("Allocated", "Binding", "Bound", "Running")
READY = (*ALLOCATED, "Succeeded")


def amounts(given: Json | None) -> Amounts:
    out: Amounts = {}
    for name, quantity in (given or {}).items():
        exact = parse_quantity(quantity)
        whole = name in ("memory", "pods", "ephemeral-storage")
        out[name] = float(exact.value() if whole else exact.milli())
    return out


def plus(a: Amounts, b: Amounts, sign: float = 1.0) -> Amounts:
    return {k: a.get(k, 0.0) + sign * b.get(k, 0.0) for k in {**a, **b}}


@dataclass(eq=False)
class Task:
    uid: str
    name: str
    job: Job | None
    status: str
    node: str
    role: str
    priority: int
    index: int | None
    creation: str
    request: Amounts
    nonzero: Amounts
    selector: dict[str, str]
    tolerations: Sequence[Json]
    ports: frozenset[int]
    labels: Mapping[str, str]
    affinity: Json = field(default_factory=dict)
    claims: Sequence[str] = ()
    cleared: bool = False
    """Whether others were evicted for the place that it is promised."""

    @property
    def best_effort(self) -> bool:
        return all(v < EPS for k, v in self.request.items() if k != "pods")


@dataclass(eq=False)
class Job:
    key: str
    uid: str
    creation: str
    queue: Queue
    minimum: int
    role_minimums: dict[str, int]
    priority: int
    min_resources: Amounts | None
    phase: str
    rules: Sequence[Json] = ()
    topology: Json | None = None
    tasks: list[Task] = field(default_factory=list)

    def part_of(self, task: Task) -> tuple[int, tuple[str, ...]] | None:
        """The gang inside the gang that the task is of."""
        for i, rule in enumerate(self.rules):
            wanted, keys = rule["labelSelector"]["matchLabels"], rule["matchLabelKeys"]
            if all(task.labels.get(k) == v for k, v in wanted.items()) and all(k in task.labels for k in keys):
                return i, tuple(task.labels[k] for k in keys)
        return None

    def in_part(self, part: tuple[int, tuple[str, ...]], *statuses: str, hope: bool = True) -> int:
        return sum(
            1
            for t in self.tasks
            if self.part_of(t) == part and (t.status in statuses or (hope and t.status == "Pending" and t.best_effort))
        )

    def whole_parts(self, i: int, *statuses: str) -> int:
        parts = {p for p in map(self.part_of, self.tasks) if p is not None and p[0] == i}
        return sum(1 for p in parts if self.in_part(p, *statuses) >= self.rules[i]["subGroupSize"])

    def enough_parts(self, *statuses: str) -> bool:
        return all(self.whole_parts(i, *statuses) >= r["minSubGroups"] for i, r in enumerate(self.rules))

    def count(self, *statuses: str, role: str | None = None) -> int:
        return sum(1 for t in self.tasks if t.status in statuses and (role is None or t.role == role))

    def allocated(self) -> Amounts:
        total: Amounts = {}
        for task in self.tasks:
            if task.status in ALLOCATED:
                total = plus(total, task.request)
        return total


@dataclass(eq=False)
class Queue:
    name: str
    uid: str
    creation: str
    weight: int
    priority: int
    capability: Amounts | None
    guarantee: Amounts
    open: bool
    allocated: Amounts = field(default_factory=dict)
    deserved: Amounts = field(default_factory=dict)
    most: Amounts = field(default_factory=dict)
    inqueue: Amounts = field(default_factory=dict)
    elastic: Amounts = field(default_factory=dict)


@dataclass(eq=False)
class Node:
    name: str
    labels: dict[str, str]
    taints: Sequence[Json]
    alloc: Amounts
    tasks: list[Task] = field(default_factory=list)

    def sum(self, *statuses: str) -> Amounts:
        total: Amounts = {}
        for task in self.tasks:
            if task.status in statuses:
                total = plus(total, task.request)
        return total

    def used(self) -> Amounts:
        return self.sum(*ALLOCATED, "Releasing", "Unknown")

    def idle(self) -> Amounts:
        return plus(self.alloc, self.used(), -1)

    def future(self) -> Amounts:
        return plus(plus(self.idle(), self.sum("Releasing")), self.sum("Pipelined"), -1)


class Oracle:
    """One cycle over a world. `options` are the policy's plugins in order, each with its arguments."""

    def __init__(self, world: Json, actions: Sequence[str], options: Sequence[tuple[str, Json]]) -> None:
        self.actions = actions
        self.plugins = dict(options)
        self.binds: dict[str, str] = {}
        self.held: dict[str, str] = {}
        self._read(world)
        self.total: Amounts = {}
        for node in self.nodes:
            self.total = plus(self.total, node.alloc)
        self._proportion()
        self._overcommit()

    # The world -------------------------------------------------------------------------------------------------------

    def _read(self, world: Json) -> None:
        classes = {p["metadata"]["name"]: p["value"] for p in world.get("priorityClasses") or ()}
        self.queues = {q["metadata"]["name"]: _queue(q) for q in world["queues"]}
        self.nodes = sorted((_node(n) for n in world["nodes"]), key=lambda n: n.name)
        self.jobs: dict[str, Job] = {}
        for group in world["podGroups"]:
            meta, spec = group["metadata"], group["spec"]
            queue = self.queues.get(spec.get("queue") or "default")
            if queue is None:
                continue
            key = f"{meta['namespace']}/{meta['name']}"
            minimum = spec.get("minResources")
            self.jobs[key] = Job(
                key=key,
                uid=meta.get("uid") or f"podGroups/{key}",
                creation=meta.get("creationTimestamp") or "",
                queue=queue,
                minimum=spec.get("minMember", 0),
                role_minimums=spec.get("minTaskMember") or {},
                priority=classes.get(spec.get("priorityClassName") or "", 0),
                min_resources=None if minimum is None else amounts(minimum),
                phase=(group.get("status") or {}).get("phase") or "Pending",
                rules=spec.get("subGroupPolicy") or (),
                topology=spec.get("networkTopology"),
            )
        self.claims = Claims(world)
        by_name = {n.name: n for n in self.nodes}
        for pod in world["pods"]:
            task = self._task(pod)
            if task.job is not None:
                task.job.tasks.append(task)
            if task.node and task.status not in ("Pending", "Succeeded", "Failed") and task.node in by_name:
                by_name[task.node].tasks.append(task)

    def _task(self, pod: Json) -> Task:
        meta, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
        notes = meta.get("annotations") or {}
        request: Amounts = {"pods": 1.0}
        nonzero: Amounts = {}
        for container in spec["containers"]:
            asked = amounts((container.get("resources") or {}).get("requests"))
            request = plus(request, asked)
            nonzero = plus(
                nonzero, {"cpu": asked.get("cpu", 100.0), "memory": asked.get("memory", 200.0 * 1024 * 1024)}
            )
        phase = status.get("phase") or "Pending"
        if phase in ("Pending", "Running") and meta.get("deletionTimestamp"):
            phase = "Releasing"
        elif phase == "Pending" and spec.get("nodeName"):
            phase = "Bound"
        parts = meta["name"].split("-")
        return Task(
            uid=meta["uid"],
            name=f"{meta['namespace']}/{meta['name']}",
            job=self.jobs.get(f"{meta['namespace']}/{notes.get('scheduling.k8s.io/group-name')}"),
            status=phase,
            node=spec.get("nodeName") or "",
            role=notes.get("volcano.sh/task-spec") or "",
            priority=spec.get("priority", 1),
            index=int(parts[-1]) if len(parts) >= 3 and parts[-1].isdigit() else None,
            creation=meta.get("creationTimestamp") or "",
            request=request,
            nonzero=nonzero,
            selector=spec.get("nodeSelector") or {},
            tolerations=spec.get("tolerations") or (),
            ports=frozenset(p["hostPort"] for c in spec["containers"] for p in c.get("ports") or () if "hostPort" in p),
            labels=meta.get("labels") or {},
            affinity=spec.get("affinity") or {},
            claims=sorted(v["persistentVolumeClaim"]["claimName"] for v in spec.get("volumes") or ()),
        )

    # Plugins ---------------------------------------------------------------------------------------------------------

    def _proportion(self) -> None:
        if "proportion" not in self.plugins:
            return
        guarantees: Amounts = {}
        for queue in self.queues.values():
            guarantees = plus(guarantees, queue.guarantee)
        names = {*self.total, *guarantees}
        for job in self.jobs.values():
            for task in job.tasks:
                names |= set(task.request)
        requests: dict[str, Amounts] = {}
        for queue in self.queues.values():
            rest = {n: max(self.total.get(n, 0.0) - guarantees.get(n, 0.0), 0.0) for n in names}
            queue.most = plus(rest, queue.guarantee)
            for name, limit in (queue.capability or {}).items():
                if limit > 0 or name not in ("cpu", "memory"):
                    queue.most[name] = min(queue.most.get(name, 0.0), limit)
            mine = [j for j in self.jobs.values() if j.queue is queue]
            request: Amounts = {}
            for job in mine:
                held, least = job.allocated(), job.min_resources or {}
                queue.allocated = plus(queue.allocated, held)
                request = plus(request, held)
                for task in job.tasks:
                    if task.status == "Pending":
                        request = plus(request, task.request)
                queue.elastic = plus(queue.elastic, {n: max(v - least.get(n, 0.0), 0.0) for n, v in held.items()})
                started = job.phase == "Running" and job.count(*ALLOCATED) >= job.minimum
                if job.min_resources is not None and (job.phase == "Inqueue" or started):
                    missing = {n: max(v - held.get(n, 0.0), 0.0) for n, v in least.items()}
                    queue.inqueue = plus(queue.inqueue, missing)
            requests[queue.name] = request
        active = [q for q in self.queues.values() if q.weight > 0 and any(j.queue is q for j in self.jobs.values())]
        total = {n: self.total.get(n, 0.0) for n in sorted(names)}
        claimants = [Claimant(q.weight, requests[q.name], q.most, q.guarantee) for q in active]
        for queue, share in zip(active, deserved(total, claimants), strict=True):
            queue.deserved = dict(share)

    def _overcommit(self) -> None:
        if "overcommit" not in self.plugins:
            return
        factor = self.plugins["overcommit"].get("overcommit-factor", 1.2)
        self._idle = {n: v * (factor if factor >= 1 else 1.2) for n, v in self.total.items()}
        for node in self.nodes:
            self._idle = plus(self._idle, node.used(), -1)
        self._inqueue: Amounts = {}
        for job in self.jobs.values():
            if job.min_resources is None:
                continue
            if job.phase == "Inqueue":
                self._inqueue = plus(self._inqueue, job.min_resources)
            elif job.phase == "Running" and job.count(*ALLOCATED) >= job.minimum:
                held = job.allocated()
                rest = {n: max(v - held.get(n, 0.0), 0.0) for n, v in job.min_resources.items()}
                self._inqueue = plus(self._inqueue, rest)

    def _job_key(self, job: Job) -> tuple[Any, ...]:
        key: list[Any] = []
        for plugin in self.plugins:
            if plugin == "priority":
                key.append(-job.priority)
            elif plugin == "gang":
                key.append(1 if job.count(*READY) + self._hoped(job) >= job.minimum else 0)
            elif plugin == "drf":
                held: Amounts = {}
                for task in job.tasks:
                    if task.status in (*ALLOCATED, "Pipelined"):
                        held = plus(held, task.request)
                key.append(max((held.get(n, 0.0) / v for n, v in self.total.items() if v >= EPS), default=0.0))
        return (*key, job.creation, job.uid, job.key)

    def _queue_key(self, queue: Queue) -> tuple[Any, ...]:
        key: list[Any] = []
        if "proportion" in self.plugins:
            shares = [queue.allocated.get(n, 0.0) / v for n, v in queue.deserved.items() if v >= EPS]
            key = [-queue.priority, max(shares, default=0.0)]
        return (*key, queue.creation, queue.uid, queue.name)

    def _task_order(self, tasks: list[Task]) -> list[Task]:
        indexed = all(t.index is not None for t in tasks)

        def key(task: Task) -> tuple[Any, ...]:
            first = [-task.priority] if "priority" in self.plugins else []
            return (*first, task.index if indexed else 0, task.creation, task.uid)

        return sorted(tasks, key=key)

    def _roles(self, job: Job) -> dict[str, int]:
        return job.role_minimums if job.minimum >= sum(job.role_minimums.values()) else {}

    def _hoped(self, job: Job, role: str | None = None) -> int:
        return sum(1 for t in job.tasks if t.status == "Pending" and t.best_effort and (role is None or t.role == role))

    def _ready(self, job: Job, *, hope: bool = True) -> bool:
        if "gang" not in self.plugins:
            return True
        if job.count(*READY) + (self._hoped(job) if hope else 0) < job.minimum:
            return False
        roles = all(job.count(*READY, role=r) + self._hoped(job, r) >= m for r, m in self._roles(job).items())
        return roles and job.enough_parts(*READY)

    def _pipelined(self, job: Job) -> bool:
        if "gang" not in self.plugins:
            return True
        if job.count(*READY, "Pipelined") + self._hoped(job) < job.minimum:
            return False
        roles = all(
            job.count(*READY, "Pipelined", role=r) + self._hoped(job, r) >= m for r, m in self._roles(job).items()
        )
        return roles and job.enough_parts(*READY, "Pipelined")

    def _valid(self, job: Job) -> bool:
        if "gang" not in self.plugins:
            return True
        there = (*READY, "Pipelined", "Pending")
        roles = all(job.count(*there, role=r) >= m for r, m in self._roles(job).items())
        return job.count(*there) >= job.minimum and roles and job.enough_parts(*there)

    def _may_enqueue(self, job: Job) -> bool:
        asked = job.min_resources
        if not job.queue.open:
            return False
        if asked is None:
            return True
        if "overcommit" in self.plugins:
            wanted = plus(self._inqueue, asked)
            if any(v > 0 and n != "pods" and wanted[n] > self._idle.get(n, 0.0) for n, v in asked.items()):
                return False
        if "proportion" in self.plugins:
            queue = job.queue
            wanted = plus(plus(plus(asked, queue.allocated), queue.inqueue), queue.elastic, -1)
            if any(v > 0 and n != "pods" and wanted[n] > queue.most.get(n, 0.0) for n, v in asked.items()):
                return False
        return True

    def _allocatable(self, queue: Queue, task: Task) -> bool:
        if "proportion" not in self.plugins:
            return True
        held = plus(queue.allocated, task.request)
        return queue.open and all(
            held[n] <= queue.deserved.get(n, 0.0) for n, v in task.request.items() if v > 0 and n != "pods"
        )

    def _overused(self, queue: Queue) -> bool:
        return "proportion" in self.plugins and all(
            _at_most(v, queue.allocated.get(n, 0.0)) for n, v in queue.deserved.items()
        )

    # Nodes -----------------------------------------------------------------------------------------------------------

    def _passes(self, node: Node, task: Task) -> bool:
        if "predicates" not in self.plugins:
            return True
        if any(t["effect"] in ("NoSchedule", "NoExecute") and not _tolerated(task, t) for t in node.taints):
            return False
        if any(node.labels.get(k) != v for k, v in task.selector.items()):
            return False
        here = [t for t in node.tasks if t.status not in ("Succeeded", "Failed")]
        if len(here) >= node.alloc.get("pods", 0.0):
            return False
        if any(t.ports & task.ports for t in here):
            return False
        return self.claims.volumes(task, node.name, self._users()) is not None

    def _users(self) -> dict[str, list[Task]]:
        return {n.name: [t for t in n.tasks if t.status not in ("Succeeded", "Failed")] for n in self.nodes}

    def _fits(self, free: Amounts, task: Task) -> bool:
        asked = {"cpu": 0.0, "memory": 0.0, **task.request}
        return all(_at_most(v, free.get(n, 0.0)) for n, v in asked.items())

    def _open(self) -> list[Node]:
        """The nodes that are looked at."""
        return self.nodes

    def _choose(self, task: Task) -> tuple[Node, bool] | None:
        """The node, and whether it is free now."""
        passing = [n for n in self._open() if self._passes(n, task)]
        if task.best_effort:
            groups = [(passing, True)]
        else:
            coming = [n for n in passing if self._fits(n.future(), task)]
            groups = [([n for n in coming if self._fits(n.idle(), task)], True), (coming, False)]
        for nodes, free in groups:
            if nodes:
                scores = self._scores(nodes, task)
                return nodes[scores.index(max(scores))], free
        return None

    def _scores(self, nodes: list[Node], task: Task) -> list[float]:
        scores = [0.0] * len(nodes)
        raw = [
            float(sum(1 for t in n.taints if t["effect"] == "PreferNoSchedule" and not _tolerated(task, t)))
            for n in nodes
        ]
        for i, node in enumerate(nodes):
            for plugin, arguments in self.plugins.items():
                if plugin == "nodeorder":
                    scores[i] += self._nodeorder(node, task, arguments)
                elif plugin == "binpack":
                    scores[i] += _binpack(node, task, arguments)
        if "nodeorder" in self.plugins:
            weight = self.plugins["nodeorder"].get("tainttoleration.weight", 3)
            for i, count in enumerate(raw):
                points = 100.0 - math.floor(100.0 * count / max(raw)) if max(raw) else 100.0
                scores[i] += weight * points if len({*raw}) > 1 else 0.0
        return scores

    def _nodeorder(self, node: Node, task: Task, arguments: Json) -> float:
        expected: Amounts = {"cpu": 0.0, "memory": 0.0}
        nonzero: Amounts = {"cpu": 0.0, "memory": 0.0}
        for other in node.tasks:
            expected = plus(expected, other.request)
            nonzero = plus(nonzero, other.nonzero)
        total = 0.0
        alloc = node.alloc
        offered = [n for n in ("cpu", "memory") if alloc.get(n, 0.0) > 0]
        if weight := arguments.get("leastrequested.weight", 1):
            points = [math.floor(max(alloc[n] - nonzero[n] - task.nonzero[n], 0.0) * 100.0 / alloc[n]) for n in offered]
            total += weight * (sum(points) // len(points) if points else 0)
        if weight := arguments.get("mostrequested.weight", 0):
            points = [math.floor(min(nonzero[n] + task.nonzero[n], alloc[n]) * 100.0 / alloc[n]) for n in offered]
            total += weight * (sum(points) // len(points) if points else 0)
        gpu = "nvidia.com/gpu"
        if task.request.get(gpu, 0.0) > 0 and alloc.get(gpu, 0.0) > 0:
            offered.append(gpu)
        asks = any(task.request.get(n, 0.0) > 0 for n in ("cpu", "memory", gpu))
        if (weight := arguments.get("balancedresource.weight", 1)) and asks:
            before = _evenness([min(expected.get(n, 0.0) / alloc[n], 1.0) for n in offered])
            after = _evenness([min((expected.get(n, 0.0) + task.request.get(n, 0.0)) / alloc[n], 1.0) for n in offered])
            total += weight * (50 + math.floor((50 + after - before) / 2))
        return total

    # Actions ---------------------------------------------------------------------------------------------------------

    def _known_actions(self) -> dict[str, Callable[[], None]]:
        return {"enqueue": self._enqueue, "allocate": self._allocate, "backfill": self._backfill}

    def run(self) -> Self:
        known = self._known_actions()
        self._hopeful: list[tuple[Job, list[Task]]] = []
        for action in self.actions:
            known[action]()
        for job, tasks in self._hopeful:
            if not self._ready(job, hope=False):
                for task in tasks:
                    self._undo(task)
        for job in self.jobs.values():
            for task in job.tasks:
                if task.status == "Binding" and task.name not in self.binds:
                    self.binds[task.name] = task.node
                if task.status in ("Allocated", "Pipelined"):
                    self.held[task.name] = task.node
        return self

    def _enqueue(self) -> None:
        for queue in sorted(self.queues.values(), key=self._queue_key):
            pending = [j for j in self.jobs.values() if j.queue is queue and j.phase == "Pending"]
            for job in sorted(pending, key=self._job_key):
                if self._may_enqueue(job):
                    job.phase = "Inqueue"
                    if job.min_resources is not None:
                        queue.inqueue = plus(queue.inqueue, job.min_resources)
                        if "overcommit" in self.plugins:
                            self._inqueue = plus(self._inqueue, job.min_resources)

    def _eligible(self) -> list[Job]:
        if "enqueue" not in self.actions:
            for job in self.jobs.values():
                if job.phase == "Pending":
                    job.phase = "Inqueue"
        return [j for j in self.jobs.values() if j.phase != "Pending" and self._valid(j)]

    def _allocate(self) -> None:
        sheets = {
            j.key: self._task_order([t for t in j.tasks if t.status == "Pending" and not t.best_effort])
            for j in self._eligible()
        }
        waiting = {k: v for k, v in sheets.items() if v}
        dropped: set[str] = set()
        while True:
            jobs = [self.jobs[k] for k in waiting if self.jobs[k].queue.name not in dropped]
            if not jobs:
                return
            queue = min({j.queue.name: j.queue for j in jobs}.values(), key=self._queue_key)
            if self._overused(queue):
                dropped.add(queue.name)
                continue
            job = min((j for j in jobs if j.queue is queue), key=self._job_key)
            placed = self._serve(job, waiting[job.key])
            if self._ready(job) and (self._ready(job, hope=False) or self._hope(job)):
                bound = [t for t in placed if t.status == "Allocated"]
                for task in bound:
                    task.status = "Binding"
                if not self._ready(job, hope=False):
                    self._hopeful.append((job, bound))
                if not waiting[job.key]:
                    del waiting[job.key]
                continue
            if not (placed and self._pipelined(job)):
                for task in placed:
                    self._undo(task)
            del waiting[job.key]

    def _serve(self, job: Job, sheet: list[Task]) -> list[Task]:
        """One turn of a gang; what it placed. What stays on the sheet is for another turn."""
        return (self._attempt_parts if job.rules else self._attempt)(job, sheet)

    def _hope(self, job: Job) -> bool:
        placed = self._fill_in(job)
        enough = self._ready(job, hope=False)
        for task in placed:
            self._undo(task)
        return enough

    def _attempt(self, job: Job, sheet: list[Task]) -> list[Task]:
        placed: list[Task] = []
        failed: set[str] = set()
        while sheet:
            task = sheet.pop(0)
            if not self._allocatable(job.queue, task) or (task.role and task.role in failed):
                continue
            found = self._choose(task)
            if found is None:
                failed.add(task.role)
                if not self._may_continue(job, failed):
                    return placed
                continue
            self._place(task, *found)
            placed.append(task)
            if self._ready(job):
                return placed
        return placed

    def _attempt_parts(self, job: Job, sheet: list[Task]) -> list[Task]:
        """Part by part: those that are still needed first, each with what it lacks or with nothing; and again, one task
        a turn, those that have tasks left while the gang isn't ready."""
        parts = list(dict.fromkeys(map(job.part_of, sheet)))
        missing = [r["minSubGroups"] - job.whole_parts(i, *READY) for i, r in enumerate(job.rules)]
        needed: list[Any] = []
        for part in parts:
            if part is None:
                needed.append(part)
            elif missing[part[0]] > 0 and job.in_part(part, *READY) < job.rules[part[0]]["subGroupSize"]:
                missing[part[0]] -= 1
                needed.append(part)
        placed: list[Task] = []
        turns = [*needed, *(p for p in parts if p not in needed)]
        while turns:
            part = turns.pop(0)
            mine = [t for t in sheet if job.part_of(t) == part]
            if part is None:
                before = list(mine)
                placed += self._attempt(job, mine)
                done = [t for t in before if t not in mine]
            else:
                done, got = self._whole_part(job, part, mine)
                placed += got
            sheet[:] = [t for t in sheet if t not in done]
            if part is not None and any(job.part_of(t) == part for t in sheet):
                turns.append(part)
            if self._ready(job):
                break
        # What is left for another turn stays sorted by part.
        sheet[:] = [t for part in parts for t in sheet if job.part_of(t) == part]
        return placed

    def _whole_part(self, job: Job, part: Any, mine: list[Task]) -> tuple[list[Task], list[Task]]:
        """What is through with, and what was placed."""
        short = max(job.rules[part[0]]["subGroupSize"] - job.in_part(part, *READY), 1)
        got: list[Task] = []
        skipped: list[Task] = []
        while mine and len(got) < short:
            alike = [mine[0]]
            for task in mine[1:]:
                if kind(task) != kind(mine[0]):
                    break
                alike.append(task)
            want = min(short - len(got), len(alike))
            placed = self._some_of(job, alike[:want])
            got += placed
            if len(placed) < want:
                skipped += [t for t in alike if t not in placed]
            mine = [t for t in mine if t not in placed and t not in skipped]
        if len(got) < short:
            for task in reversed(got):
                self._undo(task)
            return [*got, *skipped, *mine], []
        return [*got, *skipped], got

    def _some_of(self, job: Job, tasks: list[Task]) -> list[Task]:
        """All of these alike tasks where the queue has room for all, as many as find a node."""
        asked: Amounts = {}
        for task in tasks:
            asked = plus(asked, task.request)
        if not self._room_for(job.queue, tasks[0], asked):
            return []
        placed: list[Task] = []
        for task in tasks:
            found = self._choose(task)
            if found is None:
                break
            self._place(task, *found)
            placed.append(task)
        return placed

    def _room_for(self, queue: Queue, task: Task, asked: Amounts) -> bool:
        if "proportion" not in self.plugins:
            return True
        held = plus(queue.allocated, asked)
        return queue.open and all(
            held[n] <= queue.deserved.get(n, 0.0) for n, v in task.request.items() if v > 0 and n != "pods"
        )

    def _may_continue(self, job: Job, failed: set[str]) -> bool:
        if job.minimum >= len(job.tasks):
            return False
        if job.minimum < sum(job.role_minimums.values()):
            rest = sum(1 for t in job.tasks if t.status == "Pending" and t.role not in failed)
            return job.count(*READY) + rest >= job.minimum
        return all(job.count(*ALLOCATED, role=r) >= job.role_minimums[r] for r in failed if r in job.role_minimums)

    def _place(self, task: Task, node: Node, free: bool, *, cleared: bool = False) -> None:
        self.claims.give(self.claims.volumes(task, node.name, self._users()) or {})
        task.status = "Allocated" if free else "Pipelined"
        task.node, task.cleared = node.name, cleared
        node.tasks.append(task)
        assert task.job is not None
        task.job.queue.allocated = plus(task.job.queue.allocated, task.request)

    def _undo(self, task: Task) -> None:
        node = next(n for n in self.nodes if n.name == task.node)
        node.tasks.remove(task)
        task.status, task.node = "Pending", ""
        self.claims.take_back(task, self._users())
        assert task.job is not None
        task.job.queue.allocated = plus(task.job.queue.allocated, task.request, -1)

    def _fill_in(self, job: Job) -> list[Task]:
        placed: list[Task] = []
        for task in self._task_order([t for t in job.tasks if t.status == "Pending" and t.best_effort]):
            found = self._choose(task)
            if found is not None:
                self._place(task, *found)
                placed.append(task)
        return placed

    def _backfill(self) -> None:
        for job in self.jobs.values():
            for task in job.tasks:
                if task.status == "Pipelined" and task.best_effort and not task.cleared:
                    self._undo(task)
        eligible = [j for j in self._eligible() if self._hoped(j)]
        for queue in sorted(self.queues.values(), key=self._queue_key):
            for job in sorted((j for j in eligible if j.queue is queue), key=self._job_key):
                placed = self._fill_in(job)
                if placed and self._ready(job) and self._ready(job, hope=False):
                    for task in placed:
                        task.status = "Binding"


def kind(task: Task) -> tuple[Any, ...]:
    """Tasks of one kind are placed together."""
    tolerations = tuple(tuple(sorted(t.items())) for t in task.tolerations)
    request = tuple(sorted(task.request.items()))
    nodes = (tuple(sorted(task.selector.items())), tolerations, repr(task.affinity))
    return (task.role, request, nodes, task.ports, tuple(task.claims))


def _at_most(left: float, right: float) -> bool:
    return left < right or abs(left - right) < EPS


def _tolerated(task: Task, taint: Json) -> bool:
    for toleration in task.tolerations:
        same_key = toleration.get("key") in (None, "", taint["key"])
        exists = toleration.get("operator") == "Exists"
        same_value = bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")
        if toleration.get("effect") in (None, "", taint["effect"]) and same_key and (exists or same_value):
            return True
    return False


def _evenness(fractions: list[float]) -> float:
    if len(fractions) < 2:
        return 100.0
    if len(fractions) == 2:
        return math.floor((1.0 - abs(fractions[0] - fractions[1]) / 2.0) * 100.0)
    mean = sum(fractions) / len(fractions)
    variance = sum((f - mean) ** 2 for f in fractions) / len(fractions)
    return math.floor((1.0 - math.sqrt(variance)) * 100.0)


def _binpack(node: Node, task: Task, arguments: Json) -> float:
    weights = {"cpu": arguments.get("binpack.cpu", 1), "memory": arguments.get("binpack.memory", 1)}
    for name in filter(None, (n.strip() for n in arguments.get("binpack.resources", "").split(","))):
        weights[name] = arguments.get(f"binpack.resources.{name}", 1)
    asked = {n: w for n, w in weights.items() if task.request.get(n, 0.0) > 0}
    if not sum(asked.values()):
        return 0.0
    used = node.used()
    total = 0.0
    for name, weight in asked.items():
        alloc = node.alloc.get(name, 0.0)
        filled = used.get(name, 0.0) + task.request[name]
        if alloc > 0 and filled > alloc:
            return 0.0
        total += weight * (filled / alloc if alloc > 0 else 0.0)
    return 100.0 * arguments.get("binpack.weight", 1) * total / sum(asked.values())


def _queue(given: Json) -> Queue:
    spec, meta = given.get("spec") or {}, given["metadata"]
    capability = spec.get("capability")
    return Queue(
        name=meta["name"],
        uid=meta.get("uid") or f"queues//{meta['name']}",
        creation=meta.get("creationTimestamp") or "",
        weight=spec.get("weight", 1),
        priority=spec.get("priority", 0),
        capability=amounts(capability) if capability else None,
        guarantee=amounts((spec.get("guarantee") or {}).get("resource")),
        open=((given.get("status") or {}).get("state") or "Open") == "Open",
    )


def _node(given: Json) -> Node:
    spec = given.get("spec") or {}
    taints = list(spec.get("taints") or ())
    if spec.get("unschedulable"):
        taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    taints += [
        {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
        for condition in given["status"].get("conditions") or ()
        if condition["type"] == "Ready" and condition["status"] == "False"
    ]
    return Node(
        name=given["metadata"]["name"],
        labels=given["metadata"].get("labels") or {},
        taints=taints,
        alloc=amounts(given["status"].get("allocatable")),
    )
