"""Fair share over time: accounts that used little lately go first."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.cluster import Cluster
from vcbatch.scheduler import CycleResult, Policy, PolicyError

POLICY = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: fair-share
    arguments:
      half-life: 1h
      account-label: team
- plugins:
  - name: predicates
"""


def _cluster(cpu: str = "4") -> Cluster:
    cluster = Cluster(Policy.parse(POLICY))
    cluster.node("n1", cpu=cpu)
    return cluster


def _bound(result: CycleResult) -> list[str]:
    return sorted(bind.name.split("-")[0] for bind in result.binds)


def _end(cluster: Cluster, *gangs: str) -> None:
    for gang in gangs:
        cluster.change(f"{gang}-worker-0", phase="Succeeded")


def test_who_held_the_cluster_lately_comes_after_who_did_not() -> None:
    cluster = _cluster()
    cluster.gang("a1", 1, cpu="4", labels={"team": "a"})
    assert _bound(cluster.cycle()) == ["a1"]
    cluster.gang("a2", 1, cpu="4", labels={"team": "a"})
    cluster.gang("b1", 1, cpu="4", labels={"team": "b"})
    cluster.cycle(after=3600)
    _end(cluster, "a1")
    assert _bound(cluster.cycle()) == ["b1"]


def test_what_is_long_past_counts_no_more() -> None:
    cluster = _cluster()
    cluster.gang("a1", 1, cpu="4", labels={"team": "a"})
    cluster.cycle()
    cluster.cycle(after=60)
    _end(cluster, "a1")
    cluster.cycle()
    cluster.cycle(after=40 * 3600)
    cluster.gang("b1", 1, cpu="4", labels={"team": "b"})
    assert _bound(cluster.cycle()) == ["b1"]
    cluster.gang("b2", 1, cpu="4", labels={"team": "b"})
    cluster.gang("a2", 1, cpu="4", labels={"team": "a"})
    cluster.cycle(after=600)
    _end(cluster, "b1")
    assert _bound(cluster.cycle()) == ["a2"]


def test_one_cycle_shares_a_free_cluster_between_accounts() -> None:
    cluster = _cluster(cpu="4")
    for nth in range(4):
        cluster.gang(f"a{nth}", 1, cpu="1", labels={"team": "a"})
    for nth in range(4):
        cluster.gang(f"b{nth}", 1, cpu="1", labels={"team": "b"})
    assert [name[0] for name in _bound(cluster.cycle())] == ["a", "a", "b", "b"]


def test_queues_are_ordered_by_use_and_weight() -> None:
    cluster = _cluster(cpu="6")
    cluster.queue("heavy", weight=2)
    cluster.queue("light", weight=1)
    for nth in range(6):
        cluster.gang(f"h{nth}", 1, cpu="1", queue="heavy")
        cluster.gang(f"l{nth}", 1, cpu="1", queue="light")
    assert "".join(name[0] for name in _bound(cluster.cycle())) == "hhhhll"


@pytest.mark.parametrize("given", ["1", "soon", "10s", "[]"])
def test_a_half_life_that_is_none_is_refused(given: str) -> None:
    with pytest.raises(PolicyError, match=r"half-life: must be a duration of at least 1m"):
        Policy.parse(POLICY.replace("1h", given))
