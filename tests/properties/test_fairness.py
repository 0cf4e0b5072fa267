"""Fairness over many cycles: what queues, gangs and accounts hold on average is what they deserve, whatever arrives and
ends, and nobody with demand is passed over for ever."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.unit.scheduler.cluster import START, Cluster
from vcbatch.api.timestamps import format_time
from vcbatch.scheduler import Policy, build_policy

SETTINGS = settings(max_examples=examples(4), suppress_health_check=[HealthCheck.too_slow])
CPUS = 12
CYCLES = 40
TINY = 1e-6

WEIGHTS = {
    "proportion": [{"name": "proportion"}],
    "capacity": [{"name": "capacity"}],
    "capacity in a tree": [{"name": "capacity", "enableHierarchy": True}],
    "drf in a tree": [{"name": "drf", "enableHierarchy": True}],
}
"""The ways to say what queues deserve."""


def policy(*plugins: dict[str, Any], before: Sequence[str] = (), actions: str = "enqueue, allocate") -> Policy:
    """`before` are plugins of a tier before that of gang."""
    gang = {"name": "gang", "enableReclaimable": False}  # gangs of one pod may be ended
    tiers = [
        {"plugins": [{"name": name} for name in before]},
        {"plugins": [gang, *plugins]},
        {"plugins": [{"name": "predicates"}, {"name": "nodeorder"}]},
    ]
    return build_policy({"actions": actions, "tiers": tiers})


class Stream(Cluster):
    """A cluster of 12 cpus in which gangs come and go. Each queue has a line of gangs that wait, which grows again as
    soon as one starts; a gang ends so many cycles after it began, by chance."""

    def __init__(self, policy: Policy, chance: random.Random, *, nodes: int = 3) -> None:
        super().__init__(policy)
        self.chance = chance
        self.clock = 0
        self.count = 0
        self.ends: deque[tuple[int, str]] = deque()
        self.size: dict[str, int] = {}
        self.of: dict[str, str] = {}
        self.waits: dict[str, int] = {}
        self.held: Counter[str] = Counter()
        """By queue (or label `team`): cpus now."""
        for node in range(nodes):
            self.node(f"n{node}", cpu=str(CPUS // nodes), memory="256Gi", pods="50")

    def queues(self, way: str, weights: Mapping[str, int]) -> None:
        """Queues that deserve parts of the cluster by these weights."""
        whole = sum(weights.values())
        for name, weight in weights.items():
            part = {"cpu": f"{CPUS * 1000 * weight // whole}m", "memory": "256Gi"}
            match way:
                case "drf in a tree":
                    prefix = "volcano.sh/hierarchy"
                    self.queue(name, annotations={prefix: f"root/{name}", f"{prefix}-weights": f"1/{weight}"})
                case "capacity":
                    self.queue(name, deserved=part)
                case "capacity in a tree":
                    self.queue(name, parent="root", deserved=part)
                case _:
                    self.queue(name, weight=weight)

    def arrive(self, queue: str, size: int = 1, *, of: str = "", **given: Any) -> str:
        name = f"g{self.count}"
        self.count += 1
        created = START - timedelta(days=1) + timedelta(seconds=self.count)
        self.gang(name, size, queue=queue, created=format_time(created), **given)
        self.size[name], self.of[name], self.waits[name] = size, of or queue, self.clock
        return name

    def turn(self, *, lasting: tuple[int, int] = (1, 6)) -> list[str]:
        """One cycle, before which gangs whose time is over end. The gangs that started."""
        self.clock += 1
        for name in [name for end, name in self.ends if end <= self.clock]:
            self.held[self.of[name]] -= self.size[name]
            self.delete_gang(name)
        self.ends = deque((end, name) for end, name in self.ends if end > self.clock)
        started = sorted({bind.name.partition("-")[0] for bind in self.cycle().binds})
        for name in started:
            self.run(name)
            self.held[self.of[name]] += self.size[name]
            self.waits.pop(name, None)
            self.ends.append((self.clock + self.chance.randint(*lasting), name))
        return started

    def waiting(self, of: str) -> int:
        return sum(1 for name in self.waits if self.of[name] == of)


weights = st.lists(st.integers(1, 4), min_size=2, max_size=3)


@pytest.mark.parametrize("way", WEIGHTS)
@SETTINGS
@given(weights=weights, chance=st.randoms(use_true_random=False))
def test_what_queues_hold_converges_to_what_they_deserve(way: str, weights: list[int], chance: random.Random) -> None:
    """On average none holds a whole pod more than it deserves, and so none lacks more than one for each other queue."""
    stream = Stream(policy(*WEIGHTS[way]), chance)
    queues = {f"q{nth}": weight for nth, weight in enumerate(weights)}
    stream.queues(way, queues)
    seen: Counter[str] = Counter()
    for turn in range(CYCLES):
        for queue in queues:
            while stream.waiting(queue) < CPUS + 2:
                stream.arrive(queue)
        stream.turn()
        if turn >= CYCLES // 2:
            seen.update(stream.held)
    for queue, weight in queues.items():
        deserved = CPUS * weight / sum(weights)
        held = seen[queue] / (CYCLES - CYCLES // 2)
        assert deserved - len(queues) + 1 - TINY <= held <= deserved + 1, (queue, held, deserved)


@pytest.mark.parametrize("way", ["proportion", "capacity", "capacity in a tree"])
@SETTINGS
@given(weights=weights, chance=st.randoms(use_true_random=False))
def test_who_comes_late_gets_its_part_back(way: str, weights: list[int], chance: random.Random) -> None:
    """By reclaim, though nothing ever ends: within one pod of what it deserves, and the cluster stays full but for what
    no queue may have."""
    stream = Stream(policy(*WEIGHTS[way], actions="enqueue, allocate, reclaim"), chance)
    queues = {f"q{nth}": weight for nth, weight in enumerate(weights)}
    stream.queues(way, queues)
    first, *others = queues
    for _ in range(CPUS):
        stream.arrive(first)
    for _ in range(3):
        stream.turn(lasting=(1000, 1000))
    assert stream.held[first] == CPUS
    for queue in others:
        for _ in range(CPUS):
            stream.arrive(queue)
    for _ in range(4 * CPUS):
        result = stream.cycle()
        for bind in result.binds:
            stream.run(bind.name.partition("-")[0])
        for eviction in result.evictions:
            stream.delete_gang(eviction.name.partition("-")[0])
    held = Counter(stream.of[name] for name in stream.groups if stream.placed(name))
    for queue in others:
        assert held[queue] > CPUS * queues[queue] / sum(weights) - 1, (queue, held)
    assert sum(held.values()) > CPUS - len(queues)


@pytest.mark.parametrize("way", WEIGHTS)
@SETTINGS
@given(
    arrivals=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4)), min_size=20, max_size=40),
    chance=st.randoms(use_true_random=False),
)
def test_no_queue_with_demand_starves(way: str, arrivals: list[tuple[int, int]], chance: random.Random) -> None:
    """Gangs of 1 to 4, in any order and from any queue, all start: nobody's line stands still while others are served
    again and again."""
    stream = Stream(policy(*WEIGHTS[way], actions="enqueue, allocate, backfill"), chance)
    queues = {f"q{nth}": 1 for nth in range(3)}
    stream.queues(way, queues)
    line = deque(arrivals)
    served = dict.fromkeys(queues, 0)
    for turn in range(12 * len(arrivals)):
        for _ in range(chance.randint(0, 2)):
            if line:
                queue, size = line.popleft()
                stream.arrive(f"q{queue}", size)
        for name in stream.turn(lasting=(1, 3)):
            served[stream.of[name]] = turn
        for queue in queues:
            if not stream.waiting(queue):
                served[queue] = turn
            assert turn - served[queue] <= 20, f"{queue} has waited since turn {served[queue]}"
        if not line and not stream.waits:
            break
    assert not stream.waits


LARGE = {
    "by a limit of its wait": (["sla"], {"annotations": {"volcano.sh/sla-waiting-time": "1s"}}, {}),
    "in a queue that is a line": ([], {}, {"dequeueStrategy": "fifo"}),
}


@pytest.mark.parametrize("how", LARGE)
@SETTINGS
@given(chance=st.randoms(use_true_random=False))
def test_a_large_gang_starts_though_small_ones_never_end_coming(how: str, chance: random.Random) -> None:
    before, gang, queue = LARGE[how]
    stream = Stream(policy(before=before), chance)
    stream.queue("q", **queue)
    for _ in range(2 * CPUS):
        stream.arrive("q")
    for _ in range(3):
        stream.turn()
    large = stream.arrive("q", CPUS, **gang)
    for _ in range(40):
        while stream.waiting("q") < CPUS:
            stream.arrive("q")
        if large in stream.turn():
            break
    assert stream.placed(large), "small ones went before it for ever"


def test_without_either_small_ones_may_go_before_it() -> None:
    """So that the test before says something."""
    stream = Stream(policy(), random.Random(1))
    stream.queue("q")
    for _ in range(2 * CPUS):
        stream.arrive("q")
    large = stream.arrive("q", CPUS)
    for _ in range(40):
        while stream.waiting("q") < CPUS:
            stream.arrive("q")
        stream.turn()
    assert not stream.placed(large)


@SETTINGS
@given(
    sizes=st.lists(st.integers(1, 3), min_size=2, max_size=4),
    chance=st.randoms(use_true_random=False),
)
def test_gangs_of_a_queue_grow_to_equal_shares(sizes: list[int], chance: random.Random) -> None:
    """Under drf, whatever their pods ask for and whichever of them end: the shares of gangs that want more differ by
    one pod of the larger at most, once as many pods ended as there were."""
    stream = Stream(policy({"name": "drf"}), chance, nodes=1)
    cpus = {f"g{nth}": cpu for nth, cpu in enumerate(sizes)}
    made: Counter[str] = Counter()
    for name, cpu in cpus.items():
        stream.gang(name, 0, minimum=1)
        for _ in range(2 * CPUS):
            stream.pod(name, made[name], cpu=str(cpu))
            made[name] += 1
    for _ in range(CYCLES):
        for bind in stream.cycle().binds:
            stream.change(bind.name, phase="Running")
        running = [name for name, raw in stream.pods.items() if raw["status"]["phase"] == "Running"]
        ended = chance.choice(sorted(running))
        gang = ended.partition("-")[0]
        stream.delete(ended)
        stream.pod(gang, made[gang], cpu=str(cpus[gang]))
        made[gang] += 1
    stream.cycle()
    share = {name: len(stream.placed(name)) * cpu for name, cpu in cpus.items()}
    assert max(share.values()) - min(share.values()) <= 2 * max(sizes), share


FAIR = {"name": "fair-share", "arguments": {"half-life": "1m", "account-label": "team"}}
"""A cycle of the helper is two seconds: a half-life is 30 of them."""


def _teams(stream: Stream, *teams: str) -> None:
    for team in teams:
        while stream.waiting(team) < CPUS + 2:
            stream.arrive("default", of=team, labels={"team": team})


@pytest.mark.parametrize("before", [0, 60, 120])
def test_accounts_that_always_want_more_come_to_use_the_same(before: int) -> None:
    """However long one of them had everything: the other goes first until that has faded, and they are equal then."""
    stream = Stream(policy(FAIR), random.Random(before))
    for _ in range(before):
        _teams(stream, "old")
        stream.turn()
    used: list[Mapping[str, int]] = []
    for _ in range(300):
        _teams(stream, "old", "new")
        stream.turn()
        used.append(Counter(stream.held))
    early = {team: sum(held[team] for held in used[8:20]) for team in ("old", "new")}
    late = {team: sum(held[team] for held in used[-100:]) / 100 for team in ("old", "new")}
    if before >= 60:
        assert early["new"] > 2 * early["old"]
    assert abs(late["old"] - late["new"]) <= 1.5, late
