"""Pods with claims: where they may go, what is bound first, and why they wait, in kube-scheduler's words."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.unit.scheduler.cluster import Cluster, Json
from vcbatch.api.names import BIND_COMPLETED, SELECTED_NODE
from vcbatch.api.resources import (
    CSINODES,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    STORAGECLASSES,
)
from vcbatch.api.storage import Claim, CsiNode, PersistentVolume, StorageClass
from vcbatch.scheduler import CycleResult, build_policy
from vcbatch.scheduler.model.result import ClaimBinding, WaitReason
from vcbatch.scheduler.model.storage_objects import suits

ZONE = "topology.kubernetes.io/zone"


class Storage(Cluster):
    """Three nodes, two in zone `x` and one in `y`, a class that waits for the first consumer, and one that doesn't."""

    def __init__(self) -> None:
        super().__init__()
        for name, zone in (("a", "x"), ("b", "x"), ("c", "y")):
            self.node(name, labels={ZONE: zone}, cpu="2")
        self.storage_class("late", volumeBindingMode="WaitForFirstConsumer")
        self.storage_class("now")
        self.storage_class(
            "static", provisioner="kubernetes.io/no-provisioner", volumeBindingMode="WaitForFirstConsumer"
        )

    def storage_class(self, name: str, **given: Any) -> None:
        raw = {"metadata": {"name": name, "uid": f"sc-{name}"}, "provisioner": "example.com/disk", **given}
        self.scheduler.apply(STORAGECLASSES, "ADDED", msgspec.convert(raw, StorageClass))

    def claim(
        self,
        name: str,
        of_class: str,
        *,
        volume: str = "",
        event: str = "ADDED",
        modes: str = "ReadWriteOnce",
        **meta: Any,
    ) -> None:
        spec: Json = {
            "storageClassName": of_class,
            "accessModes": [modes],
            "resources": {"requests": {"storage": meta.pop("size", "1Gi")}},
            "volumeName": volume,
        }
        phase = meta.pop("phase", "Bound" if volume else "Pending")
        raw: Json = {"metadata": {"name": name, "namespace": "ns", "uid": f"c-{name}", **meta}, "spec": spec}
        raw["status"] = {"phase": phase}
        self.scheduler.apply(PERSISTENTVOLUMECLAIMS, event, msgspec.convert(raw, Claim))

    def volume(self, name: str, *, nodes: tuple[str, ...] = (), of_class: str = "static", **given: Any) -> None:
        labels = given.pop("labels", {})
        spec: Json = {
            "storageClassName": of_class,
            "accessModes": given.pop("modes", ["ReadWriteOnce"]),
            "capacity": {"storage": given.pop("size", "1Gi")},
            **given,
        }
        if nodes:
            term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": list(nodes)}]}
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
        raw = {"metadata": {"name": name, "uid": f"v-{name}", "labels": labels}, "spec": spec}
        raw["status"] = {"phase": "Available"}
        self.scheduler.apply(PERSISTENTVOLUMES, "ADDED", msgspec.convert(raw, PersistentVolume))

    def limit(self, node: str, driver: str, count: int) -> None:
        raw = {"metadata": {"name": node}, "spec": {"drivers": [{"name": driver, "allocatable": {"count": count}}]}}
        self.scheduler.apply(CSINODES, "ADDED", msgspec.convert(raw, CsiNode))

    def users(self, gang: str, size: int, *claims: str, **given: Any) -> None:
        volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
        self.gang(gang, size, pod={"volumes": volumes, **given.pop("pod", {})}, **given)

    def why(self, gang: str) -> str:
        reported = self.scheduler.explain("ns", gang)
        assert reported is not None, f"{gang} doesn't wait"
        return reported.message


def nodes_of(cluster: Cluster, gang: str) -> set[str]:
    return set(cluster.placed(gang).values())


def _claims(result: CycleResult) -> set[ClaimBinding]:
    return {claim for bind in result.binds for claim in bind.claims}


def test_a_bound_claim_keeps_its_pods_where_the_volume_is() -> None:
    cluster = Storage()
    cluster.volume("v", nodes=("b", "c"))
    cluster.claim("data", "static", volume="v")
    cluster.users("g", 4, "data")
    result = cluster.cycle()
    assert nodes_of(cluster, "g") == {"b", "c"}
    assert not _claims(result)
    assert {bind.gang for bind in result.binds} == {""}


