"""Gangs with topology constraints: every domain is tried by brute force, the nearest first.

Unless a plugin scores domains, the first one by name within a tier that fits the gang is chosen. If none has enough
idle capacity, one whose capacity is being released is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from math import inf

from tests.oracle.model import READY, Job, Json, Node, Part, Task, kind
from tests.oracle.oracle import Oracle

HELD = (*[status for status in READY if status != "Succeeded"], "Pipelined")


@dataclass(frozen=True, slots=True)
class Domain:
    """A HyperNode as a domain for pods, by the names of its nodes; the root is the whole cluster."""

    tier: int
    name: str
    nodes: frozenset[str]
    above: Domain | None = None

    @property
    def path(self) -> list[Domain]:
        """The domains from this one up to the whole cluster."""
        return [self, *(self.above.path if self.above is not None else ())]


def domains_of(world: Json) -> list[Domain]:
    """All domains by tier and name; the whole cluster last."""
    members: dict[str, list[Mapping[str, str]]] = {
        h["metadata"]["name"]: [{"type": m["type"], "name": m["selector"]["exactMatch"]["name"]} for m in of]
        for h in world.get("hyperNodes") or ()
        for of in [h["spec"]["members"]]
    }
    tiers = {h["metadata"]["name"]: h["spec"]["tier"] for h in world.get("hyperNodes") or ()}
    parents = {m["name"]: name for name, of in members.items() for m in of if m["type"] == "HyperNode"}
    nodes = frozenset(n["metadata"]["name"] for n in world["nodes"])

    def inside(name: str) -> frozenset[str]:
        found = {m["name"] for m in members[name] if m["type"] == "Node"}
        below = [inside(m["name"]) for m in members[name] if m["type"] == "HyperNode"]
        return frozenset(found.union(*below) & nodes)

    top = Domain(max(tiers.values(), default=0) + 1, "", nodes)
    made: dict[str, Domain] = {}
    for name in sorted(tiers, key=lambda n: -tiers[n]):
        above = made[parents[name]] if name in parents else top
        made[name] = Domain(tiers[name], name, inside(name), above)
    return [*sorted(made.values(), key=lambda d: (d.tier, d.name)), top]


class NearOracle(Oracle):
    """One cycle on a cluster with HyperNodes."""

    def _read(self, world: Json) -> None:
        self.domains = domains_of(world)
        self._only: frozenset[str] | None = None
        self._whole: Domain | None = None
        super()._read(world)

    # Allowed domains
    # ---------------------------------------------------------------------------------------------------

    def _near(self, job: Job) -> bool:
        return bool(job.topology) or any(rule.get("networkTopology") for rule in job.rules)

    def _confined(self, job: Job) -> bool:
        """Whether a topology constraint excludes domains."""
        given = [job.topology, *(rule.get("networkTopology") for rule in job.rules)]
        return any(_tier(one, 0) for one in given)

    def _limit(self, job: Job, part: Part | None) -> int:
        whole = _tier(job.topology, self.domains[-1].tier)
        return whole if part is None else _tier(job.rules[part[0]].get("networkTopology"), whole)

    def _around(self, job: Job, part: Part | None) -> Domain | None:
        """The lowest domain that contains all nodes in use by the gang or subgroup."""
        held = {t.node for t in job.tasks if t.status in HELD and part in (None, job.part_of(t))}
        return next(d for d in self.domains if held <= d.nodes) if held else None

    def _domains_for(self, job: Job, part: Part | None, within: Domain | None = None) -> list[Domain]:
        root = within or self.domains[-1]
        topology = job.topology if part is None else job.rules[part[0]].get("networkTopology")
        if not topology:
            return [root]
        limit = self._limit(job, part)
        held = self._around(job, part)
        if held is not None:
            around = [d for d in held.path if d.tier <= limit]
            if not around:
                return []
            if around[-1] not in root.path:
                if root not in around[-1].path:
                    return []
                root = around[-1]
        return [d for d in self.domains if root in d.path and d.tier <= limit]

    @contextmanager
    def _in(self, domain: Domain | None) -> Iterator[None]:
        """Restrict placements to nodes of the domain."""
        before = self._only
        if domain is not None:
            self._only = domain.nodes
        try:
            yield
        finally:
            self._only = before

    def _open(self) -> list[Node]:
        return [n for n in super()._open() if self._only is None or n.name in self._only]

    # Capacity, one kind of task at a time
    # ------------------------------------------------------------------------------

    def _slots(self, task: Task, domain: Domain, most: int) -> int:
        """The number of such tasks that fit on idle capacity, for that kind alone, up to `most`."""
        found = 0
        for node in [n for n in self.nodes if n.name in domain.nodes]:
            before = list(node.tasks)
            while found < most and self._passes(node, task) and (task.best_effort or self._fits(node.idle(), task)):
                node.tasks.append(_copy(task, node))
                found += 1
            node.tasks = before
        return found

    def _roomy(self, tasks: Sequence[Task], domain: Domain) -> int:
        by_kind: dict[object, list[Task]] = {}
        for task in tasks:
            by_kind.setdefault(kind(task)[1:], []).append(task)
        return sum(self._slots(alike[0], domain, len(alike)) for alike in by_kind.values())

    def _pending(self, job: Job) -> list[Task]:
        return [t for t in job.tasks if t.status == "Pending" and not t.best_effort]

    def _lacks(self, job: Job) -> int:
        if "gang" not in self.plugins:
            return 1
        return max(job.minimum - job.count(*READY) - self._hoped(job), 1)

    def _now(self, job: Job, tasks: Sequence[Task], domain: Domain, part: Part | None = None) -> bool:
        """Whether by count the domain has idle capacity for the required tasks."""
        if part is not None:
            mine = [t for t in tasks if job.part_of(t) == part]
            return self._roomy(mine, domain) >= max(job.rules[part[0]]["subGroupSize"] - job.in_part(part, *READY), 1)
        if self._roomy(tasks, domain) < self._lacks(job):
            return False
        return all(self._whole_ones(job, tasks, domain, i) for i in range(len(job.rules)))

    def _whole_ones(self, job: Job, tasks: Sequence[Task], domain: Domain, rule: int) -> bool:
        lacking = job.rules[rule]["minSubGroups"] - job.whole_parts(rule, *READY)
        parts = {p for p in map(job.part_of, tasks) if p is not None and p[0] == rule}
        return lacking <= 0 or sum(self._holds(job, tasks, domain, p) for p in parts) >= lacking

    def _holds(self, job: Job, tasks: Sequence[Task], domain: Domain, part: Part) -> bool:
        if job.in_part(part, *READY) >= job.rules[part[0]]["subGroupSize"]:
            return False
        if not job.rules[part[0]].get("networkTopology"):
            return self._now(job, tasks, domain, part)
        return any(domain in own.path and self._now(job, tasks, own, part) for own in self._domains_for(job, part))

    # Placing ---------------------------------------------------------------------------------------------------------

    def _tiers(
        self, job: Job, tasks: Sequence[Task], part: Part | None = None, within: Domain | None = None
    ) -> Iterator[list[Domain]]:
        """The domains by tier, the nearest first; within a tier those with idle capacity first."""
        for _, of in groupby(self._domains_for(job, part, within), key=lambda d: d.tier):
            yield sorted(of, key=lambda d: (not self._now(job, tasks, d, part), -self._fullness(job, tasks, d)))

    def _fullness(self, job: Job, tasks: Sequence[Task], domain: Domain) -> float:
        """Domains with a higher value are tried first."""
        return 0.0

    def _serve(self, job: Job, sheet: list[Task]) -> list[Task]:
        if not self._near(job):
            return super()._serve(job, sheet)
        for tier in self._tiers(job, self._pending(job)):
            later: tuple[list[Task], Callable[[], list[Task]]] | None = None
            for domain in tier:
                left = list(sheet)
                self._whole = domain
                with self._in(domain):
                    placed = super()._serve(job, left)
                if placed and self._ready(job):
                    sheet[:] = left
                    return placed
                later = later or ((left, self._again(placed)) if placed and self._pipelined(job) else None)
                for task in reversed(placed):
                    self._undo(task)
            if later is not None:
                sheet[:], again = later[0], later[1]
                return again()
        sheet.clear()
        return []

    def _again(self, placed: Sequence[Task]) -> Callable[[], list[Task]]:
        """A function that places the tasks again as they are placed now."""
        there = [(t, next(n for n in self.nodes if n.name == t.node), t.status == "Allocated") for t in placed]

        def place() -> list[Task]:
            for task, node, free in there:
                self._place(task, node, free)
            return [task for task, _, _ in there]

        return place

    def _whole_part(self, job: Job, part: Part, mine: list[Task]) -> tuple[list[Task], list[Task]]:
        if not job.rules[part[0]].get("networkTopology"):
            return super()._whole_part(job, part, mine)
        for tier in self._tiers(job, self._pending(job), part, self._whole):
            for domain in tier:
                with self._in(domain):
                    done, got = super()._whole_part(job, part, list(mine))
                if got:
                    return done, got
        return list(mine), []

    # Best-effort tasks ------------------------------------------------------------------------------------------------

    def _fill_in(self, job: Job) -> list[Task]:
        if not self._near(job):
            return super()._fill_in(job)
        waiting = self._task_order([t for t in job.tasks if t.status == "Pending" and t.best_effort])
        whole = self._home(job, waiting, None, None)
        homes: dict[Part | None, Domain | None] = {None: whole}
        placed: list[Task] = []
        for task in waiting:
            part = job.part_of(task)
            part = part if part is not None and job.rules[part[0]].get("networkTopology") else None
            if part not in homes:
                homes[part] = None if whole is None else self._home(job, waiting, part, whole)
            home = homes[part]
            if home is None:
                continue
            with self._in(home):
                found = self._choose(task)
            if found is not None:
                self._place(task, *found)
                placed.append(task)
        return placed

    def _home(self, job: Job, waiting: Sequence[Task], part: Part | None, within: Domain | None) -> Domain | None:
        """The domain around the gang's running pods, as far as allowed; else the nearest one that fits the
        required tasks."""
        allowed = self._domains_for(job, part, within)
        if not allowed or self._around(job, part) is not None:
            return allowed[-1] if allowed else None
        mine = [t for t in waiting if part in (None, job.part_of(t))]
        size = job.minimum if part is None else job.rules[part[0]]["subGroupSize"]
        has = job.count(*READY) if part is None else job.in_part(part, *READY)
        needed = min(max(size - has, 1), len(mine))
        return next((d for d in allowed if self._roomy(mine, d) >= needed), None)


def _tier(topology: Json | None, otherwise: int) -> int:
    """The highest allowed tier."""
    if not topology or topology.get("mode", "hard") != "hard" or "highestTierAllowed" not in topology:
        return otherwise
    return int(min(topology["highestTierAllowed"], inf))


def _copy(task: Task, node: Node) -> Task:
    """A copy of the task, placed on the node."""
    made = Task(**{name: getattr(task, name) for name in task.__dataclass_fields__})
    made.status, made.node = "Allocated", node.name
    return made
