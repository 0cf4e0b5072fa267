"""Quotas of devices by claim: what queues may hold of a class of devices and of the capacity that these share."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.scheduler.index.dra.test_devices_by_claim import DRIVER, Claims, Json
from vcbatch.api.dra import DeviceClass
from vcbatch.api.resources import DEVICECLASSES
from vcbatch.scheduler import WaitReason, build_policy

COUNT = "deviceclass/gpu"
GPU = "example.com/gpu"
MEMORY = "memory.deviceclass/gpu"


class Quotas(Claims):
    """As many devices on both nodes as anybody asks for, and queues with quotas of them."""

    def __init__(self, *, hierarchy: bool = True, capacity: bool = False, devices: bool = True) -> None:
        super().__init__()
        arguments = {
            "capacity.DynamicResourceAllocationEnable": True,
            "capacity.DRAConsumableCapacityEnable": capacity,
        }
        plugin = {"name": "capacity", "enableHierarchy": hierarchy, "arguments": arguments}
        filters = {"name": "predicates", "arguments": {"predicate.DynamicResourceAllocationEnable": devices}}
        self.scheduler.set_policy(
            build_policy({"actions": "enqueue, allocate", "tiers": [{"plugins": [{"name": "gang"}, plugin, filters]}]})
        )
        for node in ("a", "b"):
            self.devices(node, *[f"{node}-{i}" for i in range(8)])

    def single(self, name: str, queue: str, **request: Any) -> None:
        """A gang of one pod with a claim of its own."""
        self.claim(name, request)
        self.users(name, 1, name, queue=queue)

    def back(self, resource: str) -> None:
        """The class `gpu` backs this extended resource."""
        selectors = [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]
        spec = {"selectors": selectors, "extendedResourceName": resource}
        raw = {"metadata": {"name": "gpu", "uid": "dc-gpu"}, "spec": spec}
        self.scheduler.apply(DEVICECLASSES, "MODIFIED", msgspec.convert(raw, DeviceClass))

    def wants(self, name: str, size: int, count: int, *, node: str = "", **given: Any) -> None:
        """A gang whose pods ask for devices as an extended resource, on this node where one is named."""
        container = {"name": "main", "resources": {"requests": {"cpu": "1", GPU: str(count)}}}
        where = {"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}
        self.gang(name, size, pod={"containers": [container], **where}, **given)

    def store(self, raw: Json) -> None:
        """The claim changed."""
        self._store(raw, "MODIFIED")

    def amounts(self) -> dict[str, dict[str, str | None]]:
        """What the next cycle tells queues that they hold of devices."""
        reported = self.cycle().queue_statuses
        return {u.name: {k: v for k, v in u.allocated.items() if "deviceclass" in k} for u in reported}

    def reason(self, gang: str) -> tuple[WaitReason, str]:
        reported = self.scheduler.explain("ns", gang)
        assert reported is not None
        return reported.reason, reported.message


def test_a_queue_and_those_above_it_hold_no_more_devices_than_they_may() -> None:
    cluster = Quotas()
    cluster.queue("eng", capability={COUNT: "3"})
    cluster.queue("x", parent="eng", capability={COUNT: "2"})
    cluster.queue("y", parent="eng")
    cluster.single("one", "x", count=2)
    cluster.cycle()
    cluster.single("two", "x")
    cluster.single("three", "y", count=2)
    cluster.single("four", "y")
    cluster.cycle()
    assert len(cluster.placed("one")) == len(cluster.placed("four")) == 1
    reason, message = cluster.reason("two")
    assert reason is WaitReason.QUEUE_LIMIT
    assert f"{COUNT} 1 with 2 held of 2 allowed (queue x): short by 1" in message
    reason, message = cluster.reason("three")
    assert reason is WaitReason.QUEUE_LIMIT
    assert "held of 3 allowed (queue eng)" in message
    cluster.delete_gang("one")
    cluster.cycle()
    cluster.cycle()
    assert len(cluster.placed("two")) == 1


def test_a_claim_of_several_pods_counts_once() -> None:
    cluster = Quotas()
    cluster.queue("q", capability={COUNT: "2"})
    cluster.claim("shared", {"count": 2})
    cluster.users("many", 3, "shared", queue="q")
    assert cluster.amounts()["q"] == {COUNT: "2"}
    assert len(cluster.placed("many")) == 3
    cluster.single("more", "q")
    cluster.cycle()
    assert not cluster.placed("more")
    cluster.delete_gang("many")
    assert cluster.amounts()["q"] == {COUNT: "1"}
    assert len(cluster.placed("more")) == 1


def test_a_claim_shared_by_pods_of_two_queues_counts_in_each_and_once_above() -> None:
    cluster = Quotas()
    cluster.queue("eng", capability={COUNT: "1"})
    for name in ("x", "y"):
        cluster.queue(name, parent="eng", capability={COUNT: "1"})
    cluster.claim("shared")
    for name in ("x", "y"):
        cluster.users(name, 1, "shared", queue=name)
    reported = cluster.amounts()
    assert (len(cluster.placed("x")), len(cluster.placed("y"))) == (1, 1)
    assert [reported[name] for name in ("eng", "root", "x", "y") if name in reported] == [{COUNT: "1"}] * 3


def test_without_a_hierarchy_queues_above_limit_nothing() -> None:
    cluster = Quotas(hierarchy=False)
    cluster.queue("eng", capability={COUNT: "1"})
    cluster.queue("x", parent="eng")
    cluster.single("one", "x", count=3)
    cluster.cycle()
    assert len(cluster.placed("one")) == 1


@pytest.mark.parametrize("limit", ["0", None])
def test_a_number_of_devices_is_limited_above_zero_only(limit: str | None) -> None:
    cluster = Quotas()
    cluster.queue("q", capability={"cpu": "100"} if limit is None else {COUNT: limit})
    cluster.single("one", "q", count=4)
    cluster.cycle()
    assert len(cluster.placed("one")) == 1


def test_more_devices_than_the_queue_may_ever_hold_are_impossible() -> None:
    cluster = Quotas(devices=False)
    cluster.queue("q", capability={COUNT: "1"})
    cluster.single("one", "q", count=2)
    cluster.cycle()
    reason, message = cluster.reason("one")
    assert reason is WaitReason.IMPOSSIBLE
    assert f"{COUNT} 2 with 0 held of 1 allowed (queue q): short by 1" in message


def test_pods_of_a_gang_are_counted_one_after_the_other() -> None:
    cluster = Quotas()
    cluster.queue("q", capability={COUNT: "2"})
    for name in ("c0", "c1", "c2"):
        cluster.claim(name)
    cluster.gang("g", 0, minimum=3, queue="q")
    for index in range(3):
        claim = {"name": "d", "resourceClaimName": f"c{index}"}
        cluster.pod("g", index, resourceClaims=[claim])
    cluster.cycle()
    assert not cluster.placed("g")
    assert "with 2 held of 2 allowed" in cluster.reason("g")[1]
    cluster.queue("q", event="MODIFIED", capability={COUNT: "3"})
    cluster.cycle()
    assert len(cluster.placed("g")) == 3


def test_a_gang_is_admitted_where_its_claims_and_those_of_admitted_gangs_fit() -> None:
    cluster = Quotas(devices=False)
    cluster.queue("q", capability={COUNT: "3"})
    cluster.claim("c0", {"count": 2})
    cluster.claim("c1", {"count": 2})
    cluster.users("first", 1, "c0", queue="q", phase="Pending", minimum=2)  # admitted, and waits for a second pod
    cluster.cycle()
    cluster.users("second", 1, "c1", queue="q", phase="Pending")
    cluster.cycle()
    assert cluster.groups["first"]["status"]["phase"] == "Inqueue"
    assert cluster.groups["second"]["status"]["phase"] == "Pending"
    assert f"{COUNT} 2 with 2 held of 3 allowed (queue q): short by 1" in cluster.reason("second")[1]
    cluster.delete_gang("first")
    cluster.cycle()
    cluster.cycle()
    assert len(cluster.placed("second")) == 1


def test_capacity_counts_where_the_policy_says_so() -> None:
    wanted = {"requests": {"memory": "10Gi"}}
    cluster = Quotas(capacity=True, devices=False)
    cluster.queue("q", capability={MEMORY: "25Gi"})
    cluster.queue("other", capability={COUNT: "5"})
    cluster.single("two", "q", count=2, capacity=wanted)
    cluster.cycle()
    cluster.single("three", "q", capacity=wanted)
    cluster.single("unnamed", "other", capacity=wanted)
    cluster.cycle()
    assert len(cluster.placed("two")) == 1
    assert cluster.reason("three")[0] is WaitReason.QUEUE_LIMIT
    reason, message = cluster.reason("unnamed")
    assert reason is WaitReason.IMPOSSIBLE
    assert f"{MEMORY} 10737418240, which the capability of queue other doesn't name" in message


def test_how_many_all_devices_are_is_not_known_before_they_are_given() -> None:
    cluster = Quotas()
    cluster.queue("free")
    cluster.queue("limited", capability={COUNT: "8"})
    cluster.single("one", "limited", allocationMode="All")
    cluster.single("two", "free", allocationMode="All")
    cluster.cycle()
    reason, message = cluster.reason("one")
    assert reason is WaitReason.IMPOSSIBLE
    assert f"{COUNT} all devices with 0 held of 8 allowed (queue limited)" in message
    assert len(cluster.placed("two")) == 1
    assert cluster.amounts()["free"] == {COUNT: "8"}


def test_a_pod_whose_claim_is_not_there_is_not_placed() -> None:
    cluster = Quotas(devices=False)
    cluster.queue("q", capability={COUNT: "1"})
    cluster.users("one", 1, "gone", queue="q")
    cluster.cycle()
    reason, message = cluster.reason("one")
    assert reason is WaitReason.DEVICES
    assert 'one-worker-0 waits: resourceclaim "ns/gone" not found' in message


def test_a_queue_that_holds_what_it_deserves_of_devices_comes_after_one_that_holds_none() -> None:
    cluster = Quotas()
    cluster.queue("root", capability={COUNT: "3"})
    for name in ("a", "b"):
        cluster.queue(name, deserved={COUNT: "2"})
    cluster.single("a0", "a", count=2)
    cluster.cycle()
    cluster.single("a1", "a")
    cluster.single("b1", "b")
    cluster.cycle()
    assert (len(cluster.placed("a1")), len(cluster.placed("b1"))) == (0, 1)


def test_devices_for_extended_resources_count_as_those_of_claims_do() -> None:
    cluster = Quotas()
    cluster.back(GPU)
    cluster.queue("x", capability={COUNT: "3"})
    cluster.single("claim", "x")
    cluster.wants("two", 1, 2, queue="x")
    cluster.cycle()
    cluster.wants("one", 1, 1, queue="x")
    cluster.wants("elsewhere", 1, 1)
    cluster.wants("never", 1, 4, queue="x")
    cluster.cycle()
    assert [len(cluster.placed(name)) for name in ("two", "one", "elsewhere")] == [1, 0, 1]
    reason, message = cluster.reason("one")
    assert reason is WaitReason.QUEUE_LIMIT
    assert f"{COUNT} 1 with 3 held of 3 allowed (queue x): short by 1" in message
    assert cluster.reason("never")[0] is WaitReason.IMPOSSIBLE
    cluster.delete_gang("two")
    cluster.cycle()
    assert len(cluster.placed("one")) == 1


def test_pods_on_nodes_that_offer_the_resource_hold_no_devices() -> None:
    cluster = Quotas()
    cluster.back(GPU)
    cluster.node("a", event="MODIFIED", **{GPU: "4"})
    cluster.queue("x", capability={COUNT: "1"})
    cluster.wants("offered", 1, 1, queue="x", node="a")
    cluster.cycle()
    assert cluster.scheduler._state.queue_devices is not None
    assert cluster.placed("offered") == {"offered-worker-0": "a"}
    assert cluster.scheduler._state.queue_devices.own == {}


_STEP = st.tuples(
    st.sampled_from(["place", "extend", "delete", "move", "limit", "change", "back", "offer"]), st.integers(0, 5)
)


@settings(max_examples=40)
@given(st.lists(_STEP, max_size=25))
def test_what_queues_hold_is_what_it_is_when_counted_anew(steps: list[tuple[str, int]]) -> None:
    cluster = Quotas()
    cluster.queue("eng", capability={COUNT: "6"})
    for name in ("x", "y"):
        cluster.queue(name, parent="eng", capability={COUNT: "4"})
    cluster.cycle()
    for name in ("c0", "c1", "c2"):
        cluster.claim(name, {"count": int(name[1]) + 1})
    alive: set[str] = set()
    for number, (step, which) in enumerate(steps):
        gang = f"g{which}"
        if step == "place" and gang not in alive:
            cluster.users(gang, 1 + which % 2, f"c{which % 3}", queue="xy"[which % 2])
            alive.add(gang)
        elif step == "extend" and gang not in alive:
            cluster.wants(gang, 1 + which % 2, 1 + which % 3, queue="xy"[which % 2])
            alive.add(gang)
        elif step == "back":
            cluster.back(GPU if which % 2 else "example.com/other")
        elif step == "offer":
            cluster.node("b", event="MODIFIED", **({GPU: "2"} if which % 2 else {}))
        elif step == "delete" and gang in alive:
            cluster.delete_gang(gang)
            alive.remove(gang)
        elif step == "move" and gang in alive:
            cluster.groups[gang]["spec"]["queue"] = "xy"[number % 2]
            cluster.report_group(gang)
        elif step == "limit":
            cluster.queue("eng", event="MODIFIED", capability={COUNT: str(which)})
        elif step == "change":
            name = f"c{which % 3}"
            raw = cluster.claims[name]
            requests = [{"name": "r0", "exactly": {"deviceClassName": "gpu", "count": 1 + which % 2}}]
            cluster.store({**raw, "spec": {"devices": {"requests": requests}}})
        cluster.cycle()
        state = cluster.scheduler._state
        kept = state.queue_devices
        assert kept is not None
        state.queue_devices = None
        fresh = state.count_devices(capacity=False)
        fresh.settle(kept.chains)
        state.queue_devices = kept
        for one, other in ((kept.own, fresh.own), (kept.whole, fresh.whole)):
            assert {n: h for n, h in one.items() if h.users} == {n: h for n, h in other.items() if h.users}
            assert not any(h.amounts for h in one.values() if not h.users)
