"""Storage that volumes are yet to be made from: where enough is left, and where it is best taken from."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from tests.unit.scheduler.cluster import Json
from tests.unit.scheduler.index.test_volumes import ZONE, Storage, nodes_of, with_rules
from vcbatch.api.resources import CSIDRIVERS, CSISTORAGECAPACITIES
from vcbatch.api.storage import CsiDriver, CsiStorageCapacity
from vcbatch.scheduler.plugins.storage_shape import Point, storage_score


def _published(cluster: Storage, name: str, size: str, *, zone: str = "", **given: Any) -> None:
    """So much storage is left for class `late` in a zone; without one, on no node."""
    cluster.scheduler.apply(
        CSIDRIVERS,
        "ADDED",
        msgspec.convert({"metadata": {"name": "example.com/disk"}, "spec": {"storageCapacity": True}}, CsiDriver),
    )
    raw: Json = {"metadata": {"name": name, "namespace": "csi"}, "storageClassName": "late", "capacity": size, **given}
    if zone:
        raw["nodeTopology"] = {"matchLabels": {ZONE: zone}}
    cluster.scheduler.apply(CSISTORAGECAPACITIES, "ADDED", msgspec.convert(raw, CsiStorageCapacity))


def test_a_volume_is_made_where_storage_is_left() -> None:
    cluster = Storage()
    _published(cluster, "x", "1Gi", zone="x")
    _published(cluster, "y", "9Gi", zone="y")
    cluster.claim("data", "late", size="2Gi")
    cluster.users("g", 1, "data")
    cluster.cycle()
    assert nodes_of(cluster, "g") == {"c"}


def test_too_little_storage_is_named_and_the_gang_starts_when_there_is_more() -> None:
    cluster = Storage()
    _published(cluster, "x", "1Gi", zone="x")
    _published(cluster, "y", "9Gi", zone="y", maximumVolumeSize="1Gi")
    _published(cluster, "nowhere", "9Gi")
    cluster.claim("data", "late", size="2Gi")
    cluster.users("g", 1, "data")
    cluster.cycle()
    reported = cluster.scheduler.explain("ns", "g")
    assert reported is not None
    assert reported.nodes == {"node(s) did not have enough free storage": 3}
    _published(cluster, "x", "3Gi", zone="x")
    cluster.cycle()
    assert nodes_of(cluster, "g") <= {"a", "b"}
    assert nodes_of(cluster, "g")


def test_storage_is_only_missed_where_a_volume_could_be_made() -> None:
    cluster = Storage()
    terms = [{"matchLabelExpressions": [{"key": ZONE, "values": ["y"]}]}]
    cluster.storage_class("late", volumeBindingMode="WaitForFirstConsumer", allowedTopologies=terms)
    _published(cluster, "y", "1Gi", zone="y")
    cluster.claim("data", "late", size="2Gi")
    cluster.users("g", 1, "data")
    cluster.cycle()
    reported = cluster.scheduler.explain("ns", "g")
    assert reported is not None
    assert reported.nodes == {
        "node(s) didn't find available persistent volumes to bind": 2,
        "node(s) did not have enough free storage": 1,
    }


def test_the_most_that_is_left_for_the_class_decides() -> None:
    """What is left of another class is none of it, and exactly as much as is asked for is enough."""
    cluster = Storage()
    _published(cluster, "1", "2Gi", zone="y")
    _published(cluster, "2", "1Gi", zone="y")
    _published(cluster, "3", "9Gi", zone="x", storageClassName="other")
    cluster.claim("data", "late", size="2Gi")
    cluster.users("g", 1, "data")
    cluster.cycle()
    assert nodes_of(cluster, "g") == {"c"}


def test_a_driver_that_does_not_say_that_it_publishes_has_room_everywhere() -> None:
    cluster = Storage()
    _published(cluster, "x", "0", zone="x")
    driver = {"metadata": {"name": "example.com/disk"}, "spec": {"storageCapacity": False}}
    cluster.scheduler.apply(CSIDRIVERS, "MODIFIED", msgspec.convert(driver, CsiDriver))
    cluster.claim("data", "late", size="2Gi")
    cluster.users("g", 1, "data")
    assert len(cluster.cycle().binds) == 1


def test_a_driver_that_publishes_nothing_has_room_everywhere() -> None:
    cluster = Storage()
    raw = {"metadata": {"name": "x", "namespace": "csi"}, "storageClassName": "late", "capacity": "0"}
    cluster.scheduler.apply(CSISTORAGECAPACITIES, "ADDED", msgspec.convert(raw, CsiStorageCapacity))
    cluster.claim("data", "late", size="2Gi")
    cluster.users("g", 1, "data")
    assert len(cluster.cycle().binds) == 1


def test_the_shape_says_whether_full_or_empty_storage_is_better() -> None:
    for low, high, node in ((10, 0, "c"), (0, 10, "a")):
        points = [{"utilization": 0, "score": low}, {"utilization": 100, "score": high}]
        cluster = with_rules(**{"volumebinding.shape": points})
        _published(cluster, "x", "4Gi", zone="x")
        _published(cluster, "y", "40Gi", zone="y")
        cluster.claim("data", "late", size="2Gi")
        cluster.users("g", 1, "data")
        cluster.cycle()
        assert nodes_of(cluster, "g") == {node}


def test_a_volume_that_is_there_is_rated_by_its_own_size() -> None:
    points = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    cluster = with_rules(**{"volumebinding.shape": points})
    cluster.volume("large", nodes=("a",), size="8Gi")
    cluster.volume("small", nodes=("c",), size="2Gi")
    cluster.claim("data", "static", size="1Gi")
    cluster.users("g", 1, "data")
    cluster.cycle()
    assert nodes_of(cluster, "g") == {"c"}


@pytest.mark.parametrize(
    ("shape", "asked", "held", "points"),
    [
        (((0, 0), (100, 100)), 1, 4, 25),
        (((0, 0), (100, 100)), 5, 4, 100),
        (((0, 0), (100, 100)), 1, 0, 100),
        (((0, 100), (40, 80), (80, 40), (100, 0)), 3, 5, 60),
        (((20, 30), (80, 90)), 1, 10, 30),
        (((20, 30), (80, 90)), 9, 10, 90),
    ],
)
def test_points_lie_on_a_line_through_the_shape(
    shape: tuple[tuple[int, int], ...], asked: float, held: float, points: float
) -> None:
    found = storage_score([(np.array([asked], dtype=float), np.array([held], dtype=float))], [Point(*p) for p in shape])
    assert found.tolist() == [points]
