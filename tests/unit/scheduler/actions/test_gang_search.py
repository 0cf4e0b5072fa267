"""Gangs whose first pass fails: what is found by the search, and what is said where it ends without an answer."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.cluster import Cluster
from vcbatch.scheduler import build_policy
from vcbatch.scheduler.framework.search_budget import MOST_SEARCHES

UNANSWERED = "neither found nor ruled out"


def pods(cluster: Cluster, *cpus: str) -> None:
    """One gang that needs all of these pods."""
    cluster.gang("g", 0, minimum=len(cpus))
    for nth, cpu in enumerate(cpus):
        cluster.pod("g", nth, cpu=cpu)


def reason(cluster: Cluster) -> str:
    condition = cluster.condition("g", "Unschedulable")
    return "" if condition is None else str(condition["message"])


def test_a_large_pod_that_comes_last_still_gets_the_only_node_that_takes_it() -> None:
    cluster = Cluster()
    cluster.node("a", cpu="4")
    cluster.node("b", cpu="2")
    pods(cluster, "1", "1", "4")
    cluster.cycle()
    assert cluster.placed("g") == {"g-worker-0": "b", "g-worker-1": "b", "g-worker-2": "a"}


@pytest.mark.parametrize(("search", "placed"), [(True, {"g-worker-0": "b", "g-worker-1": "a"}), (False, {})])
def test_the_policy_may_turn_the_search_off(search: bool, placed: dict[str, str]) -> None:
    tiers = [{"plugins": [{"name": "gang"}, {"name": "predicates"}, {"name": "nodeorder"}]}]
    configurations = [{"name": "allocate", "arguments": {"gangSearch": search}}]
    document = {"actions": "allocate", "tiers": tiers, "configurations": configurations}
    cluster = Cluster(build_policy(document))
    cluster.node("a", cpu="1", labels={"ssd": "y"})
    cluster.node("b", cpu="1")
    cluster.gang("g", 1, minimum=2)
    cluster.pod("g", 1, nodeSelector={"ssd": "y"})
    cluster.cycle()
    assert cluster.placed("g") == placed


def test_one_pod_too_many_for_the_sums_is_not_searched_for() -> None:
    cluster = Cluster()
    cluster.node("a", cpu="4")
    cluster.node("b", cpu="2")
    pods(cluster, "1", "2", "4")
    for _ in range(3):
        cluster.cycle()
    assert not cluster.placed("g")
    assert UNANSWERED not in reason(cluster)


def _unanswerable() -> Cluster:
    """Thirteen pods of which two fit on each of six nodes, all of them different: no placement, and many to try."""
    cluster = Cluster()
    for name in "abcdef":
        cluster.node(name, cpu="10")
    pods(cluster, *[f"{3500 + 90 * nth}m" for nth in range(13)])
    return cluster


def test_a_search_that_ends_without_an_answer_says_so() -> None:
    cluster = _unanswerable()
    for _ in range(3):
        cluster.cycle()
    assert not cluster.placed("g")
    assert UNANSWERED in reason(cluster)


def test_what_is_searched_for_in_vain_starts_once_there_is_room() -> None:
    cluster = _unanswerable()
    for _ in range(MOST_SEARCHES + 3):
        cluster.cycle()
    cluster.node("g", cpu="10")
    cluster.cycle()
    assert len(cluster.placed("g")) == 13