def test_a_gang_of_which_one_member_does_not_reach_its_volume_is_not_started() -> None:
    cluster = Storage()
    cluster.volume("v", nodes=("b",))
    cluster.claim("data", "static", volume="v")
    cluster.users("g", 3, "data")
    assert not cluster.cycle().binds
    assert "node(s) didn't match PersistentVolume's node affinity" in cluster.why("g")
    cluster.volume("v")
    assert len(cluster.cycle().binds) == 3


def test_a_claim_whose_volume_is_gone_is_reached_from_nowhere() -> None:
    cluster = Storage()
    cluster.claim("data", "static", volume="gone")
    cluster.users("g", 1, "data")
    assert not cluster.cycle().binds
    assert "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)" in cluster.why("g")


def test_nodes_that_name_no_zone_are_in_all_of_them() -> None:
    """As kube-scheduler's VolumeZone has it; one that names its region alone is in no zone of another."""
    cluster = Storage()
    cluster.volume("v", labels={ZONE: "elsewhere"})
    cluster.claim("data", "static", volume="v")
    cluster.node("region", labels={"topology.kubernetes.io/region": "r"})
    cluster.users("g", 1, "data")
    assert not cluster.cycle().binds
    cluster.node("bare")
    cluster.cycle()
    assert nodes_of(cluster, "g") == {"bare"}


OLD_ZONE, REGION = "failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/region"


@pytest.mark.parametrize(
    ("labels", "nodes"),
    [
        ({OLD_ZONE: "y"}, {"c"}),
        ({REGION: "r"}, {"d"}),
        ({ZONE: "z", REGION: "r"}, {"d"}),
        ({ZONE: "y", REGION: "r"}, set()),
    ],
)
def test_zones_by_their_old_name_and_regions_count_too(labels: dict[str, str], nodes: set[str]) -> None:
    cluster = Storage()
    cluster.node("d", labels={ZONE: "z", REGION: "r"})
    cluster.volume("v", labels=labels)
    cluster.claim("data", "static", volume="v")
    cluster.users("g", 1, "data")
    cluster.cycle()
    assert nodes_of(cluster, "g") == nodes


def test_the_zone_of_a_volume_counts() -> None:
    cluster = Storage()
    cluster.volume("v", labels={ZONE: "y__z"})
    cluster.claim("data", "static", volume="v")
    cluster.users("g", 2, "data")
    cluster.cycle()
    assert nodes_of(cluster, "g") == {"c"}
    cluster.users("h", 1, "data")
    cluster.cycle()
    assert "node(s) had no available volume zone" in cluster.why("h")


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (None, 'persistentvolumeclaim "data" not found'),
        ({"of_class": "now"}, "pod has unbound immediate PersistentVolumeClaims"),
        ({"of_class": "gone"}, "pod has unbound immediate PersistentVolumeClaims"),
        (
            {"of_class": "late", "deletionTimestamp": "2026-06-01T00:00:00Z"},
            'persistentvolumeclaim "data" is being deleted',
        ),
        ({"of_class": "late", "volume": "v", "phase": "Pending"}, "pod has unbound immediate PersistentVolumeClaims"),
        ({"of_class": "late", "volume": "v", "phase": "Lost"}, 'bound to non-existent persistentvolume "v"'),
    ],
)
def test_a_claim_that_is_not_ready_is_named_and_the_gang_starts_when_it_is(claim: Json | None, words: str) -> None:
    cluster = Storage()
    if claim is not None:
        cluster.claim("data", **claim)
    cluster.users("g", 2, "data")
    assert not cluster.cycle().binds
    reported = cluster.scheduler.explain("ns", "g")
    assert reported is not None
    assert reported.reason is WaitReason.VOLUMES
    assert words in reported.message
    assert not cluster.scheduler.dirty, "nothing is tried again before something changes"
    cluster.volume("w")
    cluster.claim("data", "static", volume="w", event="MODIFIED")
    assert len(cluster.cycle().binds) == 2


def test_a_volume_that_is_yet_to_be_made_is_asked_for_on_the_node_of_its_pod() -> None:
    cluster = Storage()
    cluster.claim("data", "late")
    cluster.users("g", 2, "data")
    result = cluster.cycle()
    (node,) = nodes_of(cluster, "g")
    assert _claims(result) == {ClaimBinding("ns", "data", "c-data", "", node)}
    assert {bind.gang for bind in result.binds} == {"ns/g"}


