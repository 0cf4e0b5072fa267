"""Pods that claim devices: who gets which, where they may go, and why they wait."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.scheduler.cluster import Cluster, Json
from vcbatch.api.dra import DeviceClass, ResourceClaim, ResourceSlice
from vcbatch.api.resources import DEVICECLASSES, RESOURCECLAIMS, RESOURCESLICES
from vcbatch.scheduler import CycleResult, Policy, WaitReason, build_policy
from vcbatch.scheduler.index.dra import expressions
from vcbatch.scheduler.index.dra.claimed import MOST_CONSUMERS
from vcbatch.scheduler.index.dra.node_devices import CANNOT_ALLOCATE
from vcbatch.scheduler.model.result import Bind, DeviceBinding

DRIVER = "gpu.example.com"


def _policy(**arguments: Any) -> Policy:
    plugins = [{"name": "gang"}, {"name": "predicates", "arguments": arguments}]
    return build_policy({"actions": "enqueue, allocate", "tiers": [{"plugins": plugins}]})


class Claims(Cluster):
    """Two nodes; a device class for the devices of one driver. Allocations that are decided are stored."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(_policy(**arguments))
        self.claims: dict[str, Json] = {}
        for name in ("a", "b"):
            self.node(name)
        self.device_class("gpu", f"device.driver == '{DRIVER}'")

    def device_class(self, name: str, *selectors: str, **spec: Any) -> None:
        raw = {
            "metadata": {"name": name, "uid": f"dc-{name}"},
            "spec": {"selectors": [{"cel": {"expression": text}} for text in selectors], **spec},
        }
        self.scheduler.apply(DEVICECLASSES, "ADDED", msgspec.convert(raw, DeviceClass))

    def devices(self, node: str, *names: str, pool: str = "", event: str = "ADDED", **spec: Any) -> None:
        """The devices of a node (of all where it is empty); `of` has their attributes by name, `capacity` as well."""
        attributes, capacity = spec.pop("of", {}), spec.pop("capacity", {})
        taints = spec.pop("taints", {})
        listed = [
            {
                "name": name,
                "attributes": attributes.get(name),
                "capacity": capacity.get(name),
                "taints": taints.get(name),
            }
            for name in names
        ]
        meta = {"name": f"slice-{pool or node}", "uid": f"slice-{pool or node}"}
        where: Json = {"nodeName": node} if node else {}
        size = {"name": pool or node, "generation": spec.pop("generation", 1), "resourceSliceCount": 1}
        raw = {"metadata": meta, "spec": {"driver": DRIVER, "pool": size, "devices": listed, **where, **spec}}
        self.scheduler.apply(RESOURCESLICES, event, msgspec.convert(raw, ResourceSlice))

    def claim(self, name: str, *requests: Json, status: Json | None = None, owner: str = "", **devices: Any) -> None:
        """`owner` is the UID of the pod for which it was made of a template."""
        wanted = [
            {"name": f"r{i}", "exactly": {"deviceClassName": "gpu", **r}} if "firstAvailable" not in r else r
            for i, r in enumerate(requests or ({},))
        ]
        owner_of = [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner, "controller": True}]
        owned = {"ownerReferences": owner_of} if owner else {}
        raw: Json = {
            "metadata": {"name": name, "namespace": "ns", "uid": f"rc-{name}", **owned},
            "spec": {"devices": {"requests": wanted, **devices}},
            "status": status or {},
        }
        self._store(raw, "ADDED")

    def _store(self, raw: Json, event: str) -> None:
        self.claims[raw["metadata"]["name"]] = raw
        self.scheduler.apply(RESOURCECLAIMS, event, msgspec.convert(raw, ResourceClaim))

    def drop(self, name: str) -> None:
        self._store(self.claims[name], "DELETED")

    def users(self, gang: str, size: int, *claims: str, **given: Any) -> None:
        entries = [{"name": name, "resourceClaimName": name} for name in claims]
        self.gang(gang, size, pod={"resourceClaims": entries}, **given)

    def cycle(self, *, after: float = 2.0) -> CycleResult:
        result = super().cycle(after=after)
        for bind in result.binds:
            for device in bind.devices:
                raw = self.claims.get(device.name) or self._made(bind, device)
                status = dict(raw["status"])
                if device.allocation is not None:
                    status["allocation"] = device.allocation
                status["reservedFor"] = [
                    *status.get("reservedFor", []), {"resource": "pods", "name": bind.name, "uid": bind.uid}
                ]  # fmt: skip
                self._store({**raw, "status": status}, "MODIFIED")
        return result

    @staticmethod
    def _made(bind: Bind, device: DeviceBinding) -> Json:
        """The claim for the extended resources of a pod."""
        assert device.extended is not None
        owner = {"apiVersion": "v1", "kind": "Pod", "name": bind.name, "uid": bind.uid, "controller": True}
        notes = {"resource.kubernetes.io/extended-resource-claim": "true"}
        meta: Json = {"name": device.name, "namespace": "ns", "uid": f"rc-{device.name}", "ownerReferences": [owner]}
        requests = list(device.extended.requests)
        return {"metadata": {**meta, "annotations": notes}, "spec": {"devices": {"requests": requests}}, "status": {}}

    def got(self, claim: str) -> list[str]:
        """The devices of a claim."""
        allocation = self.claims[claim]["status"].get("allocation") or {"devices": {"results": []}}
        return [result["device"] for result in allocation["devices"]["results"]]

    def why(self, gang: str) -> str:
        reported = self.scheduler.explain("ns", gang)
        assert reported is not None
        return f"{reported.message} {reported.nodes}"


