"""What the lending of nodes says of gangs that wait: who goes first, who may have others evicted, and whom."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.scheduler.cluster import Cluster
from tests.unit.scheduler.scoring import plugin_of, points, policy, session, task_of
from vcbatch.scheduler.framework.plugin import Vote
from vcbatch.scheduler.plugins.tdm import Tdm

ARGUMENTS = {"tdm.revocable-zone.always": "00:00-00:00", "tdm.revocable-zone.noon": "12:00-12:01"}
"""The clock of the tests stands at midnight."""
PREEMPTABLE = {"volcano.sh/preemptable": "true"}
STAYS = {"volcano.sh/preemptable": "false"}
REVOCABLE = {"volcano.sh/revocable-zone": "*"}


def cluster() -> Cluster:
    made = Cluster(policy("tdm", ARGUMENTS))
    made.node("own", cpu="40", pods="100")
    for zone in ("always", "noon", "unknown"):
        made.node(zone, cpu="40", pods="100", labels={"volcano.sh/revocable-zone": zone})
    return made


def running(made: Cluster, name: str, node: str, count: int = 1, *, notes: Any = None, **budget: str) -> list[str]:
    made.gang(name, count, annotations=budget, pod={"nodeName": node, "notes": notes})
    made.run(name)
    return [f"{name}-worker-{index}" for index in range(count)]


def victims(made: Cluster, actor: str, candidates: list[str]) -> list[str]:
    opened = session(made, policy("tdm", ARGUMENTS))
    found = plugin_of(opened, Tdm).preemptable(task_of(opened, actor), [task_of(opened, c) for c in candidates])
    assert found is not None
    return [task.name for task in found]


def test_gangs_that_may_not_be_evicted_go_first() -> None:
    """A PodGroup says so itself, by annotation or label; one that says nothing may not be."""
    made = cluster()
    made.gang("says", 1, annotations=PREEMPTABLE)
    made.gang("labelled", 1, labels=PREEMPTABLE)
    made.gang("silent", 1, pod={"notes": PREEMPTABLE})
    made.gang("stays", 1, annotations=STAYS)
    opened = session(made, policy("tdm", ARGUMENTS))
    plugin = plugin_of(opened, Tdm)
    keys = {name: plugin.job_key(opened.state.jobs[f"ns/{name}"]) for name in made.groups}
    assert keys == {"says": 1, "labelled": 1, "silent": 0, "stays": 0}


@pytest.mark.parametrize(("waiting", "notes", "starves"), [(1, {}, True), (0, {}, False), (1, PREEMPTABLE, False)])
def test_gangs_with_pods_that_wait_starve_unless_they_may_be_evicted(
    waiting: int, notes: dict[str, str], starves: bool
) -> None:
    made = cluster()
    made.gang("g", 3, minimum=1, annotations=notes, pod={"nodeName": "own"})
    made.run("g")
    for index in range(waiting):
        made.pod("g", 3 + index)
    opened = session(made, policy("tdm", ARGUMENTS))
    assert plugin_of(opened, Tdm).job_starving(opened.state.jobs["ns/g"]) is starves


@pytest.mark.parametrize(("minimum", "vote"), [(2, Vote.PERMIT), (3, Vote.PERMIT), (4, Vote.REJECT)])
def test_what_a_gang_got_is_held_where_it_is_its_minimum(minimum: int, vote: Vote) -> None:
    """Two run, one that asks for nothing and one that asks for something wait."""
    made = cluster()
    made.gang("g", 2, minimum=minimum, pod={"nodeName": "own"})
    made.run("g")
    made.pod("g", 2, cpu=None)
    made.pod("g", 3)
    opened = session(made, policy("tdm", ARGUMENTS))
    assert plugin_of(opened, Tdm).job_pipelined(opened.state.jobs["ns/g"]) is vote


def test_one_pod_of_each_gang_goes_where_its_node_is_never_lent() -> None:
    made = cluster()
    pods = [*running(made, "one", "own", 2), *running(made, "two", "own", 2)]
    pods += [*running(made, "lent", "always"), *running(made, "late", "noon"), *running(made, "else", "unknown")]
    pods += running(made, "stays", "own", notes=STAYS)
    made.gang("new", 1, pod={"notes": STAYS})
    assert victims(made, "new-worker-0", pods) == ["one-worker-0", "two-worker-0"]


def test_pods_that_do_not_run_yet_stay() -> None:
    made = cluster()
    made.gang("bound", 1, pod={"nodeName": "own"})
    made.gang("new", 1, pod={"notes": STAYS})
    assert victims(made, "new-worker-0", ["bound-worker-0"]) == []


@pytest.mark.parametrize(
    ("notes", "gone"),
    [
        ({}, []),  # a pod that says nothing may be evicted
        (PREEMPTABLE, []),
        (STAYS, ["old-worker-0"]),
        ({**STAYS, **REVOCABLE}, []),
    ],
)
def test_nobody_goes_for_a_pod_that_may_be_evicted_or_run_on_lent_nodes(notes: dict[str, str], gone: list[str]) -> None:
    made = cluster()
    pods = running(made, "old", "own")
    made.gang("new", 1, pod={"notes": notes})
    assert victims(made, "new-worker-0", pods) == gone


@pytest.mark.parametrize(
    ("budget", "gone"),
    [
        ({"volcano.sh/jdb-max-unavailable": "3"}, 2),  # one of six doesn't run
        ({"volcano.sh/jdb-max-unavailable": "1"}, 0),
        ({"volcano.sh/jdb-max-unavailable": "34%"}, 2),  # 2.04, rounded up
        ({"volcano.sh/jdb-min-available": "3"}, 2),
        ({"volcano.sh/jdb-min-available": "51%"}, 1),  # 3.06, rounded up
        ({"volcano.sh/jdb-min-available": "6"}, 0),
        ({"volcano.sh/jdb-max-unavailable": "3", "volcano.sh/jdb-min-available": "5"}, 2),  # the first counts
    ],
)
def test_so_many_go_as_the_gang_can_do_without(budget: dict[str, str], gone: int) -> None:
    made = cluster()
    pods = running(made, "old", "own", 5, **budget)
    made.pod("old", 5)
    made.gang("new", 1, pod={"notes": STAYS})
    assert victims(made, "new-worker-0", pods) == pods[:gone]


def test_the_least_important_pods_of_a_gang_go() -> None:
    made = cluster()
    made.gang("old", 0, minimum=1, annotations={"volcano.sh/jdb-min-available": "1"})
    for index, priority in enumerate((3, 1, 2)):
        made.pod("old", index, priority=priority, nodeName="own")
    made.run("old")
    made.gang("new", 1, pod={"notes": STAYS})
    assert victims(made, "new-worker-0", list(made.pods)[:3]) == ["old-worker-1", "old-worker-2"]


@pytest.mark.parametrize("notes", [REVOCABLE, PREEMPTABLE])
def test_pods_that_may_run_on_lent_nodes_rather_do(notes: dict[str, str]) -> None:
    made = cluster()
    made.gang("g", 1, pod={"notes": notes})
    opened = session(made, policy("tdm", ARGUMENTS))
    found = points(opened, plugin_of(opened, Tdm), "g-worker-0")
    assert found == {"own": 0, "always": 100, "noon": 0, "unknown": 0}


@pytest.mark.parametrize(
    ("notes", "node"),
    [
        (REVOCABLE, {"always": True, "noon": False, "unknown": False}),
        ({"volcano.sh/revocable-zone": "always"}, {"always": False, "noon": False, "unknown": False}),
        (STAYS, {"always": False, "noon": False, "unknown": False}),
    ],
)
def test_nodes_of_a_zone_take_revocable_pods_while_its_window_is_open(
    notes: dict[str, str], node: dict[str, bool]
) -> None:
    for name, taken in node.items():
        made = cluster()
        made.gang("g", 1, pod={"notes": notes, "nodeSelector": {"kubernetes.io/hostname": name}})
        made.scheduler.set_policy(policy("tdm", ARGUMENTS, "predicates"))
        made.cycle()
        assert made.placed("g") == ({"g-worker-0": name} if taken else {})