def test_pods_that_share_a_disk_of_one_node_all_go_there_or_none_does() -> None:
    cluster = Storage()
    cluster.claim("data", "late")
    cluster.users("g", 3, "data")
    assert not cluster.cycle().binds, "a node has room for two"
    assert "node(s) didn't find available persistent volumes to bind" in cluster.why("g")


@pytest.mark.parametrize("mode", ["ReadWriteMany", "ReadOnlyMany"])
def test_a_gang_larger_than_a_node_may_share_what_many_nodes_can_mount(mode: str) -> None:
    cluster = Storage()
    cluster.claim("data", "late", modes=mode)
    cluster.users("g", 5, "data")
    result = cluster.cycle()
    assert len(result.binds) == 5
    assert len(_claims(result)) == 1
    cluster.volume("v", nodes=("a",), of_class="late")
    cluster.claim("data", "late", volume="v", modes=mode, event="MODIFIED")
    errors = {cluster.scheduler.reaches_its_claims(bind.uid) for bind in result.binds}
    assert errors == {"", "node(s) didn't match PersistentVolume's node affinity"}


def test_the_node_that_was_written_on_a_claim_is_kept() -> None:
    """For such a claim a volume is being made, though there is one that would do."""
    cluster = Storage()
    cluster.volume("v", of_class="late")
    cluster.claim("data", "late", annotations={SELECTED_NODE: "c"})
    cluster.users("g", 1, "data")
    assert _claims(cluster.cycle()) == {ClaimBinding("ns", "data", "c-data", "", "c")}
    assert nodes_of(cluster, "g") == {"c"}


def test_a_class_makes_volumes_only_where_it_may() -> None:
    cluster = Storage()
    terms = [{"matchLabelExpressions": [{"key": ZONE, "values": ["y"]}]}]
    cluster.storage_class("zonal", volumeBindingMode="WaitForFirstConsumer", allowedTopologies=terms)
    cluster.claim("data", "zonal")
    cluster.users("g", 1, "data")
    cluster.cycle()
    assert nodes_of(cluster, "g") == {"c"}


def test_who_waits_for_a_class_is_tried_again_when_it_changes() -> None:
    def zonal(zone: str) -> None:
        terms = [{"matchLabelExpressions": [{"key": ZONE, "values": [zone]}]}]
        cluster.storage_class("zonal", volumeBindingMode="WaitForFirstConsumer", allowedTopologies=terms)

    cluster = Storage()
    zonal("nowhere")
    cluster.claim("data", "zonal")
    cluster.users("g", 1, "data")
    assert not cluster.cycle().binds
    assert not cluster.scheduler.dirty
    zonal("y")
    assert cluster.scheduler.dirty
    assert len(cluster.cycle().binds) == 1


def test_who_waits_for_a_volume_is_tried_again_when_it_changes() -> None:
    cluster = Storage()
    cluster.volume("v", labels={ZONE: "nowhere"})
    cluster.claim("data", "static", volume="v")
    cluster.users("g", 1, "data")
    assert not cluster.cycle().binds
    cluster.volume("v", labels={ZONE: "y"})
    assert len(cluster.cycle().binds) == 1


@pytest.mark.parametrize("zones", [("y", "nowhere"), ("nowhere", "y")])
def test_a_class_makes_volumes_where_any_of_its_terms_lets_it(zones: tuple[str, str]) -> None:
    cluster = Storage()
    terms = [{"matchLabelExpressions": [{"key": ZONE, "values": [zone]}]} for zone in zones]
    cluster.storage_class("zonal", volumeBindingMode="WaitForFirstConsumer", allowedTopologies=terms)
    cluster.claim("data", "zonal")
    cluster.users("g", 1, "data")
    cluster.cycle()
    assert nodes_of(cluster, "g") == {"c"}


VOLUME: Json = {
    "metadata": {"name": "v", "labels": {"disk": "fast"}},
    "spec": {"storageClassName": "static", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}},
    "status": {"phase": "Available"},
}
CLAIM: Json = {
    "metadata": {"name": "data", "namespace": "ns", "uid": "c-data"},
    "spec": {
        "storageClassName": "static",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "2Gi"}},
    },
}
MINE = {"namespace": "ns", "name": "data"}


