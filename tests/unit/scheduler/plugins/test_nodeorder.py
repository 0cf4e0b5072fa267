"""Points of nodes by how evenly their resources are used, worked out by hand from the formulas of kube-scheduler."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.scheduler.cluster import Cluster
from tests.unit.scheduler.scoring import plugin_of, points, policy, requests, session, task_of
from vcbatch.scheduler.model.columns import Columns, Depths
from vcbatch.scheduler.plugins.nodeorder import NodeOrder

GPU = "nvidia.com/gpu"
ONLY_BALANCE = {"leastrequested.weight": 0, "balancedresource.weight": 1}


def cluster(used: dict[str, str], **node: str) -> Cluster:
    """A node of which so much is used, and a pod that waits."""
    made = Cluster(policy("nodeorder", ONLY_BALANCE))
    made.node("n", **{"cpu": "32", "memory": "128Gi", **node})
    made.gang("old", 1, pod={"nodeName": "n"})
    requests(made, "old-worker-0", **used)
    made.run("old")
    made.gang("new", 1)
    return made


def balance(made: Cluster, **asked: str) -> float:
    requests(made, "new-worker-0", **asked)
    opened = session(made, policy("nodeorder", ONLY_BALANCE))
    return points(opened, plugin_of(opened, NodeOrder), "new-worker-0")["n"]


USED = {"cpu": "8", "memory": "64Gi", GPU: "2"}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        # 1/4 and 1/2 before, half their distance is 1/8: 87. 3/8 and 9/16 after: 90. 50 + 53 // 2
        ({"cpu": "4", "memory": "8Gi"}, 76),
        # 1/4, 1/2, 1/4 before, deviation 0.1179: 88. 3/8, 9/16, 1/2 after, 0.0780: 92. 50 + 54 // 2
        ({"cpu": "4", "memory": "8Gi", GPU: "2"}, 77),
        # 1/4, 1/2, 3/4 after, 0.2041: 79. 50 + 41 // 2
        ({GPU: "4"}, 70),
        # memory is full after it, and asked for beyond what is there: 1/4 and 1, 0.375: 62. 50 + 25 // 2
        ({"memory": "100Gi"}, 62),
    ],
)
def test_balance_with_and_without_gpus(asked: dict[str, str], expected: float) -> None:
    assert balance(cluster(USED, **{GPU: "8"}), **asked) == expected


def test_gpus_that_nobody_asks_for_are_not_weighed() -> None:
    even = balance(cluster({"cpu": "8", "memory": "64Gi"}, **{GPU: "8"}), cpu="4", memory="8Gi")
    assert even == balance(cluster(USED, **{GPU: "8"}), cpu="4", memory="8Gi")


def test_a_node_without_gpus_is_weighed_by_the_rest() -> None:
    """And one with gpus beside it by all three."""
    made = cluster({"cpu": "8", "memory": "64Gi"})
    made.node("with", cpu="32", memory="128Gi", **{GPU: "8"})
    made.gang("other", 1, pod={"nodeName": "with"})
    requests(made, "other-worker-0", **USED)
    made.run("other")
    requests(made, "new-worker-0", cpu="4", memory="8Gi", **{GPU: "2"})
    opened = session(made, policy("nodeorder", ONLY_BALANCE))
    assert points(opened, plugin_of(opened, NodeOrder), "new-worker-0") == {"n": 76, "with": 77}


def test_a_node_that_offers_one_of_the_resources_is_even_in_itself() -> None:
    made = cluster({"cpu": "8"}, memory="0")
    assert balance(made, cpu="4") == 50 + 50 // 2
    assert balance(made, cpu="4", **{GPU: "2"}) == 50 + 50 // 2


def test_what_asks_for_none_of_the_resources_has_no_points_for_balance() -> None:
    made = cluster(USED, **{GPU: "8", "example.com/disk": "4"})
    assert balance(made, **{"example.com/disk": "1"}) == 0


@pytest.mark.parametrize("weight", [1, 3])
def test_each_further_pod_of_a_class_is_weighed_with_those_before_it(weight: int) -> None:
    """1/4 and 1/2, then 1/2 and 9/16, then 3/4 and 5/8: 87, 96, 93."""
    given = policy("nodeorder", {**ONLY_BALANCE, "balancedresource.weight": weight})
    made = cluster({"cpu": "8", "memory": "64Gi"})
    requests(made, "new-worker-0", cpu="8", memory="8Gi")
    opened = session(made, given)
    nodes, cls = opened.nodes, task_of(opened, "new-worker-0").cls
    columns = Columns(nodes, cls, np.array([0], dtype=np.intp), Depths(nodes, cls, 0, 2), promising=False)
    found = plugin_of(opened, NodeOrder).scores(cls, columns)
    assert found is not None
    assert found.tolist() == [[weight * (50 + 59 // 2)], [weight * (50 + 47 // 2)]]
