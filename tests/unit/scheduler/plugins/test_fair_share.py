"""Fair share over time: accounts that used little lately go first."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.cluster import Cluster
from tests.unit.scheduler.scoring import plugin_of, session
from vcbatch.scheduler import CycleResult, PolicyError, parse_policy
from vcbatch.scheduler.plugins.fair_share import FairShare

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
    cluster = Cluster(parse_policy(POLICY))
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


def test_usage_is_what_is_held_and_what_was_by_half_lives() -> None:
    """One account holds half of the cluster for two half-lives, then nothing for one; another one held nothing."""
    cluster = _cluster()
    cluster.gang("a1", 1, cpu="2", labels={"team": "a"})
    cluster.gang("a2", 1, cpu="99", labels={"team": "a"})
    cluster.gang("b1", 1, cpu="99", labels={"team": "b"})
    cluster.cycle()

    def usage() -> dict[str, float]:
        opened = session(cluster, cluster.scheduler.policy)
        plugin = plugin_of(opened, FairShare)
        keys = {name: plugin.job_key(opened.state.jobs[f"ns/{name}"]) for name in ("a2", "b1")}
        assert plugin.queue_key(opened.state.queues["default"]) == (keys["a2"],)  # of weight 1
        return keys

    seen = [usage()["a2"]]
    for ended in (False, False, True, True):
        if ended:
            _end(cluster, "a1")
        cluster.cycle(after=3600 if len(seen) != 3 else 0)
        found = usage()
        assert found["b1"] == 0
        seen.append(found["a2"])
    assert seen == pytest.approx([0.5, 0.5 + 0.25, 0.5 + 0.375, 0.375, 0.1875])


def test_a_scheduler_that_starts_anew_counts_what_runs_since_it_started() -> None:
    """A quarter of the cluster for one half-life."""
    cluster = _cluster()
    cluster.gang("a1", 1, cpu="1", labels={"team": "a"}, pod={"nodeName": "n1"})
    cluster.pods["a1-worker-0"]["status"] = {"phase": "Running", "startTime": "2026-05-31T23:00:00Z"}
    cluster.change("a1-worker-0")
    opened = session(cluster, cluster.scheduler.policy)
    assert plugin_of(opened, FairShare).job_key(opened.state.jobs["ns/a1"]) == pytest.approx(0.25 + 0.125)


@pytest.mark.parametrize("given", ["1", "soon", "10s", "[]"])
def test_a_half_life_that_is_none_is_refused(given: str) -> None:
    with pytest.raises(PolicyError, match=r"half-life: must be a duration of at least 1m"):
        parse_policy(POLICY.replace("1h", given))
