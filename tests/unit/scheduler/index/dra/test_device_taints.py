"""Taints of devices: from slices and from rules, and what claims tolerate."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.unit.scheduler.cluster import Json
from tests.unit.scheduler.index.dra.test_devices_by_claim import DRIVER, Claims
from vcbatch.api.dra import DeviceTaintRule
from vcbatch.api.resources import DEVICETAINTRULES
from vcbatch.scheduler import WaitReason
from vcbatch.scheduler.index.dra.node_devices import CANNOT_ALLOCATE, LACKING


class Tainted(Claims):
    """Rules put taints on devices besides."""

    def rule(self, name: str, selector: Json | None, event: str = "ADDED", **taint: str) -> None:
        spec = {"deviceSelector": selector, "taint": {"key": "broken", "effect": "NoSchedule", **taint}}
        raw = {"metadata": {"name": name, "uid": f"dtr-{name}"}, "spec": spec}
        self.scheduler.apply(DEVICETAINTRULES, event, msgspec.convert(raw, DeviceTaintRule))

    def wants(self, name: str, **request: Any) -> None:
        self.claim(name, request)
        self.users(name, 1, name)


def test_a_device_with_a_taint_is_for_those_who_tolerate_it() -> None:
    cluster = Tainted()
    cluster.devices("a", "gpu-0", taints={"gpu-0": [{"key": "broken", "effect": "NoSchedule"}]})
    cluster.claim("c")
    cluster.users("g", 1, "c")
    cluster.claim("d", {"tolerations": [{"key": "broken", "operator": "Exists"}]})
    cluster.users("h", 1, "d")
    cluster.cycle()
    assert (cluster.got("c"), cluster.got("d")) == ([], ["gpu-0"])


def test_what_a_request_tolerates_is_written_with_its_devices() -> None:
    cluster = Tainted()
    cluster.devices("a", "gpu-0", taints={"gpu-0": [{"key": "broken", "effect": "NoSchedule"}]})
    bears = [{"key": "broken", "operator": "Exists"}]
    cluster.claim("c", {"tolerations": bears})
    cluster.users("g", 1, "c")
    cluster.cycle()
    (result,) = cluster.claims["c"]["status"]["allocation"]["devices"]["results"]
    assert result["tolerations"] == bears


def test_who_wants_all_devices_must_tolerate_the_taints_of_all() -> None:
    cluster = Tainted()
    cluster.devices("a", "gpu-0", "gpu-1", taints={"gpu-0": [{"key": "broken", "effect": "NoSchedule"}]})
    cluster.claim("all", {"allocationMode": "All"})
    cluster.users("all", 1, "all")
    bears = [{"key": "broken", "operator": "Exists"}]
    cluster.claim("bears", {"allocationMode": "All", "tolerations": bears})
    cluster.users("bears", 1, "bears")
    cluster.cycle()
    assert (cluster.got("all"), cluster.got("bears")) == ([], ["gpu-0", "gpu-1"])


@pytest.mark.parametrize(
    ("selector", "left"),
    [
        (None, ["gpu-0", "gpu-1"]),
        ({}, []),
        ({"device": "gpu-0"}, ["gpu-1"]),
        ({"driver": DRIVER, "pool": "a", "device": "gpu-1"}, ["gpu-0"]),
        ({"driver": "other.example.com"}, ["gpu-0", "gpu-1"]),
        ({"driver": DRIVER, "pool": "b"}, ["gpu-0", "gpu-1"]),
        ({"pool": "a"}, []),
    ],
)
def test_a_rule_taints_the_devices_that_it_selects(selector: Json | None, left: list[str]) -> None:
    cluster = Tainted()
    cluster.devices("a", "gpu-0", "gpu-1")
    cluster.rule("r", selector)
    for name in ("one", "two"):
        cluster.wants(name)
    cluster.cycle()
    assert sorted(device for name in ("one", "two") for device in cluster.got(name)) == left


@pytest.mark.parametrize(("effect", "kept"), [("NoSchedule", True), ("NoExecute", True), ("None", False), ("X", False)])
def test_effects_that_are_none_or_unknown_keep_nobody(effect: str, kept: bool) -> None:
    cluster = Tainted()
    cluster.devices("a", "gpu-0", taints={"gpu-0": [{"key": "k", "effect": effect}]})
    cluster.wants("c")
    cluster.cycle()
    assert cluster.got("c") == ([] if kept else ["gpu-0"])


@pytest.mark.parametrize(
    ("toleration", "borne"),
    [
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "value": "w"}, False),
        ({"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute"}, True),
        ({"key": "k", "operator": "Exists", "effect": "NoSchedule"}, False),
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}, True),
    ],
)
def test_a_toleration_bears_what_it_says(toleration: Json, borne: bool) -> None:
    cluster = Tainted()
    cluster.devices("a", "gpu-0")
    cluster.rule("r", {}, key="k", value="v", effect="NoExecute")
    cluster.wants("c", tolerations=[toleration])
    cluster.cycle()
    assert cluster.got("c") == (["gpu-0"] if borne else [])


def test_every_alternative_of_a_request_has_tolerations_of_its_own() -> None:
    cluster = Tainted()
    cluster.devices("a", "gpu-0", "gpu-1", taints={"gpu-0": [{"key": "slow", "effect": "NoSchedule"}]})
    bears = [{"key": "slow", "operator": "Exists"}]
    two = {"name": "two", "deviceClassName": "gpu", "count": 2}
    cluster.claim("c", {"name": "r", "firstAvailable": [two, {**two, "name": "slow", "tolerations": bears}]})
    cluster.users("g", 1, "c")
    result = cluster.cycle()
    allocation = result.binds[0].devices[0].allocation
    assert allocation is not None
    assert [one["request"] for one in allocation["devices"]["results"]] == ["r/slow"] * 2


def test_who_waits_for_a_taint_is_told_so_and_served_when_it_goes() -> None:
    cluster = Tainted()
    cluster.devices("a", "gpu-0")
    cluster.rule("r", {"device": "gpu-0"}, key="repair", value="fan")
    cluster.wants("c")
    cluster.cycle()
    reported = cluster.scheduler.explain("ns", "c")
    assert reported is not None
    tainted = "node(s) whose devices for a resourceclaim have the taint {repair: fan}, which it doesn't tolerate"
    assert (reported.reason, reported.nodes) == (WaitReason.DYNAMIC_RESOURCES, {LACKING: 1, tainted: 1})
    cluster.rule("r", {"device": "gpu-0"}, "DELETED")
    cluster.cycle()
    assert cluster.got("c") == ["gpu-0"]


def test_a_taint_is_not_blamed_for_devices_that_there_are_not_or_that_others_have() -> None:
    cluster = Tainted()
    cluster.devices("a", "gpu-0", "gpu-1", taints={"gpu-1": [{"key": "k", "effect": "NoSchedule"}]})
    cluster.wants("first")
    cluster.cycle()
    for name, count in (("next", 1), ("three", 3)):
        cluster.wants(name, count=count)
    cluster.cycle()
    after, three = (cluster.scheduler.explain("ns", name) for name in ("next", "three"))
    assert after is not None
    assert three is not None
    assert after.nodes == {LACKING: 1, CANNOT_ALLOCATE: 1}
    assert (three.reason, three.nodes) == (WaitReason.IMPOSSIBLE, {LACKING: 2})


def test_a_claim_keeps_the_devices_that_it_has_when_they_are_tainted() -> None:
    cluster = Tainted()
    cluster.devices("a", "gpu-0")
    cluster.wants("c")
    cluster.cycle()
    cluster.rule("r", {})
    cluster.users("later", 1, "c")
    cluster.cycle()
    assert cluster.placed("later") == {"later-worker-0": "a"}
