"""What Volcano's agent found to be spare on a node counts as offered by it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.scheduler.cluster import Cluster
from vcbatch.api.node import Node
from vcbatch.api.resources import NODES

CPU, MEMORY = "volcano.sh/oversubscription-cpu", "volcano.sh/oversubscription-memory"


def _node(cluster: Cluster, annotations: dict[str, str] | None, event: str = "ADDED", **amounts: Any) -> None:
    meta = {"name": "n", "uid": "node-n", "annotations": annotations}
    status = {"allocatable": {"cpu": "1500m", "memory": "4Gi", "pods": "20", **amounts}}
    cluster._send(NODES, Node, event, {"metadata": meta, "status": status})


@pytest.mark.parametrize(
    ("annotations", "cpu", "memory"),
    [
        (None, 1500, 4 * 2**30),
        ({CPU: "500"}, 2000, 4 * 2**30),
        ({CPU: "500.0", MEMORY: str(2**30)}, 2000, 5 * 2**30),
        ({CPU: "-1", MEMORY: "much"}, 1500, 4 * 2**30),
        ({CPU: "inf", MEMORY: "nan"}, 1500, 4 * 2**30),
    ],
)
def test_annotations_are_added_to_what_a_node_offers(
    annotations: dict[str, str] | None, cpu: float, memory: float
) -> None:
    cluster = Cluster()
    _node(cluster, annotations)
    state = cluster.scheduler._state
    state.settle()
    assert state.nodes.alloc[:2, 0].tolist() == [cpu, memory]


def test_a_gang_starts_once_enough_is_spare() -> None:
    cluster = Cluster()
    _node(cluster, None)
    cluster.gang("g", 2)
    cluster.cycle()
    assert cluster.placed("g") == {}
    _node(cluster, {CPU: "500"}, "MODIFIED")
    cluster.cycle()
    assert len(cluster.placed("g")) == 2