def _over(base: Json, part: str, **given: Any) -> Json:
    return {**base, part: {**base[part], **given}}


@pytest.mark.parametrize(
    ("volume", "claim", "fits"),
    [
        (VOLUME, CLAIM, True),
        (_over(VOLUME, "spec", capacity={"storage": "2147483647"}), CLAIM, False),
        (_over(VOLUME, "metadata", deletionTimestamp="2026-06-01T00:00:00Z"), CLAIM, False),
        (_over(VOLUME, "status", phase="Released"), CLAIM, False),
        (_over(VOLUME, "spec", accessModes=["ReadWriteOnce", "ReadOnlyMany"]), CLAIM, True),
        (VOLUME, _over(CLAIM, "spec", accessModes=["ReadWriteOnce", "ReadOnlyMany"]), False),
        (VOLUME, _over(CLAIM, "spec", selector={"matchLabels": {"disk": "fast"}}), True),
        (VOLUME, _over(CLAIM, "spec", selector={"matchLabels": {"disk": "slow"}}), False),
        (_over(VOLUME, "spec", claimRef=MINE), CLAIM, True),
        (_over(VOLUME, "spec", claimRef={**MINE, "uid": "c-data"}), CLAIM, True),
        (_over(VOLUME, "spec", claimRef={**MINE, "uid": "c-before"}), CLAIM, False),
    ],
)
def test_which_volume_suits_which_claim(volume: Json, claim: Json, fits: bool) -> None:
    """The rules of the persistent volume controller's FindMatchingVolume."""
    assert suits(msgspec.convert(volume, PersistentVolume), msgspec.convert(claim, Claim)) == fits


def test_a_claim_is_bound_as_soon_as_that_is_written_on_it() -> None:
    cluster = Storage()
    cluster.volume("v", nodes=("b",))
    cluster.claim("data", "now", volume="v", phase="Pending", annotations={BIND_COMPLETED: "yes"})
    cluster.users("g", 1, "data")
    cluster.cycle()
    assert nodes_of(cluster, "g") == {"b"}


def test_static_volumes_are_given_to_one_claim_each_the_smallest_that_does() -> None:
    cluster = Storage()
    for name, size in (("large", "9Gi"), ("small", "2Gi"), ("tiny", "1Gi")):
        cluster.volume(name, size=size, nodes=("b",))
    for name in ("one", "two"):
        cluster.claim(name, "static", size="2Gi")
    cluster.users("g", 1, "one", "two")
    assert {(c.name, c.volume) for c in _claims(cluster.cycle())} == {("one", "small"), ("two", "large")}
    assert nodes_of(cluster, "g") == {"b"}
    cluster.claim("three", "static", size="2Gi")
    cluster.users("h", 1, "three")
    assert not cluster.cycle().binds, "both are given away"
    assert "node(s) didn't find available persistent volumes to bind" in cluster.why("h")


def test_a_volume_that_one_pod_is_to_have_is_where_the_others_of_its_claim_go() -> None:
    cluster = Storage()
    cluster.volume("v", nodes=("b",))
    cluster.claim("data", "static")
    cluster.users("large", 3, "data")
    cluster.users("fits", 2, "data")
    assert len(cluster.cycle().binds) == 2
    assert nodes_of(cluster, "fits") == {"b"}


def test_the_smaller_claim_has_first_pick_of_volumes_that_are_there() -> None:
    """As kube-scheduler's VolumeBinding sorts claims; for the other one a volume is made."""
    cluster = Storage()
    cluster.volume("v", size="8Gi", of_class="late")
    cluster.claim("a-large", "late", size="5Gi")
    cluster.claim("b-small", "late", size="1Gi")
    cluster.users("g", 1, "a-large", "b-small")
    assert {(c.name, c.volume) for c in _claims(cluster.cycle())} == {("a-large", ""), ("b-small", "v")}


def test_a_volume_that_is_kept_for_the_claim_goes_before_a_smaller_one() -> None:
    cluster = Storage()
    cluster.volume("small")
    cluster.volume("kept", size="9Gi", claimRef={"namespace": "ns", "name": "data"})
    cluster.claim("data", "static")
    cluster.users("g", 1, "data")
    assert {c.volume for c in _claims(cluster.cycle())} == {"kept"}


