"""numa-aware: pods with exclusive CPUs, on nodes whose kubelet could allocate CPUs near each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from tests.oracle.model import Json, Node, Task, amounts
from tests.oracle.near import NearOracle
from tests.oracle.rules import Rules

Cpus = frozenset[int]
NONE = ("", "none")


class Board:
    """The CPUs of one node from its report, and those of them that are free."""

    def __init__(self, spec: Json) -> None:
        self.at = {
            int(cpu): (place["numa"], place["socket"], place["core"]) for cpu, place in spec["cpuDetail"].items()
        }
        self.static = spec["policies"]["CPUManagerPolicy"] == "static"
        self.policy: str = spec["policies"]["TopologyManagerPolicy"]
        self.free = frozenset(int(cpu) for cpu in filter(None, spec["numares"]["cpu"]["allocatable"].split(",")))
        self.kept = self.take(frozenset(self.at), int(spec["resReserved"]["cpu"]))

    def numa(self, cpus: Cpus) -> set[int]:
        return {self.at[cpu][0] for cpu in cpus}

    def take(self, free: Cpus, count: int) -> Cpus:
        """Allocate `count` CPUs: whole sockets as far as they are free and needed, then whole cores, then single
        ones."""
        taken: set[int] = set()
        for width in (1, 2):
            groups = {self.at[cpu][1 : 1 + width] for cpu in free}
            in_socket = {group: sum(self.at[c][1] == group[0] for c in free - taken) for group in groups}
            for group in sorted(groups, key=lambda g: (in_socket[g] if len(g) == 2 else 0, g)):
                cpus = {cpu for cpu, place in self.at.items() if place[1 : 1 + width] == group}
                if cpus <= free - taken and len(cpus) <= count - len(taken):
                    taken |= cpus
        while len(taken) < count:
            taken.add(min(free - taken, key=lambda cpu: self._next(cpu, free, taken)))
        return frozenset(taken)

    def _next(self, cpu: int, free: Cpus, taken: set[int]) -> tuple[int, ...]:
        _, socket, core = self.at[cpu]
        with_taken = sum(self.at[other][1] == socket for other in taken)
        left = [self.at[other] for other in free - taken]
        in_core = sum(place[1:] == (socket, core) for place in left)
        return -with_taken, sum(place[1] == socket for place in left), in_core, socket, core, cpu

    def given(self, counts: Sequence[int], policy: str) -> Cpus | None:
        """The CPUs that containers with these counts would get, one after the other; None where the policy doesn't
        allow it."""
        free, out = self.free - self.kept, set[int]()
        for count in filter(None, counts):
            preferred, where = min(self._hints(free, count, policy), key=lambda h: (not h[0], len(h[1]), _bits(h[1])))
            if not preferred and policy != "best-effort":
                return None
            if len(free) < count:
                continue
            near = frozenset(cpu for cpu in free if self.at[cpu][0] in where)
            got = self.take(near, min(count, len(near)))
            got |= self.take(free - got, count - len(got))
            free, out = free - got, out | got
        return frozenset(out)

    def _hints(self, free: Cpus, count: int, policy: str) -> Iterator[tuple[bool, tuple[int, ...]]]:
        """The sets of NUMA nodes that together have enough free CPUs, with whether no smaller set could ever
        suffice."""
        every = sorted({numa for numa, _, _ in self.at.values()})
        masks = [mask for size in range(1, len(every) + 1) for mask in combinations(every, size)]

        def within(cpus: Cpus, mask: tuple[int, ...]) -> int:
            return sum(self.at[cpu][0] in mask for cpu in cpus)

        least = min((len(mask) for mask in masks if within(frozenset(self.at), mask) >= count), default=len(every))
        yield False, tuple(every)
        for mask in masks:
            good = len(mask) == least
            if within(free, mask) >= count and (policy != "single-numa-node" or (good and len(mask) == 1)):
                yield good, mask


def _bits(mask: tuple[int, ...]) -> int:
    return sum(2**numa for numa in mask)


class Numa(Rules):
    def __init__(self, oracle: NearOracle, world: Json, given: Json) -> None:
        super().__init__(oracle, world, given)
        self._boards = {n["metadata"]["name"]: Board(n["spec"]) for n in world["numatopologies"]}
        self._pods = {p["metadata"]["uid"]: p for p in world["pods"]}
        self._held: dict[str, tuple[str, Cpus]] = {}

    def _request(self, task: Task) -> tuple[str, list[int]] | None:
        """The policy, and the number of exclusive CPUs of each container; None for a pod without exclusive CPUs."""
        pod = self._pods[task.uid]
        counts: list[int] = []
        for container in pod["spec"]["containers"]:
            limits = amounts(container["resources"].get("limits"))
            asked = amounts(container["resources"]["requests"])
            if any(name not in limits or limits[name] != asked[name] for name in ("cpu", "memory")):
                return None
            counts.append(int(asked["cpu"]) // 1000 if asked["cpu"] % 1000 == 0 else 0)
        return pod["metadata"]["annotations"].get("volcano.sh/numa-topology-policy", ""), counts

    def _cpus(self, node: Node, task: Task) -> Cpus | None:
        """The exclusive CPUs that the pod would get there; None where it can't be placed there."""
        request, board = self._request(task), self._boards.get(node.name)
        if request is None:
            return frozenset()
        policy, counts = request
        if policy not in NONE and (board is None or not board.static or board.policy != policy or not board.free):
            return None
        if board is None or not board.static or board.policy in NONE:
            return frozenset()
        return board.given(counts, board.policy)

    def passes(self, node: Node, task: Task) -> bool:
        return self._cpus(node, task) is not None

    def placed(self, node: Node, task: Task) -> None:
        cpus = self._cpus(node, task)
        if cpus:
            self._held[task.uid] = node.name, cpus
            self._boards[node.name].free -= cpus

    def gone(self, node: Node, task: Task) -> None:
        if task.uid in self._held:
            name, cpus = self._held.pop(task.uid)
            self._boards[name].free |= cpus

    def points(self, nodes: Sequence[Node], task: Task) -> list[float]:
        request = self._request(task)
        if request is None or request[0] in NONE:
            return super().points(nodes, task)
        used = [len(self._boards[node.name].numa(self._cpus(node, task) or frozenset())) for node in nodes]
        most = max(used)
        return [self.given.get("weight", 1) * (100.0 - 100 * count // most if most else 100.0) for count in used]
