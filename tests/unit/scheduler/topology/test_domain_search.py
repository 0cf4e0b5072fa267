"""What is counted in domains of the network before anything is placed there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.scheduler.cluster import Cluster
from tests.unit.scheduler.domains import SOFT, hard, racks
from tests.unit.scheduler.scoring import policy, session
from vcbatch.scheduler.model.domain import Purpose
from vcbatch.scheduler.topology.domain_search import DomainSearch, Room, domains_for

NAME = "network-topology-aware"


def test_a_request_is_of_what_is_missing_and_of_what_will_be_spare() -> None:
    """The PodGroup's minimum is looked for, by what will be free. Rack a takes eight pods of two
    cpus, rack b four once the pod that fills it is gone."""
    cluster = Cluster(policy(NAME, {}, "predicates"))
    racks(cluster, {"a": 2, "b": 1})
    cluster.gang("old", 1, cpu="8", phase="Running", pod={"nodeName": "b-0"})
    cluster.run("old")
    cluster.change("old-worker-0", deleting=True)
    cluster.gang("g", 5, minimum=3, cpu="2", networkTopology=SOFT)
    opened = session(cluster, policy(NAME, {}, "predicates"))
    search, job = opened.shared(DomainSearch), opened.state.jobs["ns/g"]
    request = search.request(job)
    assert request.count == 3
    assert request.amount.tolist() == opened.dims.vector({"cpu": "6", "memory": "3Gi", "pods": "3"}).tolist()
    assert request.spare.tolist() == [8 - 3, 4 - 3, 12 - 3]
    free = search.could_hold(job, np.arange(3), Room.FREE)
    assert free.tolist() == [True, False, True]


def _parts(cluster: Cluster, *cpus: list[tuple[str, bool]]) -> None:
    """A gang of parts of two, of which both have to start; of each pod what it asks for and whether it runs on a-0."""
    rule = {"name": "w", "subGroupSize": 2, "minSubGroups": 2, "matchLabelKeys": ["part"]}
    cluster.gang("g", 0, minimum=1, networkTopology=SOFT, subGroupPolicy=[rule])
    index = 0
    for part, pods in enumerate(cpus):
        for cpu, runs in pods:
            cluster.pod("g", index, part=part, cpu=cpu)
            if runs:
                cluster.change(f"g-worker-{index}", node="a-0", phase="Running")
            index += 1


@pytest.mark.parametrize(
    ("parts", "holds"),
    [
        # Of 8 cpus two are taken by the first part, which has all it needs; its third pod makes no other part whole.
        (([("1", True), ("1", True), ("4", False)], [("4", False), ("4", False)]), False),
        (([("1", True), ("1", True), ("3", False)], [("3", False), ("3", False)]), True),
        # One part of the two is too few.
        (([("1", False), ("1", False)], [("9", False), ("9", False)]), False),
        (([("1", False), ("1", False)], [("2", False), ("2", False)]), True),
    ],
)
def test_a_domain_has_to_have_room_for_as_many_parts_as_have_to_start(parts: Any, holds: bool) -> None:
    cluster = Cluster(policy(NAME, {}, "predicates"))
    racks(cluster, {"a": 1})
    _parts(cluster, *parts)
    opened = session(cluster, policy(NAME, {}, "predicates"))
    job = opened.state.jobs["ns/g"]
    assert opened.shared(DomainSearch).could_hold(job, np.array([0]), Room.FREE).tolist() == [holds]


def test_to_evict_only_nodes_that_filters_admit_count() -> None:
    """By what is allocatable; the gang's pods may go to rack b alone."""
    cluster = Cluster(policy(NAME, {}, "predicates"))
    racks(cluster, {"a": 2, "b": 2})
    cluster.gang("old", 4, cpu="8", phase="Running")
    for index, node in enumerate(("a-0", "a-1", "b-0", "b-1")):
        cluster.change(f"old-worker-{index}", node=node, phase="Running")
    cluster.gang("g", 2, cpu="8", networkTopology=hard(1), pod={"nodeSelector": {"rack": "b"}})
    opened = session(cluster, policy(NAME, {}, "predicates"))
    job = opened.state.jobs["ns/g"]
    assert [[d.name for d in group] for group in domains_for(opened, job, Purpose.EVICT)] == [["b"]]
    assert domains_for(opened, job, Purpose.ALLOCATE) == []


def test_domains_with_room_now_go_before_fuller_ones_that_will_have_it() -> None:
    """Rack a is the fuller, but only when the pod that is being deleted is gone one of its nodes has 4 cpus."""
    cluster = Cluster(policy(NAME, {}, "predicates"))
    racks(cluster, {"a": 2, "b": 2, "c": 2})
    cluster.gang("old", 3, cpu="6", phase="Running")
    for index, node in enumerate(("a-0", "a-1", "c-0")):
        cluster.change(f"old-worker-{index}", node=node, phase="Running")
    cluster.change("old-worker-0", deleting=True)
    cluster.gang("g", 1, cpu="4", networkTopology=hard(1))
    opened = session(cluster, policy(NAME, {}, "predicates"))
    search, job = opened.shared(DomainSearch), opened.state.jobs["ns/g"]
    (group,) = search.groups(job, Purpose.ALLOCATE)
    found = list(search.ranked(job, group))
    assert [(c.domain.name, c.now) for c in found] == [("c", True), ("b", True), ("a", False)]
    assert found[2].score > found[0].score > found[1].score


def test_a_gang_that_is_elsewhere_has_no_domain_within_one() -> None:
    """The search root is the given domain and the one that the gang has, whichever is the lower; if
    neither is below the other there is none."""
    cluster = Cluster(policy(NAME, {}, "predicates"))
    racks(cluster, {"a": 2, "b": 2, "c": 2}, spines={"s": ["a", "b"], "t": ["c"]})
    cluster.gang("g", 2, networkTopology=hard(2))
    cluster.change("g-worker-0", node="a-0", phase="Running")
    opened = session(cluster, policy(NAME, {}, "predicates"))
    search, job = opened.shared(DomainSearch), opened.state.jobs["ns/g"]

    def allowed(within: str) -> list[str]:
        return [search.tree.names[d] for d in search.allowed(job, within=search.tree.index[within])]

    assert {name: allowed(name) for name in ("a", "b", "s", "t")} == {
        "a": ["a"],
        "b": ["b"],
        "s": ["a", "b", "s"],
        "t": [],
    }
    assert [search.tree.names[d] for d in search.allowed(job)] == ["a", "b", "s"]
