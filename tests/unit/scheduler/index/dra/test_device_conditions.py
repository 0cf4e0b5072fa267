"""Devices that have to be made ready for a node before pods are bound to it (binding conditions)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from tests.unit.scheduler.cluster import Json
from tests.unit.scheduler.index.dra.test_device_counters import Partitions
from tests.unit.scheduler.index.dra.test_devices_by_claim import DRIVER
from vcbatch.api.dra import ResourceClaim
from vcbatch.scheduler.index.dra.readiness import Readiness, due, readiness_of

WAITS = {"bindingConditions": ["attached", "warm"], "bindingFailureConditions": ["broken"]}


class Fabric(Partitions):
    """Devices that any node reaches, once they are attached to it."""

    def fabric(self, devices: list[Json], **spec: Any) -> None:
        self.slice("fabric", "fabric", count=1, **{"allNodes": True, **spec}, devices=devices)


def test_conditions_are_written_with_the_devices_that_wait_for_them() -> None:
    cluster = Fabric()
    cluster.fabric([{"name": "gpu-0", **WAITS}])
    cluster.ask("c")
    result = cluster.cycle()
    (binding,) = result.binds[0].devices
    assert binding.timeout == 600
    assert binding.allocation == {
        "devices": {"results": [{"request": "r0", "driver": DRIVER, "pool": "fabric", "device": "gpu-0", **WAITS}]}
    }


def test_a_device_that_binds_to_a_node_keeps_its_pods_there() -> None:
    cluster = Fabric()
    cluster.fabric([{"name": "gpu-0", "bindsToNode": True, **WAITS}])
    cluster.claim("c")
    cluster.users("g", 2, "c")
    result = cluster.cycle()
    (node,) = set(cluster.placed("g").values())
    (allocation,) = {str(bind.devices[0].allocation): bind.devices[0].allocation for bind in result.binds}.values()
    assert allocation is not None
    only = {"key": "metadata.name", "operator": "In", "values": [node]}
    assert allocation["nodeSelector"] == {"nodeSelectorTerms": [{"matchFields": [only]}]}


def test_devices_that_are_ready_at_once_are_given_away_first() -> None:
    cluster = Fabric()
    cluster.fabric([{"name": "gpu-0", **WAITS}, {"name": "gpu-1"}])
    for name in ("one", "two"):
        cluster.ask(name)
    cluster.cycle()
    assert (cluster.got("one"), cluster.got("two")) == (["gpu-1"], ["gpu-0"])


def test_how_long_devices_may_take_is_the_policys_to_say() -> None:
    cluster = Fabric(**{"dynamicresources.bindingTimeoutSeconds": 30})
    cluster.fabric([{"name": "gpu-0", **WAITS}])
    cluster.ask("c")
    assert [bind.devices[0].timeout for bind in cluster.cycle().binds] == [30]


def _claim(*devices: Json, stamp: str | None = None) -> ResourceClaim:
    """A claim that has a device that waits and one that doesn't; `devices` are what drivers say."""
    one = {"request": "r", "driver": DRIVER, "pool": "p", "device": "gpu-0", "shareID": "s"}
    results = [{**one, **WAITS}, {"request": "q", "driver": DRIVER, "pool": "p", "device": "gpu-1"}]
    allocation = {"devices": {"results": results}, "allocationTimestamp": stamp}
    return msgspec.convert({"status": {"allocation": allocation, "devices": [*devices]}}, ResourceClaim)


def _reported(share: str | None = "s", **conditions: str) -> Json:
    reported = [{"type": kind, "status": status, "reason": "Why"} for kind, status in conditions.items()]
    return {"driver": DRIVER, "pool": "p", "device": "gpu-0", "shareID": share, "conditions": reported}


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        ([], Readiness(lacks="device gpu-0 lacks attached, warm")),
        ([_reported(attached="True", warm="Unknown")], Readiness(lacks="device gpu-0 lacks warm")),
        ([_reported(attached="True", warm="True", broken="False")], Readiness()),
        ([_reported("t", attached="True", warm="True")], Readiness(lacks="device gpu-0 lacks attached, warm")),
        ([_reported(attached="True", warm="True", broken="True")], Readiness(failed="device gpu-0 has broken (Why)")),
        ([_reported(broken="True")], Readiness(failed="device gpu-0 has broken (Why)")),
    ],
    ids=["nothing", "one", "all", "another share", "failed though ready", "failed"],
)
def test_a_claim_is_ready_when_all_conditions_of_its_devices_are_true(devices: list[Json], expected: Readiness) -> None:
    assert readiness_of(_claim(*devices)) == expected


def test_a_claim_without_devices_waits_for_nothing() -> None:
    assert readiness_of(ResourceClaim()) == Readiness()


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [
        ("2026-06-01T00:00:00Z", datetime(2026, 6, 1, 0, 10, tzinfo=UTC)),
        (None, None),
        ("lately", None),
    ],
)
def test_devices_are_due_so_long_after_they_were_given(stamp: str | None, expected: datetime | None) -> None:
    assert due(_claim(stamp=stamp), 600) == expected
    assert due(ResourceClaim(), 600) is None
