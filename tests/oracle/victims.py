"""Which pods may be evicted for a task, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from tests.oracle.books import HELD, Books, no_pods
from tests.oracle.model import EPS, READY, Amounts, Job, Queue, Task, plus
from tests.oracle.worlds import NOW

Answer = list[Task] | None
"""The pods that may be evicted; None for no opinion."""

SYSTEM = ("system-cluster-critical", "system-node-critical")
PREEMPT = ("gang", "priority", "conformance", "drf", "pdb", "cdp")
RECLAIM = ("gang", "conformance", "proportion", "capacity", "pdb", "cdp")


class Victims(Books):
    """The answers of the plugins and their combination."""

    def _starving(self, job: Job) -> bool:
        has = job.count(*READY, "Pipelined")
        for tier in self._deciding("enableJobStarving", ("priority", "gang")):
            if tier:
                return all(has < (len(job.tasks) if name == "priority" else job.minimum) for name in tier)
        return False

    def _victims(self, task: Task, candidates: Sequence[Task], *, reclaim: bool) -> list[Task]:
        """The victims of the first tier with an answer, the first to be evicted first."""
        assert task.job is not None
        ordered = self._in_order(candidates, task.job.queue)
        switch, names = ("enableReclaimable", RECLAIM) if reclaim else ("enablePreemptable", PREEMPT)
        for tier in self._deciding(switch, names):
            victims: Answer = None
            for name in tier:
                allowed = self._allowed(name, task, ordered)
                if not allowed:
                    victims = None
                    break
                victims = allowed if victims is None else [v for v in victims if v in allowed] or None
            if victims is not None:
                return victims
        return []

    def _in_order(self, candidates: Sequence[Task], queue: Queue) -> list[Task]:
        """The order of eviction: within a gang the last task first, within a queue the last gang, then the last queue;
        with a hierarchy, queues with more common ancestors come before others."""
        out: list[Task] = []
        for of in self._queues_in_order(queue):
            jobs = {t.job.key: t.job for t in candidates if t.job is not None and t.job.queue is of}
            for job in sorted(jobs.values(), key=self._job_key, reverse=True):
                out += reversed(self._task_order([t for t in candidates if t.job is job]))
        return out

    def _queues_in_order(self, queue: Queue) -> list[Queue]:
        found = sorted(self.queues.values(), key=self._queue_key, reverse=True)
        if "capacity" in self.plugins and self._hierarchy:
            quota = self._quota()
            ours = quota.chain(queue.name)
            found.sort(key=lambda q: -len(set(quota.chain(q.name)) & set(ours)))
        return found

    def _allowed(self, name: str, task: Task, candidates: Sequence[Task]) -> list[Task]:
        known: dict[str, Callable[[Task, Sequence[Task]], list[Task]]] = {
            "gang": self._spared_by_gangs,
            "priority": self._of_lower_priority,
            "conformance": lambda _, given: self._not_the_systems(given),
            "drf": self._of_greater_share,
            "proportion": self._beyond_deserved,
            "capacity": self._beyond_quota,
            "pdb": lambda _, given: self._within_budgets(given),
            "cdp": lambda _, given: self._not_cooling(given),
        }
        return known[name](task, candidates)

    def _spared_by_gangs(self, task: Task, candidates: Sequence[Task]) -> list[Task]:
        left: dict[str, int] = {}
        out: list[Task] = []
        for victim in candidates:
            job = victim.job
            assert job is not None
            left.setdefault(job.key, job.count(*READY))
            if left[job.key] > job.minimum:
                left[job.key] -= 1
                out.append(victim)
        return out

    def _of_lower_priority(self, task: Task, candidates: Sequence[Task]) -> list[Task]:
        assert task.job is not None
        return [
            v
            for v in candidates
            if v.job is not None
            and (v.priority < task.priority if v.job is task.job else v.job.priority < task.job.priority)
        ]

    def _not_the_systems(self, candidates: Sequence[Task]) -> list[Task]:
        def systems(victim: Task) -> bool:
            pod = self.raw[victim.uid]
            return pod["spec"].get("priorityClassName") in SYSTEM or pod["metadata"]["namespace"] == "kube-system"

        return [v for v in candidates if not systems(v)]

    def _share(self, held: Amounts) -> float:
        return max((held.get(n, 0.0) / v for n, v in self.total.items() if v >= EPS), default=0.0)

    def _of_greater_share(self, task: Task, candidates: Sequence[Task]) -> list[Task]:
        assert task.job is not None
        ours = self._share(plus(_held(task.job), task.request))
        theirs: dict[str, Amounts] = {}
        out: list[Task] = []
        for victim in candidates:
            assert victim.job is not None
            rest = plus(theirs.get(victim.job.key) or _held(victim.job), victim.request, -1)
            theirs[victim.job.key] = rest
            share = self._share(rest)
            if ours < share or abs(ours - share) <= 1e-6:
                out.append(victim)
        return out

    def _beyond_deserved(self, task: Task, candidates: Sequence[Task]) -> list[Task]:
        running: dict[str, Amounts] = {}
        out: list[Task] = []
        for victim in candidates:
            assert victim.job is not None
            queue = victim.job.queue
            held = running.get(queue.name) or dict(queue.allocated)
            if any(v >= queue.deserved.get(n, 0.0) + EPS for n, v in held.items()):
                held = plus(held, victim.request, -1)
                out.append(victim)
            running[queue.name] = held
        return out

    def _beyond_quota(self, task: Task, candidates: Sequence[Task]) -> list[Task]:
        assert task.job is not None
        given = [(v.job.queue.name, no_pods(v.request)) for v in candidates if v.job is not None]
        found = self._quota().victims(task.job.queue.name, no_pods(task.request), given)
        return [candidates[i] for i in found]

    def _within_budgets(self, candidates: Sequence[Task]) -> list[Task]:
        def covers(budget: int, task: Task) -> bool:
            wanted = self.budgets[budget]["spec"]["selector"]["matchLabels"]
            same = self.raw[task.uid]["metadata"]["namespace"] == self.budgets[budget]["metadata"]["namespace"]
            return same and all(task.labels.get(k) == v for k, v in wanted.items())

        left = {i: b["status"]["disruptionsAllowed"] for i, b in enumerate(self.budgets)}
        for i in left:
            left[i] -= sum(1 for uid in self.evicted if covers(i, self.tasks[uid]))
        out: list[Task] = []
        for victim in candidates:
            mine = [i for i in left if covers(i, victim)]
            for i in mine:
                left[i] -= 1
            if all(left[i] >= 0 for i in mine):
                out.append(victim)
        return out

    def _not_cooling(self, candidates: Sequence[Task]) -> list[Task]:
        def cools(victim: Task) -> bool:
            pod = self.raw[victim.uid]
            time = (pod["metadata"].get("annotations") or {}).get("volcano.sh/cooldown-time")
            since = [
                c["lastTransitionTime"] for c in pod["status"].get("conditions") or () if c["type"] == "PodScheduled"
            ]
            if time is None or not since or victim.status != "Running":
                return False
            return datetime.fromisoformat(since[0]) + timedelta(minutes=int(time.removesuffix("m"))) > NOW

        return [v for v in candidates if not cools(v)]

    def _preemptable(self, task: Task) -> bool:
        """Whether the pod may be evicted; the default is true."""
        meta = self.raw[task.uid]["metadata"]
        for given in (meta.get("annotations") or {}, meta.get("labels") or {}):
            if "volcano.sh/preemptable" in given:
                return given["volcano.sh/preemptable"] == "true"
        return True

    def _peaceful(self, task: Task) -> bool:
        """Whether no pod may be evicted for this one."""
        return self.raw[task.uid]["spec"].get("preemptionPolicy") == "Never"


def _held(job: Job) -> Amounts:
    held: Amounts = {}
    for task in job.tasks:
        if task.status in HELD:
            held = plus(held, task.request)
    return held
