"""Devices that take from counters of their pool (partitions of a GPU): never more is given away than there is."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.scheduler.cluster import Json
from tests.unit.scheduler.index.dra.test_devices_by_claim import DRIVER, Claims
from vcbatch.api.dra import ResourceSlice
from vcbatch.api.resources import RESOURCESLICES

HALF = {"slices": "4", "memory": "20Gi"}
WHOLE = {"slices": "8", "memory": "40Gi"}


def counters(amounts: Json) -> Json:
    return {name: {"value": value} for name, value in amounts.items()}


class Partitions(Claims):
    """Nodes whose GPUs can be had whole or in parts."""

    def slice(self, name: str, pool: str, *, count: int = 2, **spec: Any) -> None:
        raw = {
            "metadata": {"name": name, "uid": name},
            "spec": {
                "driver": DRIVER,
                "pool": {"name": pool, "generation": 1, "resourceSliceCount": count},
                **spec,
            },
        }
        self.scheduler.apply(RESOURCESLICES, "ADDED", msgspec.convert(raw, ResourceSlice))

    def gpus(self, node: str, devices: Json, *, have: Json = WHOLE, sets: tuple[str, ...] = ("gpu-0",)) -> None:
        """A pool of the node; `devices` says of each from which set it takes what."""
        shared = [{"name": name, "counters": counters(have)} for name in sets]
        self.slice(f"{node}-counters", node, nodeName=node, sharedCounters=shared)
        listed = [
            {"name": name, "consumesCounters": [{"counterSet": of, "counters": counters(takes)}]}
            for name, (of, takes) in devices.items()
        ]
        self.slice(f"{node}-devices", node, nodeName=node, devices=listed)

    def ask(self, name: str, count: int = 1) -> None:
        self.claim(name, {"count": count})
        self.users(name, 1, name)


def test_partitions_are_given_away_as_far_as_their_counters_go() -> None:
    cluster = Partitions()
    cluster.gpus("a", {"half-0": ("gpu-0", HALF), "half-1": ("gpu-0", HALF), "whole": ("gpu-0", WHOLE)})
    for name in ("one", "two", "three"):
        cluster.ask(name)
    cluster.cycle()
    assert [cluster.got(name) for name in ("one", "two", "three")] == [["half-0"], ["half-1"], []]
    assert "node(s) couldn't serve all resourceclaims" in cluster.why("three")
    cluster.delete_gang("one")
    cluster.drop("one")
    cluster.cycle()
    assert cluster.got("three") == ["half-0"]


def test_a_whole_device_leaves_nothing_for_its_parts() -> None:
    cluster = Partitions()
    cluster.gpus("a", {"whole": ("gpu-0", WHOLE), "half-0": ("gpu-0", HALF), "half-1": ("gpu-0", HALF)})
    cluster.ask("one")
    cluster.cycle()
    cluster.ask("two")
    cluster.cycle()
    assert (cluster.got("one"), cluster.got("two")) == (["whole"], [])


def test_one_claim_gets_no_two_devices_that_do_not_go_together() -> None:
    cluster = Partitions()
    cluster.gpus("a", {"whole": ("gpu-0", WHOLE), "half-0": ("gpu-0", HALF), "half-1": ("gpu-0", HALF)})
    cluster.ask("two", 2)
    cluster.ask("three", 3)
    cluster.cycle()
    assert (cluster.got("two"), cluster.got("three")) == (["half-0", "half-1"], [])


def test_devices_of_other_counters_are_looked_at_though_they_look_the_same() -> None:
    cluster = Partitions()
    cluster.gpus(
        "a",
        {"a-whole": ("gpu-0", WHOLE), "a-half": ("gpu-0", HALF), "b-whole": ("gpu-1", WHOLE)},
        sets=("gpu-0", "gpu-1"),
    )
    for name in ("one", "two", "three"):
        cluster.ask(name)
    cluster.cycle()
    assert [cluster.got(name) for name in ("one", "two", "three")] == [["a-whole"], ["b-whole"], []]


def test_devices_that_take_less_are_looked_at_though_they_look_the_same() -> None:
    cluster = Partitions()
    quarter = {"slices": "2", "memory": "10Gi"}
    cluster.gpus("a", {"large": ("gpu-0", WHOLE), "small-0": ("gpu-0", quarter), "small-1": ("gpu-0", quarter)})
    cluster.claim("c", {}, {})
    cluster.users("c", 1, "c")
    cluster.cycle()
    assert cluster.got("c") == ["small-0", "small-1"]


def test_what_others_gave_away_counts() -> None:
    cluster = Partitions()
    cluster.gpus("a", {"half-0": ("gpu-0", HALF), "whole": ("gpu-0", WHOLE)})
    result = {"request": "r0", "driver": DRIVER, "pool": "a", "device": "half-0"}
    cluster.claim("theirs", status={"allocation": {"devices": {"results": [result]}}})
    cluster.ask("ours")
    cluster.cycle()
    assert cluster.got("ours") == []


def test_access_for_administration_takes_nothing() -> None:
    cluster = Partitions()
    cluster.gpus("a", {"whole": ("gpu-0", WHOLE)})
    cluster.claim("watch", {"adminAccess": True})
    cluster.users("watch", 1, "watch")
    cluster.ask("use")
    cluster.cycle()
    assert (cluster.got("watch"), cluster.got("use")) == (["whole"], ["whole"])


def test_counters_that_devices_of_two_nodes_share_are_given_away_once() -> None:
    cluster = Partitions()
    cluster.slice("counters", "pod", nodeName="a", sharedCounters=[{"name": "s", "counters": counters(WHOLE)}])
    uses = [{"counterSet": "s", "counters": counters(WHOLE)}]
    devices = [{"name": f"on-{node}", "nodeName": node, "consumesCounters": uses} for node in ("a", "b")]
    cluster.slice("devices", "pod", perDeviceNodeSelection=True, devices=devices)
    cluster.ask("one")
    cluster.ask("two")
    cluster.cycle()
    assert (cluster.got("one"), cluster.got("two")) == (["on-a"], [])


@pytest.mark.parametrize(
    "consumed",
    [
        {"counterSet": "gpu-9", "counters": counters(HALF)},
        {"counterSet": "gpu-0", "counters": counters({"engines": "1"})},
        {"counterSet": "gpu-0", "counters": counters({"slices": "many"})},
    ],
    ids=["no such set", "no such counter", "no amount"],
)
def test_a_device_whose_counters_can_not_be_followed_is_given_to_nobody_and_said(consumed: Json) -> None:
    cluster = Partitions()
    shared = [{"name": "gpu-0", "counters": counters(WHOLE)}]
    cluster.slice("counters", "a", nodeName="a", sharedCounters=shared)
    cluster.slice("devices", "a", nodeName="a", devices=[{"name": "half-0", "consumesCounters": [consumed]}])
    cluster.ask("one")
    cluster.cycle()
    assert cluster.got("one") == []
    assert "take counters that their pool lacks" in cluster.why("one")


def grouped(cluster: Partitions, groups: dict[str, tuple[str, ...]], *, apart: str = "") -> None:
    """Devices of one GPU that are of these groups, each an eighth of it; one may be of another GPU, `apart`."""
    shared = [{"name": name, "counters": counters(WHOLE)} for name in ("gpu-0", "gpu-1")]
    cluster.slice("counters", "a", nodeName="a", sharedCounters=shared)
    devices: list[Json] = []
    for name, of in groups.items():
        whose = "gpu-1" if name == apart else "gpu-0"
        takes = {"counterSet": whose, "counters": counters({"slices": "1"}), "compatibilityGroups": list(of)}
        devices.append({"name": name, "consumesCounters": [takes]})
    cluster.slice("devices", "a", nodeName="a", devices=devices)


@pytest.mark.parametrize(
    ("groups", "most"),
    [
        ({"a": ("x",), "b": ("x",), "c": ("x",)}, 3),
        ({"a": ("x",), "b": ("y",)}, 1),
        ({"a": ("x",), "b": ()}, 1),
        ({"a": (), "b": ()}, 2),
        ({"a": ("x", "y"), "b": ("y", "z"), "c": ("x", "z")}, 2),
        ({"a": ("x", "y"), "b": ("y", "z"), "c": ("y",)}, 3),
    ],
    ids=["one", "different", "with and without", "without", "by pairs", "of all"],
)
def test_devices_are_had_together_that_are_all_of_one_group(groups: dict[str, tuple[str, ...]], most: int) -> None:
    cluster = Partitions()
    grouped(cluster, groups)
    cluster.ask("more", most + 1)
    cluster.ask("most", most)
    cluster.cycle()
    assert (len(cluster.got("more")), len(cluster.got("most"))) == (0, most)


def test_groups_concern_the_devices_that_take_from_the_same_counters() -> None:
    cluster = Partitions()
    grouped(cluster, {"a": ("x",), "b": ("y",), "c": ("y",)}, apart="c")
    for name in ("one", "two", "three"):
        cluster.ask(name)
    cluster.cycle()
    assert [cluster.got(name) for name in ("one", "two", "three")] == [["a"], ["c"], []]


def test_devices_of_another_group_are_given_away_when_those_of_the_first_are_back() -> None:
    cluster = Partitions()
    grouped(cluster, {"a": ("x",), "b": ("y",), "c": ("y",)})
    cluster.ask("one")
    cluster.ask("two", 2)
    cluster.cycle()
    assert (cluster.got("one"), cluster.got("two")) == (["a"], [])
    cluster.delete_gang("one")
    cluster.drop("one")
    cluster.cycle()
    assert cluster.got("two") == ["b", "c"]


def test_devices_of_other_groups_are_looked_at_though_they_look_the_same() -> None:
    cluster = Partitions()
    grouped(cluster, {"a": ("x",), "b": ("y",), "c": ("y",)})
    cluster.claim("c", {}, {})
    cluster.users("c", 1, "c")
    cluster.cycle()
    assert cluster.got("c") == ["b", "c"]


def test_groups_hold_for_the_devices_of_other_nodes_too() -> None:
    cluster = Partitions()
    cluster.slice("counters", "pod", nodeName="a", sharedCounters=[{"name": "s", "counters": counters(WHOLE)}])
    takes = {"counterSet": "s", "counters": counters({"slices": "1"})}
    devices = [
        {"name": name, "nodeName": node, "consumesCounters": [{**takes, "compatibilityGroups": [group]}]}
        for name, node, group in (("a-x", "a", "x"), ("a-y", "a", "y"), ("b-y", "b", "y"))
    ]
    cluster.slice("devices", "pod", perDeviceNodeSelection=True, devices=devices)

    def theirs(device: str) -> None:
        result = {"request": "r0", "driver": DRIVER, "pool": "pod", "device": device}
        cluster.claim("theirs", status={"allocation": {"devices": {"results": [result]}}})

    theirs("a-x")
    cluster.claim("ours")
    entry = {"name": "c", "resourceClaimName": "ours"}
    cluster.gang("ours", 1, pod={"resourceClaims": [entry], "nodeSelector": {"kubernetes.io/hostname": "b"}})
    cluster.cycle()
    assert cluster.got("ours") == []
    cluster.drop("theirs")
    theirs("a-y")
    cluster.cycle()
    assert cluster.got("ours") == ["b-y"]


def test_a_pool_counts_once_its_counters_are_there_too() -> None:
    cluster = Partitions()
    uses = [{"counterSet": "gpu-0", "counters": counters(HALF)}]
    cluster.slice("devices", "a", nodeName="a", devices=[{"name": "half-0", "consumesCounters": uses}])
    cluster.ask("one")
    cluster.cycle()
    assert cluster.got("one") == []
    shared = [{"name": "gpu-0", "counters": counters(WHOLE)}]
    cluster.slice("counters", "a", nodeName="a", sharedCounters=shared)
    cluster.cycle()
    assert cluster.got("one") == ["half-0"]


def test_a_class_that_changes_is_asked_again() -> None:
    cluster = Partitions()
    cluster.gpus("a", {"whole": ("gpu-0", WHOLE)})
    cluster.device_class("gpu", "device.driver == 'another'")
    cluster.ask("one")
    cluster.cycle()
    assert cluster.got("one") == []
    cluster.device_class("gpu", f"device.driver == '{DRIVER}'")
    cluster.cycle()
    assert cluster.got("one") == ["whole"]


@given(
    parts=st.lists(st.tuples(st.integers(0, 1), st.integers(1, 8)), min_size=1, max_size=6),
    counts=st.lists(st.integers(1, 3), min_size=1, max_size=6),
    drops=st.lists(st.integers(0, 5), max_size=3),
)
@settings(max_examples=60)
def test_no_counter_is_overdrawn(parts: list[tuple[int, int]], counts: list[int], drops: list[int]) -> None:
    cluster = Partitions()
    sets = ("gpu-0", "gpu-1")
    devices = {f"d{nth}": (sets[of], {"slices": str(size)}) for nth, (of, size) in enumerate(parts)}
    for node in ("a", "b"):
        cluster.gpus(node, devices, have={"slices": "8"}, sets=sets)
    for nth, count in enumerate(counts):
        cluster.ask(f"c{nth}", count)
    for nth in (None, *drops):
        if nth is not None and f"c{nth}" in cluster.groups:
            cluster.delete_gang(f"c{nth}")
            cluster.drop(f"c{nth}")
            del cluster.claims[f"c{nth}"]
        cluster.cycle()
        drawn: dict[tuple[str, int], int] = {}
        for raw in cluster.claims.values():
            for result in (raw["status"].get("allocation") or {"devices": {"results": []}})["devices"]["results"]:
                of, size = parts[int(result["device"][1:])]
                drawn[result["pool"], of] = drawn.get((result["pool"], of), 0) + size
        assert all(amount <= 8 for amount in drawn.values())