def test_a_claim_gets_a_device_of_the_node_of_its_pod() -> None:
    cluster = Claims()
    cluster.devices("b", "gpu-0", "gpu-1")
    cluster.claim("c")
    cluster.users("g", 1, "c")
    result = cluster.cycle()
    assert cluster.placed("g") == {"g-worker-0": "b"}
    (given_,) = result.binds[0].devices
    assert given_.allocation == {
        "devices": {"results": [{"request": "r0", "driver": DRIVER, "pool": "b", "device": "gpu-0"}]},
        "nodeSelector": {
            "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}]
        },
    }
    assert result.binds[0].gang == "ns/g"


def test_devices_are_given_away_once_and_come_back_with_their_claim() -> None:
    cluster = Claims()
    cluster.devices("a", "gpu-0")
    for name in ("one", "two"):
        cluster.claim(name)
        cluster.users(name, 1, name)
    cluster.cycle()
    assert (cluster.got("one"), cluster.got("two")) == (["gpu-0"], [])
    assert "node(s) couldn't serve all resourceclaims" in cluster.why("two")
    assert not cluster.cycle().binds
    cluster.delete_gang("one")
    assert not cluster.cycle().binds, "the claim still has it"
    cluster.drop("one")
    cluster.cycle()
    assert cluster.got("two") == ["gpu-0"]


def test_a_gang_that_is_given_up_gives_its_devices_back() -> None:
    cluster = Claims()
    cluster.devices("a", "gpu-0", "gpu-1")
    for name in ("x", "y", "z"):
        cluster.claim(name, {"count": 1})
    cluster.gang("large", 0, minimum=3)
    for index, name in enumerate(("x", "y", "z")):
        cluster.pod("large", index, resourceClaims=[{"name": "c", "resourceClaimName": name}])
    cluster.claim("both", {"count": 2})
    cluster.users("fits", 1, "both")
    cluster.cycle()
    assert cluster.placed("large") == {}
    assert cluster.got("both") == ["gpu-0", "gpu-1"]


def test_pods_that_share_a_claim_go_where_its_devices_are() -> None:
    cluster = Claims()
    cluster.devices("b", "gpu-0")
    cluster.claim("c")
    cluster.users("g", 3, "c")
    result = cluster.cycle()
    assert set(cluster.placed("g").values()) == {"b"}
    assert len({str(bind.devices[0].allocation) for bind in result.binds}) == 1
    cluster.users("later", 1, "c")
    cluster.cycle()
    assert cluster.placed("later") == {"later-worker-0": "b"}


def test_a_claim_that_has_devices_keeps_its_pods_there() -> None:
    cluster = Claims()
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["b"]}]}
    allocation = {"devices": {"results": []}, "nodeSelector": {"nodeSelectorTerms": [term]}}
    cluster.claim("c", status={"allocation": allocation})
    cluster.users("g", 1, "c")
    result = cluster.cycle()
    assert cluster.placed("g") == {"g-worker-0": "b"}
    assert [device.allocation for device in result.binds[0].devices] == [None]


