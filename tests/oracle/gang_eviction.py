"""Evictions for a whole gang, domain by domain, and the phases at the end of the cycle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf

from tests.oracle.books import no_pods
from tests.oracle.eviction import Evictions
from tests.oracle.model import ALLOCATED, READY, Amounts, Job, Part, Task, plus
from tests.oracle.near import Domain

DOMAINS = 8
"""Maximum number of domains that are tried for a gang."""


@dataclass
class Bundle:
    """Pods of a gang that are evicted together: those above its minimum, or with `whole` all others, on any node.
    `here` are those on nodes where their eviction helps; the eviction costs a gang that is `broken` already nothing."""

    job: Job
    tasks: list[Task]
    whole: bool
    here: list[Task]
    broken: bool = False


class EvictionOracle(Evictions):
    """One cycle of a policy with any of the evicting actions."""

    def _known_actions(self) -> dict[str, Callable[[], None]]:
        return super()._known_actions() | {
            "preempt": self._preempt,
            "reclaim": self._reclaim,
            "gangpreempt": lambda: self._gangs(reclaim=False),
            "gangreclaim": lambda: self._gangs(reclaim=True),
        }

    def _gangs(self, *, reclaim: bool) -> None:
        for queue, jobs in self._by_queue(self._starved()):
            left = list(jobs)
            while left and not (reclaim and self._overused(queue)):
                job = min(left, key=self._job_key)
                left.remove(job)
                if self._starving(job):
                    self._make_room_for(job, reclaim=reclaim)

    def _make_room_for(self, job: Job, *, reclaim: bool) -> None:
        parts = self._asking(job)
        tasks = [t for part in parts.values() for t in part]
        if not tasks or any(self._peaceful(t) for t in tasks):
            return
        need = _sum(tasks)
        if reclaim and not self._preemptive(job.queue, need):
            return
        for domain in [d for tier in self._tiers(job, tasks) for d in sorted(tier, key=lambda d: d.name)][:DOMAINS]:
            if self._in_domain(job, parts, domain, need, reclaim=reclaim):
                return

    def _asking(self, job: Job) -> dict[Part | None, list[Task]]:
        """Subgroup by subgroup, the pending tasks; only the first subgroup of a gang that is ready already."""
        parts: dict[Part | None, list[Task]] = {}
        for task in self._task_order(self._pending(job)):
            parts.setdefault(job.part_of(task), []).append(task)
        return dict(list(parts.items())[:1]) if self._ready(job) else parts

    def _in_domain(
        self, job: Job, parts: Mapping[Part | None, list[Task]], domain: Domain, need: Amounts, *, reclaim: bool
    ) -> bool:
        tasks = [t for part in parts.values() for t in part]
        bundles = self._sorted(self._bundles(job, domain, reclaim=reclaim), job, need, reclaim=reclaim)
        kept = self._let_go(bundles, reclaim=reclaim)
        chosen: list[Task] = []
        for bundle in kept:
            chosen += bundle.tasks
            if not self._enough(need, chosen, domain):
                continue
            saved = self._save()
            if self._trial(job, parts, chosen, domain):
                if reclaim and self._comes_back([t for t in tasks if t.node], chosen):
                    self._restore(saved)
                    return False
                return True
        return False

    def _let_go(self, bundles: list[Bundle], *, reclaim: bool) -> list[Bundle]:
        """The bundles that may be evicted after the previous ones. A gang is evicted as a whole only after all pods
        above its minimum."""
        agreed: list[Task] = []
        out: list[Bundle] = []
        partly: set[str] = set()
        for bundle in bundles:
            allowed = self._unified([*agreed, *bundle.tasks], reclaim=reclaim)
            rest = [t for t in bundle.tasks if t in allowed]
            if bundle.whole and (len(rest) < len(bundle.tasks) or bundle.job.key in partly):
                continue
            if len(rest) < len(bundle.tasks):
                partly.add(bundle.job.key)
            # A pod that is kept counts when plugins evaluate the later ones, where its gang may lose others.
            agreed += bundle.tasks
            if rest:
                out.append(Bundle(bundle.job, rest, bundle.whole, rest, bundle.broken))
        return out

    def _enough(self, need: Amounts, victims: list[Task], domain: Domain) -> bool:
        room = _sum([v for v in victims if v.node in domain.nodes])
        for node in self.nodes:
            if node.name in domain.nodes:
                room = plus(plus(room, node.idle()), node.sum("Releasing"))
        return all(v <= room.get(n, 0.0) + 0.1 for n, v in need.items())

    def _trial(self, job: Job, parts: Mapping[Part | None, list[Task]], victims: list[Task], domain: Domain) -> bool:
        """Whether, after these evictions, subgroups with which the gang can start can be placed, each of them
        completely."""
        saved = self._save()
        grown = self._ready(job)
        for victim in victims:
            self._evict(victim, job)
        for part, tasks in parts.items():
            if self._part_fits(job, part, tasks, domain) and (grown or self._pipelined(job)):
                return True
        self._restore(saved)
        return False

    def _part_fits(self, job: Job, part: Part | None, tasks: list[Task], domain: Domain) -> bool:
        inner = [domain]
        if part is not None and job.rules[part[0]].get("networkTopology"):
            inner = self._domains_for(job, part, domain)
        for one in inner:
            saved = self._save()
            with self._in(one):
                whole = all(self._promised(job, task) for task in tasks)
            if whole and (part is None or job.in_part(part, *READY, "Pipelined") >= job.rules[part[0]]["subGroupSize"]):
                return True
            self._restore(saved)
        return False

    def _promised(self, job: Job, task: Task) -> bool:
        found = self._choose(task)
        if found is None or not self._room_for(job.queue, task.request):
            return False
        self._place(task, found[0], free=False, cleared=True)
        return True

    def _comes_back(self, tasks: list[Task], victims: list[Task]) -> bool:
        """Whether a gang that lost pods could have some of the tasks evicted in return."""
        for of in {v.job.key: v.job for v in victims if v.job is not None}.values():
            lost = [v for v in victims if v.job is of]
            if self._preemptive(of.queue, _sum(lost)) and self._unified(tasks, reclaim=True):
                return True
        return False

    # Bundles ---------------------------------------------------------------------------------------------------------

    def _may_lose(self, victim: Task, job: Job, *, reclaim: bool) -> bool:
        of = victim.job
        if of is None or of is job or not self._preemptable(victim) or not self._lets_go(of):
            return False
        if self._relieved(of):
            return False
        if reclaim:
            return victim.status == "Running" and of.queue is not job.queue and self._reclaimable(of.queue)
        return victim.status in ("Bound", "Running") and of.queue is job.queue and of.priority < job.priority

    def _lets_go(self, job: Job) -> bool:
        meta = self.groups[job.key]["metadata"]
        for given in (meta.get("annotations") or {}, meta.get("labels") or {}):
            if "volcano.sh/preemptable" in given:
                return given["volcano.sh/preemptable"] == "true"
        return True

    def _bundles(self, job: Job, domain: Domain, *, reclaim: bool) -> list[Bundle]:
        out: list[Bundle] = []
        there = [t for n in self.nodes if n.name in domain.nodes for t in n.tasks]
        for of in self.jobs.values():
            here = [t for t in there if t.job is of and self._may_lose(t, job, reclaim=reclaim)]
            here.sort(key=lambda t: (t.priority, t.uid))
            surplus = of.count(*READY) - of.minimum
            roles = {r: of.count(*READY, role=r) - least for r, least in self._roles(of).items()}
            spare = [of.whole_parts(i, *READY) - rule["minSubGroups"] for i, rule in enumerate(of.rules)]
            broken = {p for p in map(of.part_of, of.tasks) if p and of.in_part(p, *READY) < _size(of, p)}
            safe: list[Task] = []
            rest: list[Task] = []
            for task in here:
                part = of.part_of(task)
                intact = part if part is not None and part not in broken else None
                if len(safe) < surplus and roles.get(task.role, 1) > 0 and (intact is None or spare[intact[0]] > 0):
                    safe.append(task)
                    if task.role in roles:
                        roles[task.role] -= 1
                    if intact is not None:
                        spare[intact[0]] -= 1
                        broken.add(intact)
                else:
                    rest.append(task)
            if safe:
                out.append(Bundle(of, safe, whole=False, here=safe))
            left = [t for t in of.tasks if t.status in ALLOCATED and t not in safe]
            if rest and all(self._preemptable(t) and t.status in ("Bound", "Running") for t in left):
                left.sort(key=lambda t: (t.priority, t.uid))
                out.append(Bundle(of, left, whole=True, here=rest, broken=surplus < 0))
        return out

    def _sorted(self, bundles: list[Bundle], job: Job, need: Amounts, *, reclaim: bool) -> list[Bundle]:
        queues = [q.name for q in self._queues_in_order(job.queue)]
        last = sorted((j for j in self.jobs.values()), key=self._job_key, reverse=True)

        def key(bundle: Bundle) -> tuple[bool, int, float, str, str, int]:
            rank = queues.index(bundle.job.queue.name) if reclaim else last.index(bundle.job)
            worth = _worth(bundle, need)
            return (
                bundle.whole and not bundle.broken,
                rank,
                -worth,
                bundle.job.uid,
                bundle.tasks[0].uid,
                len(bundle.tasks),
            )

        return sorted(bundles, key=key)

    def _unified(self, candidates: list[Task], *, reclaim: bool) -> list[Task]:
        """The victims that all plugins with an opinion accept; each plugin evaluates those that the previous ones
        accepted."""
        known: dict[str, Callable[[list[Task]], list[Task]]] = {
            "conformance": self._not_the_systems,
            "pdb": self._within_budgets,
            "cdp": self._not_cooling,
        }
        if reclaim:
            known["capacity"] = self._beyond_quota_of_queues
        allowed = list(candidates)
        for name in self.plugins:
            if name in known:
                allowed = known[name](allowed)
        return allowed

    def _beyond_quota_of_queues(self, candidates: list[Task]) -> list[Task]:
        given = [(v.job.queue.name, no_pods(v.request)) for v in candidates if v.job is not None]
        return [candidates[i] for i in self._quota().victims_of_gang(given)]

    # Results --------------------------------------------------------------------------------------------------------

    @property
    def phases(self) -> dict[str, str]:
        return {job.key: self._phase(job) for job in self.jobs.values()}

    def _phase(self, job: Job) -> str:
        """The phase at the end of the cycle, when reservations of the gang are released."""
        there = sum(1 for t in job.tasks if t.status == "Releasing" and t.node)
        scheduled = job.count("Running", "Bound", "Failed", "Succeeded") + there
        ends = scheduled >= job.minimum and not job.count("Pending", "Pipelined")
        given_back = sum(1 for t in job.tasks if t.status in ("Pending", "Pipelined", "Allocated") and t.best_effort)
        stays = job.count(*(status for status in READY if status != "Allocated"))
        enough = stays + given_back >= job.minimum
        if "gang" in self.plugins and job.tasks and not enough and not ends and job.count("Running"):
            return "Unknown"
        if scheduled >= job.minimum:
            return "Completed" if scheduled == job.count("Succeeded", "Failed") else "Running"
        return "Inqueue" if job.phase == "Inqueue" else "Pending"


def _size(job: Job, part: Part) -> int:
    return int(job.rules[part[0]]["subGroupSize"])


def _sum(tasks: list[Task]) -> Amounts:
    total: Amounts = {}
    for task in tasks:
        total = plus(total, task.request)
    return total


def _worth(bundle: Bundle, need: Amounts) -> float:
    """The share of the need that the bundle frees, relative to the cost of evicting it."""
    if not bundle.whole or bundle.broken:
        return inf
    asked = {n: v for n, v in need.items() if v > 0}
    here, all_of_it = _sum(bundle.here), _sum(bundle.job.tasks)
    cost = sum(all_of_it.get(n, 0.0) / v for n, v in asked.items())
    return sum(min(here.get(n, 0.0), v) / v for n, v in asked.items()) / cost if cost else inf
