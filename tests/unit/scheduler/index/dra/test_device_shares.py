"""Devices that are given to several at once (consumable capacity): who gets which share of which."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec
import pytest

from tests.unit.scheduler.cluster import Json
from tests.unit.scheduler.index.dra.test_device_counters import Partitions, counters
from tests.unit.scheduler.index.dra.test_devices_by_claim import DRIVER
from vcbatch.api.dra import SliceDevice
from vcbatch.api.quantity import parse_quantity
from vcbatch.scheduler.index.dra.capacity import capacity_of, share_of, written

STEPS = {"default": "1Gi", "validRange": {"min": "1Gi", "max": "6Gi", "step": "2Gi"}}
VALUES = {"default": "1Gi", "validValues": ["1Gi", "4Gi"]}


class Shares(Partitions):
    """Nodes with devices that many claims share."""

    def shared(self, node: str, *names: str, capacity: Json | None = None, **device: Any) -> None:
        """`capacity` by name, as text or with its request policy."""
        amounts = {k: v if isinstance(v, dict) else {"value": v} for k, v in (capacity or {}).items()}
        listed = [{"name": n, "allowMultipleAllocations": True, "capacity": amounts, **device} for n in names]
        self.slice(f"{node}-devices", node, count=1, nodeName=node, devices=listed)

    def want(self, name: str, *, count: int = 1, **amounts: str) -> None:
        """A gang of one pod with a claim that asks for so much."""
        request: Json = {"count": count}
        if amounts:
            request["capacity"] = {"requests": amounts}
        self.claim(name, request)
        self.users(name, 1, name)

    def results(self, claim: str) -> list[Json]:
        return (self.claims[claim]["status"].get("allocation") or {"devices": {"results": []}})["devices"]["results"]

    def consumed(self, claim: str) -> list[Json]:
        return [result["consumedCapacity"] for result in self.results(claim)]


def _share(policy: Json | None, wanted: str | None, *, value: str = "10Gi") -> dict[str, str] | None:
    amount: Any = {"value": value, "requestPolicy": policy}
    device = msgspec.convert({"name": "d", "capacity": {"memory": amount}}, SliceDevice)
    capacity = capacity_of(DRIVER, device)
    assert capacity is not None
    share = share_of(capacity, DRIVER, {} if wanted is None else {"memory": parse_quantity(wanted)})
    return None if share is None else written(capacity, share)


@pytest.mark.parametrize(
    ("policy", "wanted", "taken"),
    [
        (None, None, "10Gi"),
        (None, "3Gi", "3Gi"),
        (None, "11Gi", None),
        ({"default": "2Gi"}, None, "2Gi"),
        ({"default": "2Gi"}, "500Mi", "500Mi"),
        (STEPS, None, "1Gi"),
        (STEPS, "1", "1Gi"),
        (STEPS, "2Gi", "3Gi"),
        (STEPS, "3Gi", "3Gi"),
        (STEPS, "3073Mi", "5Gi"),
        (STEPS, "5121Mi", None),
        (VALUES, None, "1Gi"),
        (VALUES, "1025Mi", "4Gi"),
        (VALUES, "5Gi", None),
        ({"default": "1Gi", "validRange": {"min": "1Gi"}}, "12Gi", None),
        ({"default": "1Gi", "validRange": {"min": "1Gi"}}, "1536Mi", "1536Mi"),
    ],
)
def test_what_a_share_takes_follows_the_policy_of_the_capacity(
    policy: Json | None, wanted: str | None, taken: str | None
) -> None:
    assert _share(policy, wanted) == (None if taken is None else {"memory": taken})


def test_claims_share_a_device_until_its_capacity_is_used_up() -> None:
    cluster = Shares()
    cluster.shared("a", "gpu-0", capacity={"memory": "10Gi"})
    for name, memory in (("one", "6Gi"), ("two", "4Gi"), ("three", "1")):
        cluster.want(name, memory=memory)
    cluster.cycle()
    assert [cluster.got(name) for name in ("one", "two", "three")] == [["gpu-0"], ["gpu-0"], []]
    assert cluster.consumed("one") == [{"memory": "6Gi"}]
    assert "node(s) couldn't serve all resourceclaims" in cluster.why("three")
    cluster.delete_gang("two")
    cluster.drop("two")
    cluster.cycle()
    assert cluster.got("three") == ["gpu-0"]


def test_an_allocation_of_a_share_is_written_as_the_api_has_it() -> None:
    cluster = Shares()
    cluster.shared("a", "gpu-0", capacity={"memory": {"value": "10Gi", "requestPolicy": VALUES}, "cores": "100"})
    cluster.claim("c", {"capacity": {"requests": {"memory": "2Gi", f"{DRIVER}/cores": "20"}}})
    cluster.users("c", 1, "c")
    cluster.cycle()
    (result,) = cluster.results("c")
    share = result.pop("shareID")
    assert str(uuid.UUID(share)) == share
    assert result == {
        "request": "r0",
        "driver": DRIVER,
        "pool": "a",
        "device": "gpu-0",
        "consumedCapacity": {"cores": "20", "memory": "4Gi"},
    }


def test_every_share_has_an_id_of_its_own() -> None:
    cluster = Shares()
    cluster.shared("a", "gpu-0", "gpu-1", capacity={"memory": "10Gi"})
    cluster.want("one", count=2, memory="1Gi")
    cluster.want("two", count=2, memory="1Gi")
    cluster.cycle()
    shares = [result["shareID"] for name in ("one", "two") for result in cluster.results(name)]
    assert len(set(shares)) == 4


def test_requests_of_one_claim_may_share_a_device_and_one_request_has_it_once() -> None:
    cluster = Shares()
    cluster.shared("a", "gpu-0", capacity={"memory": "10Gi"})
    ask = {"capacity": {"requests": {"memory": "4Gi"}}}
    cluster.claim("two", ask, ask)
    cluster.users("two", 1, "two")
    cluster.want("count", count=2, memory="1Gi")
    cluster.cycle()
    assert cluster.got("two") == ["gpu-0", "gpu-0"]
    assert cluster.got("count") == []


def test_a_claim_whose_devices_must_be_distinct_has_none_twice() -> None:
    cluster = Shares()
    listed = [
        {
            "name": f"gpu-{i}",
            "allowMultipleAllocations": True,
            "capacity": {"memory": {"value": "10Gi"}},
            "attributes": {"index": {"int": i}},
        }
        for i in range(2)
    ]
    cluster.slice("a", "a", count=1, nodeName="a", devices=listed)
    ask = {"capacity": {"requests": {"memory": "1Gi"}}}
    cluster.claim("c", ask, ask, constraints=[{"distinctAttribute": f"{DRIVER}/index"}])
    cluster.users("c", 1, "c")
    cluster.claim("three", ask, ask, ask, constraints=[{"distinctAttribute": f"{DRIVER}/index"}])
    cluster.users("three", 1, "three")
    cluster.cycle()
    assert (cluster.got("c"), cluster.got("three")) == (["gpu-0", "gpu-1"], [])


def test_shares_that_others_gave_away_count_whatever_they_are_called() -> None:
    cluster = Shares()
    cluster.shared("a", "gpu-0", capacity={"memory": "10Gi"})
    result = {"request": "r0", "driver": DRIVER, "pool": "a", "device": "gpu-0"}
    for nth, name in enumerate(("memory", f"{DRIVER}/memory")):
        share = {"shareID": str(uuid.UUID(int=nth)), "consumedCapacity": {name: "3Gi"}}
        cluster.claim(f"theirs-{nth}", status={"allocation": {"devices": {"results": [{**result, **share}]}}})
    cluster.want("large", memory="5Gi")
    cluster.want("small", memory="4Gi")
    cluster.cycle()
    assert (cluster.got("large"), cluster.got("small")) == ([], ["gpu-0"])


def test_a_device_that_somebody_has_for_himself_is_not_shared_and_the_other_way_round() -> None:
    cluster = Shares()
    cluster.shared("a", "gpu-0", capacity={"memory": "10Gi"})
    result = {"request": "r0", "driver": DRIVER, "pool": "a", "device": "gpu-0"}
    cluster.claim("theirs", status={"allocation": {"devices": {"results": [result]}}})
    cluster.want("ours", memory="1Gi")
    cluster.cycle()
    assert cluster.got("ours") == []
    cluster.slice("a-devices", "a", count=1, nodeName="a", devices=[{"name": "gpu-0"}])
    share = {**result, "shareID": str(uuid.UUID(int=1))}
    cluster.claim("theirs", status={"allocation": {"devices": {"results": [share]}}})
    cluster.want("whole")
    cluster.cycle()
    assert cluster.got("whole") == []


def test_a_capacity_that_a_device_lacks_is_found_on_another() -> None:
    cluster = Shares()
    cluster.shared("a", "gpu-0", capacity={"memory": "10Gi"})
    cluster.shared("b", "gpu-0", capacity={"memory": "10Gi", "cores": "8"})
    cluster.want("c", cores="1", memory="1Gi")
    cluster.cycle()
    assert cluster.placed("c") == {"c-worker-0": "b"}


def test_who_asks_a_device_of_its_own_for_capacity_gets_one_that_has_it() -> None:
    cluster = Shares()
    sizes = {"small": "10Gi", "large": "80Gi"}
    listed = [{"name": name, "capacity": {"memory": {"value": size}}} for name, size in sizes.items()]
    cluster.slice("a", "a", count=1, nodeName="a", devices=listed)
    cluster.want("one", memory="40Gi")
    cluster.want("two", memory="40Gi")
    cluster.cycle()
    assert (cluster.got("one"), cluster.got("two")) == (["large"], [])
    assert "consumedCapacity" not in cluster.results("one")[0]
    assert "shareID" not in cluster.results("one")[0]


def test_a_device_that_is_shared_takes_its_counters_once() -> None:
    cluster = Shares()
    cluster.slice("counters", "a", nodeName="a", sharedCounters=[{"name": "s", "counters": counters({"slices": "4"})}])
    uses = [{"counterSet": "s", "counters": counters({"slices": "3"})}]
    shared = {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "10Gi"}}, "consumesCounters": uses}
    plain = {"name": "own", "consumesCounters": [{"counterSet": "s", "counters": counters({"slices": "2"})}]}
    cluster.slice("devices", "a", nodeName="a", devices=[{"name": "shared", **shared}, plain])
    for name in ("one", "two"):
        cluster.want(name, memory="5Gi")
    cluster.want("own")
    cluster.cycle()
    assert [cluster.got(name) for name in ("one", "two", "own")] == [["shared"], ["shared"], []]
    for name in ("one", "two"):
        cluster.delete_gang(name)
        cluster.drop(name)
    cluster.slice("devices", "a", nodeName="a", devices=[plain])
    cluster.cycle()
    assert cluster.got("own") == ["own"]


def test_access_for_administration_takes_no_share() -> None:
    cluster = Shares()
    cluster.shared("a", "gpu-0", capacity={"memory": "10Gi"})
    cluster.want("use", memory="10Gi")
    cluster.cycle()
    cluster.claim("watch", {"adminAccess": True})
    cluster.users("watch", 1, "watch")
    cluster.cycle()
    assert cluster.got("watch") == ["gpu-0"]
    assert "consumedCapacity" not in cluster.results("watch")[0]


def test_all_devices_are_those_that_have_room_for_the_share() -> None:
    cluster = Shares()
    cluster.shared("a", "gpu-0", "gpu-1", capacity={"memory": "10Gi"})
    cluster.want("one", memory="8Gi")
    cluster.cycle()
    cluster.claim("all", {"allocationMode": "All", "capacity": {"requests": {"memory": "4Gi"}}})
    cluster.users("all", 1, "all")
    cluster.cycle()
    assert (cluster.got("one"), cluster.got("all")) == (["gpu-0"], ["gpu-1"])


def test_a_gang_that_is_given_up_gives_its_shares_back() -> None:
    cluster = Shares()
    cluster.shared("a", "gpu-0", capacity={"memory": "10Gi"})
    cluster.gang("large", 0, minimum=3)
    for nth in range(3):
        cluster.claim(f"c{nth}", {"capacity": {"requests": {"memory": "4Gi"}}})
        cluster.pod("large", nth, resourceClaims=[{"name": "c", "resourceClaimName": f"c{nth}"}])
    cluster.want("fits", memory="10Gi")
    cluster.cycle()
    assert cluster.placed("large") == {}
    assert cluster.got("fits") == ["gpu-0"]


def test_devices_are_chosen_by_whether_they_are_shared() -> None:
    pytest.importorskip("cel")
    cluster = Shares()
    cluster.slice(
        "a", "a", count=1, nodeName="a", devices=[{"name": "own"}, {"name": "shared", "allowMultipleAllocations": True}]
    )
    for name, text in (("one", "device.allowMultipleAllocations"), ("two", "!device.allowMultipleAllocations")):
        cluster.claim(name, {"selectors": [{"cel": {"expression": text}}]})
        cluster.users(name, 1, name)
    cluster.cycle()
    assert (cluster.got("one"), cluster.got("two")) == (["shared"], ["own"])


def test_devices_of_which_less_is_left_are_looked_at_though_they_look_the_same() -> None:
    cluster = Shares()
    cluster.shared("a", "gpu-0", "gpu-1", capacity={"memory": "8Gi"})
    share = {"shareID": str(uuid.UUID(int=1)), "consumedCapacity": {"memory": "3Gi"}}
    result = {"request": "r0", "driver": DRIVER, "pool": "a", "device": "gpu-1", **share}
    cluster.claim("theirs", status={"allocation": {"devices": {"results": [result]}}})
    cluster.claim("c", *({"capacity": {"requests": {"memory": memory}}} for memory in ("3Gi", "8Gi")))
    cluster.users("c", 1, "c")
    cluster.cycle()
    assert cluster.got("c") == ["gpu-1", "gpu-0"]