def test_counts_alternatives_and_all() -> None:
    cluster = Claims()
    cluster.devices("a", "gpu-0", "gpu-1", "gpu-2")
    cluster.claim("four", {"count": 4})
    cluster.users("g", 1, "four")
    ways = [{"name": "many", "deviceClassName": "gpu", "count": 4}, {"name": "few", "deviceClassName": "gpu"}]
    cluster.claim("either", {"name": "r", "firstAvailable": ways})
    cluster.users("h", 1, "either")
    result = cluster.cycle()
    assert cluster.placed("g") == {}
    assert cluster.got("either") == ["gpu-0"]
    assert result.binds[0].devices[0].allocation is not None
    assert result.binds[0].devices[0].allocation["devices"]["results"][0]["request"] == "r/few"
    cluster.claim("all", {"allocationMode": "All"})
    cluster.users("k", 1, "all")
    assert not cluster.cycle().binds, "one of them is in use"
    cluster.delete_gang("h")
    cluster.drop("either")
    cluster.cycle()
    assert cluster.got("all") == ["gpu-0", "gpu-1", "gpu-2"]


def test_of_nodes_that_serve_a_claim_the_one_with_the_earlier_alternative_is_taken() -> None:
    cluster = Claims()
    cluster.node("c")
    for name in ("large", "small"):
        cluster.device_class(name, f"device.attributes['{DRIVER}'].size == '{name}'")
    for node, size in (("a", "small"), ("b", "other"), ("c", "large")):
        cluster.devices(node, f"{size}-0", f"{size}-1", of={f"{size}-{n}": {"size": {"string": size}} for n in (0, 1)})
    ways = [{"name": name, "deviceClassName": name} for name in ("large", "small")]
    got: list[list[str]] = []
    for nth in range(5):
        cluster.claim(f"c{nth}", {"name": "r", "firstAvailable": ways})
        cluster.users(f"g{nth}", 1, f"c{nth}")
        cluster.cycle()
        got.append(cluster.got(f"c{nth}"))
    assert got == [["large-0"], ["large-1"], ["small-0"], ["small-1"], []]


def test_devices_are_chosen_by_expression() -> None:
    pytest.importorskip("cel")
    cluster = Claims()
    of = {"old": {"model": {"string": "A"}, "v": {"version": "1.9.0"}}, "new": {"v": {"version": "1.10.0"}}}
    cluster.devices("a", "old", "new", of=of, capacity={"old": {"memory": {"value": "40Gi"}}})
    texts = {
        "model": f"device.attributes['{DRIVER}'].model == 'A'",
        "version": f"device.attributes['{DRIVER}'].v.isGreaterThan(semver('1.9.5'))",
        "size": f"device.capacity['{DRIVER}'].memory.compareTo(quantity('41Gi')) >= 0",
    }
    for name, text in texts.items():
        cluster.claim(name, {"selectors": [{"cel": {"expression": text}}]})
        cluster.users(name, 1, name)
    cluster.cycle()
    assert {name: cluster.got(name) for name in texts} == {"model": ["old"], "version": ["new"], "size": []}


def test_devices_of_a_claim_may_have_to_match() -> None:
    cluster = Claims()
    of = {f"gpu-{i}": {"numa": {"int": i % 2}} for i in range(4)}
    cluster.devices("a", "gpu-0", "gpu-1", "gpu-2", "gpu-3", of=of)
    cluster.claim("c", {}, {}, constraints=[{"matchAttribute": f"{DRIVER}/numa"}])
    cluster.users("g", 1, "c")
    cluster.cycle()
    assert cluster.got("c") == ["gpu-0", "gpu-2"]
    cluster.claim("d", {"count": 3}, constraints=[{"requests": ["r0"], "matchAttribute": f"{DRIVER}/numa"}])
    cluster.users("h", 1, "d")
    assert not cluster.cycle().binds


def test_a_claim_for_administration_lists_no_device_twice() -> None:
    cluster = Claims()
    cluster.devices("a", "gpu-0", "gpu-1")
    cluster.claim("two", {"adminAccess": True}, {"adminAccess": True})
    cluster.users("two", 1, "two")
    cluster.claim("three", *[{"adminAccess": True}] * 3)
    cluster.users("three", 1, "three")
    cluster.cycle()
    assert (cluster.got("two"), cluster.got("three")) == (["gpu-0", "gpu-1"], [])


