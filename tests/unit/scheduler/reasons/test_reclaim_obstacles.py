"""The reason where no pod is evicted for a queue that deserves more: the only candidate gang straddles its queue's
deserved amount."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.scheduler.actions.test_gang_eviction import evicted, policy, running
from tests.unit.scheduler.cluster import Cluster
from tests.unit.scheduler.domains import hard, racks
from vcbatch.scheduler import Policy, WaitReason


def lending(made: Policy | None = None, *, first: int = 6, deserved: str = "4", **given: Any) -> Cluster:
    """Queue `lender` uses all 8 cpus, `first` of them by one gang and the rest by another that may not be evicted."""
    found = Cluster(made or policy("gangreclaim", queues="capacity"))
    for i in range(2):
        found.node(f"n{i}", cpu="4")
    found.queue("lender", deserved={"cpu": deserved}, **given)
    found.queue("owner", deserved={"cpu": "4"})
    running(found, "first", first, queue="lender", cpu="1")
    running(found, "rest", 8 - first, queue="lender", annotations={"volcano.sh/preemptable": "false"})
    return found


def reported(found: Cluster, gang: str = "new") -> tuple[WaitReason, str]:
    explanation = found.scheduler.explain("ns", gang)
    assert explanation is not None
    return explanation.reason, explanation.message


def test_the_gang_its_queue_and_what_that_would_lack_are_named() -> None:
    found = lending()
    found.gang("new", 2, queue="owner")
    assert evicted(found.cycle()) == set()
    reason, message = reported(found)
    assert reason is WaitReason.RECLAIM_BLOCKED
    assert (
        "it could have its place by evicting 6 pods of gang ns/first, which would leave queue lender less than it "
        "deserves: cpu 2 of 4, short by 2"
    ) in message
    condition = found.condition("new", "Unschedulable")
    assert condition is not None
    assert "cpu 2 of 4, short by 2" in condition["message"]


def test_lowering_what_the_queue_deserves_by_what_it_would_lack_lets_the_gang_start() -> None:
    found = lending()
    found.gang("new", 2, queue="owner")
    found.cycle()
    found.queue("lender", event="MODIFIED", deserved={"cpu": "2"})
    assert evicted(found.cycle()) == {f"first-worker-{i}" for i in range(6)}


def test_gangs_that_are_alike_are_told_alike_and_no_longer_than_it_is_so() -> None:
    found = lending()
    for name in ("new", "like"):
        found.gang(name, 2, queue="owner")
    found.cycle()
    assert reported(found) == (reported(found, "like")[0], reported(found)[1])
    assert reported(found, "like")[0] is WaitReason.RECLAIM_BLOCKED
    found.groups["first"]["metadata"]["annotations"] = {"volcano.sh/preemptable": "false"}
    found.report_group("first")
    found.cycle()
    assert reported(found)[0] is WaitReason.INSUFFICIENT


@pytest.mark.parametrize(
    ("world", "new"),
    [
        pytest.param({"deserved": "8"}, {}, id="its queue uses no more than it deserves"),
        pytest.param({"reclaimable": False}, {}, id="its queue lends nothing"),
        pytest.param({}, {"cpu": "3", "size": 3}, id="its end would be no help"),
        pytest.param({}, {"size": 5}, id="the queue that waits deserves less"),
        pytest.param({"first": 1}, {"size": 1, "cpu": "2"}, id="another gang is in the way"),
    ],
)
def test_nothing_of_it_is_said_where_something_else_is_the_matter(world: dict[str, Any], new: dict[str, Any]) -> None:
    found = lending(**world)
    given = {"size": 2, **new}
    found.gang("new", given.pop("size"), queue="owner", **given)
    assert evicted(found.cycle()) == set()
    assert reported(found)[0] is not WaitReason.RECLAIM_BLOCKED


def test_it_is_said_of_a_gang_that_straddles_domains_as_well() -> None:
    """In the rack it uses no more than its queue lends, and with its other pods twice as much."""
    found = Cluster(policy("gangreclaim", queues="capacity"))
    racks(found, {"a": 1, "b": 1}, spines={"s": ["a", "b"]})
    found.queue("lender", deserved={"cpu": "8"})
    found.queue("owner", deserved={"cpu": "8"})
    found.gang("old", 0, minimum=12, queue="lender")
    for index in range(12):
        found.pod("old", index, nodeName="a-0" if index < 6 else "b-0")
    found.run("old")
    found.cycle()
    found.gang("new", 4, queue="owner", networkTopology=hard(1))
    assert evicted(found.cycle()) == set()
    reason, message = reported(found)
    assert reason is WaitReason.RECLAIM_BLOCKED
    assert "evicting 12 pods of gang ns/old" in message
    assert "queue lender less than it deserves: cpu 0 of 8, short by 8" in message