@pytest.mark.parametrize(
    "unfit",
    [
        {"size": "1Mi"},
        {"modes": ["ReadOnlyMany"]},
        {"volumeMode": "Block"},
        {"of_class": "other"},
        {"claimRef": {"namespace": "ns", "name": "another"}},
    ],
)
def test_a_volume_that_does_not_suit_is_not_taken(unfit: Json) -> None:
    cluster = Storage()
    cluster.volume("v", **unfit)
    cluster.claim("data", "static")
    cluster.users("g", 1, "data")
    assert not cluster.cycle().binds


def test_a_gang_that_is_given_up_gives_its_volumes_back() -> None:
    cluster = Storage()
    cluster.volume("v")
    cluster.claim("data", "static")
    cluster.users("large", 7, "data")
    cluster.users("fits", 2, "data")
    result = cluster.cycle()
    assert {bind.name.split("-")[0] for bind in result.binds} == {"fits"}
    assert {c.volume for c in _claims(result)} == {"v"}


def test_a_volume_that_is_given_back_may_be_another_claim_s() -> None:
    """The cluster has room for five, but where the volume is only two of them find a place."""
    cluster = Storage()
    cluster.volume("v", nodes=("b",))
    for name in ("one", "two"):
        cluster.claim(name, "static")
    cluster.users("large", 5, "one")
    cluster.users("fits", 2, "two")
    assert {(c.name, c.volume) for c in _claims(cluster.cycle())} == {("two", "v")}


def test_a_volume_that_comes_is_taken_by_who_waits() -> None:
    cluster = Storage()
    cluster.claim("data", "static")
    cluster.users("g", 1, "data")
    cluster.volume("other", size="1Mi")
    assert not cluster.cycle().binds
    cluster.volume("v")
    assert {c.volume for c in _claims(cluster.cycle())} == {"v"}


def test_a_claim_that_was_made_anew_outlives_the_one_before_it() -> None:
    cluster = Storage()
    cluster.claim("data", "late")
    cluster.users("g", 1, "data")
    cluster.claim("data", "late", event="DELETED", uid="c-before")
    assert len(cluster.cycle().binds) == 1


def test_a_bind_that_failed_gives_its_volume_back() -> None:
    cluster = Storage()
    cluster.volume("v")
    cluster.claim("data", "static")
    cluster.users("g", 1, "data")
    now = cluster.now
    first = cluster.scheduler.cycle(now)
    cluster.scheduler.bind_failed(first.binds[0].uid, "no")
    assert _claims(cluster.scheduler.cycle(now)) == _claims(first)


def test_one_pod_at_a_time_uses_a_claim_for_one_pod() -> None:
    cluster = Storage()
    cluster.volume("v", modes=["ReadWriteOncePod"])
    cluster.claim("data", "static", volume="v", modes="ReadWriteOncePod")
    cluster.users("first", 1, "data")
    cluster.users("second", 1, "data")
    cluster.users("pair", 2, "data")
    assert [bind.name for bind in cluster.cycle().binds] == ["first-worker-0"]
    assert "ReadWriteOncePod access mode already in-use by another pod" in cluster.why("second")
    cluster.delete_gang("first")
    assert [bind.name for bind in cluster.cycle().binds] == ["second-worker-0"]


def test_a_driver_attaches_no_more_volumes_to_a_node_than_it_says() -> None:
    cluster = Storage()
    for node in "abc":
        cluster.limit(node, "example.com/disk", 1 if node == "a" else 0)
    for name in ("one", "two"):
        cluster.volume(f"v-{name}", csi={"driver": "example.com/disk"})
        cluster.claim(name, "static", volume=f"v-{name}")
    cluster.users("first", 2, "one", cpu="500m")
    cluster.users("second", 1, "two", cpu="500m")
    cluster.cycle()
    assert nodes_of(cluster, "first") == {"a"}, "one claim is attached once for both"
    assert "node(s) exceed max volume count" in cluster.why("second")


def test_a_driver_that_leaves_a_node_limits_nothing_there() -> None:
    cluster = Storage()
    for node in "abc":
        cluster.limit(node, "example.com/disk", 0)
    cluster.volume("v", csi={"driver": "example.com/disk"})
    cluster.claim("data", "static", volume="v")
    cluster.users("g", 1, "data")
    assert not cluster.cycle().binds
    cluster.scheduler.apply(CSINODES, "DELETED", msgspec.convert({"metadata": {"name": "b"}}, CsiNode))
    cluster.cycle()
    assert nodes_of(cluster, "g") == {"b"}