def test_a_way_to_serve_a_claim_that_takes_too_many_devices_is_none() -> None:
    cluster = Claims()
    cluster.devices("a", *(f"gpu-{i}" for i in range(40)))
    cluster.claim("all", {"allocationMode": "All"})
    cluster.users("all", 1, "all")
    ways = [{"name": name, "deviceClassName": "gpu", "count": count} for name, count in (("many", 32), ("few", 2))]
    cluster.claim("either", {"count": 1}, {"name": "r", "firstAvailable": ways})
    cluster.users("either", 1, "either")
    cluster.cycle()
    assert (cluster.got("all"), len(cluster.got("either"))) == ([], 3)


def test_devices_that_many_nodes_reach_are_still_given_away_once() -> None:
    cluster = Claims()
    cluster.devices("", "net-0", pool="net", allNodes=True)
    for name in ("one", "two"):
        cluster.claim(name)
        cluster.users(name, 1, name)
    result = cluster.cycle()
    assert len(result.binds) == 1
    assert result.binds[0].devices[0].allocation is not None
    assert "nodeSelector" not in result.binds[0].devices[0].allocation


def test_only_the_newest_whole_generation_of_a_pool_counts() -> None:
    cluster = Claims()
    cluster.devices("a", "gpu-0")
    cluster.devices("a", "gpu-9", generation=2, pool="a")
    cluster.claim("c")
    cluster.users("g", 1, "c")
    cluster.cycle()
    assert cluster.got("c") == ["gpu-9"]


def test_what_drivers_are_told_comes_of_the_class_and_of_the_claim() -> None:
    cluster = Claims()
    opaque = {"opaque": {"driver": DRIVER, "parameters": {"mode": "x"}}}
    cluster.device_class("gpu", f"device.driver == '{DRIVER}'", config=[opaque])
    cluster.devices("a", "gpu-0")
    cluster.claim("c", config=[{"requests": ["r0"], **opaque}])
    cluster.users("g", 1, "c")
    allocation = cluster.cycle().binds[0].devices[0].allocation
    assert allocation is not None
    assert allocation["devices"]["config"] == [
        {"source": "FromClass", "requests": ["r0"], **opaque},
        {"source": "FromClaim", "requests": ["r0"], **opaque},
    ]


def test_drivers_are_told_nothing_of_ways_that_were_not_taken() -> None:
    cluster = Claims()
    opaque = {"opaque": {"driver": DRIVER, "parameters": {"mode": "x"}}}
    cluster.device_class("gpu", f"device.driver == '{DRIVER}'", config=[opaque])
    cluster.devices("a", "gpu-0", "gpu-1")
    ways = [{"name": name, "deviceClassName": "gpu", "count": count} for name, count in (("many", 9), ("few", 1))]
    reported = [{"requests": [name], **opaque} for name in ("r/many", "r/few", "r", "r0")]
    cluster.claim("c", {}, {"name": "r", "firstAvailable": ways}, config=[*reported, opaque])
    cluster.users("g", 1, "c")
    allocation = cluster.cycle().binds[0].devices[0].allocation
    assert allocation is not None
    assert allocation["devices"]["config"] == [
        {"source": "FromClass", "requests": ["r0", "r/few"], **opaque},
        *({"source": "FromClaim", "requests": [name], **opaque} for name in ("r/few", "r", "r0")),
        {"source": "FromClaim", **opaque},
    ]


