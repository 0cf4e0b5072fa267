"""Points for full nodes, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.scheduler.cluster import Cluster
from tests.unit.scheduler.scoring import plugin_of, points, policy, requests, session
from vcbatch.scheduler.plugins.binpack import Binpack

GPU = "nvidia.com/gpu"
DISK = "example.com/disk"


def filled(arguments: dict[str, Any], **asked: str) -> dict[str, float]:
    """Points of a node that is a quarter full of cpu, half of memory and an eighth of GPUs, and of one without GPUs."""
    given = policy("binpack", arguments)
    made = Cluster(given)
    made.node("gpus", cpu="32", memory="128Gi", **{GPU: "8", DISK: "2"})
    made.node("none", cpu="32", memory="128Gi")
    for name, more in (("gpus", {GPU: "1"}), ("none", {})):
        made.gang(name, 1, pod={"nodeName": name})
        requests(made, f"{name}-worker-0", cpu="8", memory="64Gi", **more)
        made.run(name)
    made.gang("new", 1)
    requests(made, "new-worker-0", **asked)
    opened = session(made, given)
    return points(opened, plugin_of(opened, Binpack), "new-worker-0")


ASKED = {"cpu": "4", "memory": "8Gi"}
"""3/8 of the cpu and 9/16 of the memory are taken after it."""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, 100 * (3 / 8 + 9 / 16) / 2),
        ({"binpack.weight": 3}, 300 * (3 / 8 + 9 / 16) / 2),
        ({"binpack.cpu": 2}, 100 * (2 * 3 / 8 + 9 / 16) / 3),
        ({"binpack.memory": 0}, 100 * 3 / 8),
        ({"binpack.cpu": 0}, 100 * 9 / 16),
        ({"binpack.cpu": -3}, 100 * (3 / 8 + 9 / 16) / 2),
        ({"binpack.resources": GPU, f"binpack.resources.{GPU}": 9}, 100 * (3 / 8 + 9 / 16) / 2),  # none asked for
    ],
)
def test_the_weighted_mean_of_what_would_be_taken(arguments: dict[str, Any], expected: float) -> None:
    assert filled(arguments, **ASKED) == {"gpus": pytest.approx(expected), "none": pytest.approx(expected)}


@pytest.mark.parametrize(
    ("resources", "weight", "expected"),
    [
        ("", 5, 100 * (3 / 8 + 9 / 16) / 2),
        (GPU, 1, 100 * (3 / 8 + 9 / 16 + 3 / 8) / 3),
        (f"{DISK}, {GPU}", 5, 100 * (3 / 8 + 9 / 16 + 5 * 3 / 8) / 7),
        (GPU, 0, 100 * (3 / 8 + 9 / 16) / 2),
    ],
)
def test_other_resources_are_weighed_where_they_are_named(resources: str, weight: int, expected: float) -> None:
    arguments = {"binpack.resources": resources, f"binpack.resources.{GPU}": weight}
    assert filled(arguments, **ASKED, **{GPU: "2"})["gpus"] == pytest.approx(expected)


def test_what_a_node_does_not_offer_counts_as_empty_and_what_it_has_too_little_of_spoils_it() -> None:
    arguments = {"binpack.resources": GPU}
    found = filled(arguments, **ASKED, **{GPU: "8"})
    assert found == {"gpus": 0, "none": pytest.approx(100 * (3 / 8 + 9 / 16) / 3)}
    assert filled(arguments, cpu="24", memory="64Gi")["none"] == 100
    assert filled(arguments, cpu="24001m", memory="8Gi")["none"] == 0