def test_what_another_driver_attaches_does_not_count() -> None:
    cluster = Storage()
    for node in "abc":
        most = {"count": 1 if node == "a" else 0}
        drivers = [{"name": f"example.com/{driver}", "allocatable": most} for driver in ("one", "two")]
        reported = {"metadata": {"name": node}, "spec": {"drivers": drivers}}
        cluster.scheduler.apply(CSINODES, "ADDED", msgspec.convert(reported, CsiNode))
    for name in ("one", "two"):
        cluster.volume(f"v-{name}", csi={"driver": f"example.com/{name}"})
        cluster.claim(name, "static", volume=f"v-{name}")
        cluster.users(f"g{name}", 1, name, cpu="500m")
    cluster.cycle()
    assert nodes_of(cluster, "gone") == nodes_of(cluster, "gtwo") == {"a"}


def test_claims_made_for_a_pod_are_named_after_it() -> None:
    cluster = Storage()
    template = {"spec": {"storageClassName": "late", "accessModes": ["ReadWriteOnce"]}}
    cluster.gang("g", 2, pod={"volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]})
    assert not cluster.cycle().binds
    assert 'persistentvolumeclaim "g-worker-0-scratch" not found' in cluster.why("g")
    for index in range(2):
        cluster.claim(f"g-worker-{index}-scratch", "late")
    assert {claim.name for claim in _claims(cluster.cycle())} == {"g-worker-0-scratch", "g-worker-1-scratch"}


def with_rules(**arguments: Any) -> Storage:
    cluster = Storage()
    plugins = [{"name": "gang"}, {"name": "predicates", "arguments": arguments}]
    cluster.scheduler.set_policy(build_policy({"actions": "enqueue, allocate", "tiers": [{"plugins": plugins}]}))
    return cluster


# Switches


def test_volumes_are_left_to_others_where_binding_is_switched_off() -> None:
    cluster = with_rules(**{"predicate.VolumeBindingEnable": False})
    cluster.claim("data", "late")
    cluster.users("g", 2, "data")
    result = cluster.cycle()
    assert len(result.binds) == 2
    assert not _claims(result)


def test_where_a_volume_is_does_not_count_where_binding_is_switched_off() -> None:
    cluster = with_rules(**{"predicate.VolumeBindingEnable": False})
    cluster.volume("v", nodes=("elsewhere",))
    cluster.claim("data", "static", volume="v")
    cluster.users("g", 1, "data")
    assert len(cluster.cycle().binds) == 1


def test_zones_of_volumes_do_not_count_where_they_are_switched_off() -> None:
    cluster = with_rules(**{"predicate.VolumeZoneEnable": False})
    cluster.volume("v", labels={ZONE: "elsewhere"})
    cluster.claim("data", "static", volume="v")
    cluster.users("g", 1, "data")
    assert len(cluster.cycle().binds) == 1


def test_limits_of_drivers_do_not_count_where_they_are_switched_off() -> None:
    for on in (True, False):
        cluster = with_rules(**{"predicate.NodeVolumeLimitsEnable": on})
        for node in ("a", "b", "c"):
            cluster.limit(node, "example.com/disk", 0)
        cluster.volume("v", csi={"driver": "example.com/disk"})
        cluster.claim("data", "static", volume="v")
        cluster.users("g", 1, "data")
        assert len(cluster.cycle().binds) == (0 if on else 1)


def test_how_long_a_volume_may_take_is_told_with_its_claim() -> None:
    cluster = with_rules(**{"volumebinding.bindTimeoutSeconds": 30})
    cluster.claim("data", "late")
    cluster.users("g", 1, "data")
    assert {claim.timeout for claim in _claims(cluster.cycle())} == {30.0}


def test_another_policy_has_its_own_rules_about_volumes() -> None:
    cluster = with_rules(**{"predicate.VolumeBindingEnable": False})
    cluster.claim("data", "late")
    cluster.cycle()
    cluster.scheduler.set_policy(build_policy({"actions": "allocate", "tiers": [{"plugins": [{"name": "gang"}]}]}))
    cluster.users("g", 1, "data")
    assert len(_claims(cluster.cycle())) == 1