def test_a_claim_that_is_made_for_the_pod_is_waited_for() -> None:
    cluster = Claims()
    cluster.devices("a", "gpu-0")
    cluster.gang("g", 1, pod={"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]})
    cluster.cycle()
    assert 'resourceclaim "gpu" of the pod isn\'t made yet' in cluster.why("g")
    raw = cluster.pods["g-worker-0"]
    cluster.claim("made", owner=raw["metadata"]["uid"])
    raw["status"] = {
        "phase": "Pending",
        "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "made"}],
    }
    cluster.change("g-worker-0")
    cluster.cycle()
    assert cluster.got("made") == ["gpu-0"]


@pytest.mark.parametrize("owner", ["", "another"])
def test_a_claim_that_was_made_for_another_is_not_taken(owner: str) -> None:
    cluster = Claims()
    cluster.devices("a", "gpu-0")
    cluster.gang("g", 1, pod={"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]})
    cluster.claim("theirs", owner=owner)
    statuses = [{"name": "gpu", "resourceClaimName": "theirs"}]
    cluster.pods["g-worker-0"]["status"] = {"phase": "Pending", "resourceClaimStatuses": statuses}
    cluster.change("g-worker-0")
    cluster.cycle()
    assert cluster.got("theirs") == []
    assert 'resourceclaim "theirs" wasn\'t made for the pod' in cluster.why("g")


def test_a_pod_that_needs_no_claim_after_all_waits_for_none() -> None:
    cluster = Claims()
    cluster.gang("g", 1, pod={"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]})
    cluster.pods["g-worker-0"]["status"] = {"phase": "Pending", "resourceClaimStatuses": [{"name": "gpu"}]}
    cluster.change("g-worker-0")
    result = cluster.cycle()
    assert [bind.devices for bind in result.binds] == [()]


def test_a_claim_with_as_many_users_as_it_may_have_takes_no_more() -> None:
    cluster = Claims()
    users = [{"resource": "pods", "name": f"p{nth}", "uid": f"u{nth}"} for nth in range(MOST_CONSUMERS)]
    cluster.claim("c", status={"allocation": {"devices": {"results": []}}, "reservedFor": users})
    cluster.users("g", 1, "c")
    assert not cluster.cycle().binds
    assert f'resourceclaim "c" has {MOST_CONSUMERS} users already' in cluster.why("g")


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (None, 'resourceclaim "c" not found'),
        ([{"deviceClassName": "none"}], 'asks for deviceclass "none", which doesn\'t exist'),
        ([{"capacity": {"requests": {"memory": "lots"}}}], "asks for capacity: 'lots' has the unknown suffix"),
        ([{"count": 30}, {"count": 3}], "asks for 33 devices; a claim gets 32 at most"),
        ([{"selectors": [{"cel": {"expression": "device.driver =="}}]}], "can't be read"),
        ([{"selectors": [{"cel": {"expression": "pod.name == 'x'"}}]}], "names 'pod'"),
        ([{"allocationMode": "Some"}], "supported: All, ExactCount"),
    ],
)
def test_a_claim_that_can_not_be_served_is_named(claim: list[Json] | None, words: str) -> None:
    cluster = Claims()
    cluster.devices("a", "gpu-0")
    if claim is not None:
        cluster.claim("c", *claim)
    cluster.users("g", 1, "c")
    assert not cluster.cycle().binds
    reported = cluster.scheduler.explain("ns", "g")
    assert reported is not None
    assert reported.reason is WaitReason.DEVICES
    assert words in reported.message


def test_an_expression_that_costs_too_much_chooses_nothing() -> None:
    squares = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]" + ".map(x, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(y, x + y).sum())" * 2
    nested = f"{squares}.all(a, {squares}.all(b, {squares}.all(c, {squares}.all(d, a + b + c + d > 0))))"
    assert expressions.error(nested) == ""
    assert not expressions.holds(nested, {"driver": "d"})
    assert not expressions.holds("['ab']" + ".map(s, s + s)" * 64 + ".size() == 1", {"driver": "d"})
    assert "may have 10240" in expressions.error("device.driver == '" + "a" * 10240 + "'")


def test_where_devices_are_switched_off_pods_are_placed_without() -> None:
    cluster = Claims(**{"predicate.DynamicResourceAllocationEnable": False})
    cluster.claim("c")
    cluster.users("g", 1, "c")
    result = cluster.cycle()
    assert [bind.devices for bind in result.binds] == [()]


def test_a_search_that_takes_too_long_is_given_up_and_said() -> None:
    cluster = Claims(**{"dynamicresources.filterTimeoutSeconds": 1})
    names = [f"gpu-{i}" for i in range(30)]
    of = {name: {"one": {"int": i}} for i, name in enumerate(names)}
    cluster.devices("a", *names, of=of)
    cluster.claim("c", {"count": 15}, {"count": 16}, constraints=[{"distinctAttribute": f"{DRIVER}/one"}])
    cluster.users("g", 1, "c")
    cluster.cycle()
    assert "the search for devices was given up" in cluster.why("g")


def test_a_bind_that_failed_gives_its_devices_back() -> None:
    cluster = Claims()
    cluster.devices("a", "gpu-0")
    cluster.claim("c")
    cluster.users("g", 1, "c")
    first = cluster.scheduler.cycle(cluster.now)
    cluster.scheduler.bind_failed(first.binds[0].uid, "no")
    cluster.claim("d")
    again = cluster.scheduler.cycle(cluster.now)
    assert [bind.devices for bind in again.binds] == [bind.devices for bind in first.binds]


def test_devices_that_differ_in_nothing_that_is_asked_for_are_not_tried_one_by_one() -> None:
    cluster = Claims(**{"dynamicresources.filterTimeoutSeconds": 1})
    names = [f"gpu-{i}" for i in range(30)]
    cluster.devices("a", *names, of={name: {"uuid": {"string": name}} for name in names})
    cluster.claim("c", {"count": 15}, {"count": 16})
    cluster.users("g", 1, "c")
    cluster.cycle()
    reported = cluster.scheduler.explain("ns", "g")
    assert reported is not None
    assert reported.reason is WaitReason.IMPOSSIBLE


@given(
    counts=st.lists(st.integers(1, 3), min_size=1, max_size=8),
    sizes=st.lists(st.integers(0, 4), min_size=1, max_size=3),
    drops=st.lists(st.integers(0, 7), max_size=4),
)
@settings(max_examples=80)
def test_no_device_is_given_to_two_claims(counts: list[int], sizes: list[int], drops: list[int]) -> None:
    cluster = Claims()
    for index, size in enumerate(sizes):
        name = f"n{index}"
        cluster.node(name)
        if size:
            cluster.devices(name, *(f"gpu-{i}" for i in range(size)))
    for index, count in enumerate(counts):
        cluster.claim(f"c{index}", {"count": count})
        cluster.users(f"g{index}", 1, f"c{index}")
    cluster.cycle()
    _check(cluster)
    for index in drops:
        if f"c{index}" in cluster.claims and f"g{index}" in cluster.groups:
            cluster.delete_gang(f"g{index}")
            cluster.drop(f"c{index}")
            del cluster.claims[f"c{index}"]
        cluster.cycle()
        _check(cluster)
    free = {f"n{i}": size for i, size in enumerate(sizes)}
    for raw in cluster.claims.values():
        for result in (raw["status"].get("allocation") or {"devices": {"results": []}})["devices"]["results"]:
            free[result["pool"]] -= 1
    waiting = [counts[int(name[1:])] for name in cluster.claims if not cluster.got(name)]
    assert not any(need <= max(free.values()) for need in waiting), "who waits would fit nowhere"


def _check(cluster: Claims) -> None:
    given_ = [
        (result["pool"], result["device"])
        for raw in cluster.claims.values()
        for result in (raw["status"].get("allocation") or {"devices": {"results": []}})["devices"]["results"]
    ]
    assert len(given_) == len(set(given_))


def test_devices_of_a_claim_that_must_be_distinct_differ_in_an_attribute() -> None:
    cluster = Claims()
    numa = {name: {"numa": {"int": at}} for name, at in (("gpu-0", 0), ("gpu-1", 0), ("gpu-2", 1))}
    cluster.devices("a", "gpu-0", "gpu-1", "gpu-2", of=numa)
    cluster.claim("c", {"count": 2}, constraints=[{"distinctAttribute": f"{DRIVER}/numa"}])
    cluster.claim("three", {"count": 3}, constraints=[{"distinctAttribute": f"{DRIVER}/numa"}])
    cluster.users("three", 1, "three")
    cluster.users("g", 1, "c")
    cluster.cycle()
    assert cluster.got("c") == ["gpu-0", "gpu-2"]
    assert cluster.got("three") == []


NICS = {
    "x": {"roots": {"strings": ["r0", "r1"]}, "port": {"int": 1}, "fw": {"versions": ["1.9.0", "2.0.0"]}},
    "y": {"roots": {"strings": ["r1", "r2"]}, "port": {"ints": [1, 2]}, "fw": {"version": "2.1.0"}},
    "z": {"roots": {"strings": ["r2", "r3"]}, "port": {"bool": True}, "fw": {"versions": ["1.0.0"]}},
    "w": {"roots": {"string": "r0"}, "port": {"bools": [True, False]}},
}


@pytest.mark.parametrize(
    ("expression", "chosen"),
    [
        ("roots.includes('r1')", ["x", "y"]),
        ("roots.includes('r0')", ["x", "w"]),
        ("roots.exists(r, r == 'r3')", ["z"]),
        ("port.includes(1)", ["x", "y"]),
        ("port.includes(true)", ["z", "w"]),
        ("fw.includes(semver('2.0.0'))", ["x"]),
        ("fw.exists(v, v.isLessThan(semver('1.5.0')))", ["z"]),
    ],
)
def test_attributes_that_are_lists_are_chosen_by_expression(expression: str, chosen: list[str]) -> None:
    cluster = Claims()
    cluster.devices("a", *NICS, of=NICS)
    text = f"device.attributes['{DRIVER}'].{expression}"
    for nth in range(len(NICS)):
        cluster.claim(f"c{nth}", {"selectors": [{"cel": {"expression": text}}]})
        cluster.users(f"g{nth}", 1, f"c{nth}")
    cluster.cycle()
    assert [name for nth in range(len(NICS)) for name in cluster.got(f"c{nth}")] == chosen


@pytest.mark.parametrize(
    ("constraint", "attribute", "count", "got"),
    [
        ("matchAttribute", "roots", 2, ["x", "y"]),
        ("matchAttribute", "roots", 3, []),
        ("distinctAttribute", "roots", 2, ["x", "z"]),
        ("distinctAttribute", "roots", 3, []),
        ("matchAttribute", "port", 2, ["x", "y"]),
        ("distinctAttribute", "port", 2, ["x", "z"]),
        ("distinctAttribute", "fw", 3, ["x", "y", "z"]),
        ("matchAttribute", "none", 1, []),
        ("distinctAttribute", "none", 1, []),
    ],
)
def test_lists_match_where_all_have_a_value_in_common_and_are_distinct_where_no_two_have(
    constraint: str, attribute: str, count: int, got: list[str]
) -> None:
    cluster = Claims()
    cluster.devices("a", *NICS, of=NICS)
    cluster.claim("c", {"count": count}, constraints=[{constraint: f"{DRIVER}/{attribute}"}])
    cluster.users("g", 1, "c")
    cluster.cycle()
    assert cluster.got("c") == got


def test_devices_of_which_nobody_can_tell_what_they_take_are_named_where_a_claim_wants_them() -> None:
    cluster = Claims()
    listed = [{"name": "gpu-0", "capacity": {"memory": {"value": "lots"}}}]
    raw = {
        "metadata": {"name": "slice-a", "uid": "slice-a"},
        "spec": {
            "driver": DRIVER,
            "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1},
            "devices": listed,
            "nodeName": "a",
        },
    }
    cluster.scheduler.apply(RESOURCESLICES, "ADDED", msgspec.convert(raw, ResourceSlice))
    cluster.claim("c")
    cluster.users("g", 1, "c")
    cluster.cycle()
    assert not cluster.placed("g")
    why = cluster.why("g")
    assert """or have capacity that can't be read": 1""" in why
    assert "'node(s) lacked the devices of a resourceclaim, even if nobody had any': 1" in why


def test_devices_that_there_are_not_are_told_apart_from_those_that_others_have() -> None:
    cluster = Claims()
    cluster.devices("a", "gpu-0", "gpu-1")
    cluster.claim("two", {"count": 2})
    cluster.users("two", 1, "two")
    cluster.cycle()
    for count in (1, 3):
        cluster.claim(f"more-{count}", {"count": count})
        cluster.users(f"more-{count}", 1, f"more-{count}")
    cluster.cycle()
    later, never = (cluster.scheduler.explain("ns", f"more-{count}") for count in (1, 3))
    assert later is not None
    assert never is not None
    lacked, taken = "node(s) lacked the devices of a resourceclaim, even if nobody had any", CANNOT_ALLOCATE
    assert (later.reason, later.nodes) == (WaitReason.DYNAMIC_RESOURCES, {lacked: 1, taken: 1})
    assert (never.reason, never.nodes) == (WaitReason.IMPOSSIBLE, {lacked: 2})
    assert "has the devices that its resourceclaims ask for" in never.message
    cluster.devices("b", "gpu-0", "gpu-1", "gpu-2")
    cluster.cycle()
    assert cluster.got("more-1") == ["gpu-0"]
    again = cluster.scheduler.explain("ns", "more-3")
    assert again is not None
    assert again.reason is WaitReason.DYNAMIC_RESOURCES
