"""What claims may ask for, on a real API server whose controller makes claims of templates and gives devices back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.binaries.build import Binaries
from tests.cluster.claims import NAMESPACE, gang, get, make, members, nodes, publish, results, status
from tests.cluster.components import SCHEDULER, Components
from tests.cluster.controlplane import ControlPlane, Json, Options
from tests.cluster.processes import wait_until
from vcbatch.api.resources import DEVICECLASSES, NAMESPACES, PODGROUPS, PODS, RESOURCECLAIMS, Resource

GPU = "gpu.example.com"
TEMPLATES = Resource(
    group="resource.k8s.io", version="v1", plural="resourceclaimtemplates", kind="ResourceClaimTemplate"
)


@pytest.fixture(scope="module")
def plane(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Nodes with two large GPUs on different PCI roots, and with two small ones on one."""
    pytest.importorskip("cel")
    options = Options(controllers=(*Options().controllers, "resourceclaim-controller"))
    with ControlPlane(tmp_path_factory.mktemp("cluster"), binaries, options) as plane:
        plane.install_crds()
        plane.add_nodes(2)
        label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
        plane.call("PATCH", NAMESPACES.path(name=NAMESPACE), label, content_type="application/merge-patch+json")
        for size in ("large", "small"):
            expression = f"device.driver == '{GPU}' && device.attributes['{GPU}'].size == '{size}'"
            make(plane, DEVICECLASSES, size, spec={"selectors": [{"cel": {"expression": expression}}]})
        make(plane, DEVICECLASSES, "any", spec={})
        request = {"name": "r", "exactly": {"deviceClassName": "large"}}
        make(plane, TEMPLATES, "one", spec={"spec": {"devices": {"requests": [request]}}})
        for node, size, roots in (("node-0", "large", ("r0", "r1")), ("node-1", "small", ("r0", "r0"))):
            devices = [
                {"name": f"{size}-{nth}", "attributes": {"size": {"string": size}, "root": {"string": root}}}
                for nth, root in enumerate(roots)
            ]
            publish(plane, node, GPU, node, 1, devices=devices)
        with Components(plane) as components:
            components.start(SCHEDULER).wait_ready()
            yield plane


@pytest.fixture(autouse=True)
def _free(plane: ControlPlane) -> Iterator[None]:
    """Every test leaves all devices to the next."""
    yield
    for resource in (PODS, PODGROUPS, RESOURCECLAIMS):
        plane.call("DELETE", f"{resource.path(namespace=NAMESPACE)}?gracePeriodSeconds=0")
    for resource in (PODS, RESOURCECLAIMS):
        wait_until("all is gone", lambda r=resource: not plane.call("GET", r.path(namespace=NAMESPACE))["items"])


def _devices(plane: ControlPlane, *claims: str) -> list[list[str]]:
    return [[result["device"] for result in results(plane, claim)] for claim in claims]


def _waits(plane: ControlPlane, name: str, words: str) -> None:
    wait_until(f"{words} is told", lambda: words in str(get(plane, PODGROUPS, name).get("status")))


def test_claims_are_made_of_a_template_for_each_pod_and_given_back_when_it_goes(plane: ControlPlane) -> None:
    members(plane, "first", *[{"resourceClaimTemplateName": "one"}] * 2)
    wait_until("the gang is bound", lambda: nodes(plane, "first", 2) == ["node-0"] * 2)
    made = [get(plane, PODS, f"first-{n}")["status"]["resourceClaimStatuses"][0]["resourceClaimName"] for n in (0, 1)]
    assert sorted(_devices(plane, *made)) == [["large-0"], ["large-1"]]
    members(plane, "next", *[{"resourceClaimTemplateName": "one"}] * 2)
    for nth in (0, 1):
        plane.call("DELETE", f"{PODS.path(namespace=NAMESPACE, name=f'first-{nth}')}?gracePeriodSeconds=0")
    wait_until("the next gang is bound", lambda: nodes(plane, "next", 2) == ["node-0"] * 2)


def test_pods_share_a_claim_and_it_is_deallocated_when_the_last_has_ended(plane: ControlPlane) -> None:
    request = {"name": "r", "exactly": {"deviceClassName": "small", "count": 2}}
    make(plane, RESOURCECLAIMS, "both", spec={"devices": {"requests": [request]}})
    members(plane, "share", *[{"resourceClaimName": "both"}] * 3)
    wait_until("the gang is bound", lambda: nodes(plane, "share", 3) == ["node-1"] * 3)
    assert sorted(user["name"] for user in status(plane, "both")["reservedFor"]) == ["share-0", "share-1", "share-2"]
    gang(plane, "late", {"deviceClassName": "small"})
    _waits(plane, "late", "resourceclaims")
    for nth in range(3):
        plane.call("DELETE", f"{PODS.path(namespace=NAMESPACE, name=f'share-{nth}')}?gracePeriodSeconds=0")
    wait_until("who waited is bound", lambda: nodes(plane, "late", 1) == ["node-1"])
    assert results(plane, "both") == []


def test_the_first_alternative_that_there_is_is_taken(plane: ControlPlane) -> None:
    alternatives: list[Json] = [
        {"name": "many", "deviceClassName": "large", "count": 3},
        {"name": "few", "deviceClassName": "small", "count": 2},
    ]
    gang(plane, "either", {"firstAvailable": alternatives})
    wait_until("the gang is bound", lambda: nodes(plane, "either", 1) == ["node-1"])
    assert [(r["request"], r["device"]) for r in results(plane, "either-0")] == [
        ("r/few", "small-0"),
        ("r/few", "small-1"),
    ]


def test_an_administrator_sees_devices_that_others_have(plane: ControlPlane) -> None:
    gang(plane, "user", {"deviceClassName": "small", "count": 2})
    wait_until("the gang is bound", lambda: nodes(plane, "user", 1) == ["node-1"])
    gang(plane, "admin", {"deviceClassName": "small", "allocationMode": "All", "adminAccess": True})
    wait_until("it is bound besides", lambda: nodes(plane, "admin", 1) == ["node-1"])
    assert [(r["device"], r["adminAccess"]) for r in results(plane, "admin-0")] == [
        ("small-0", True),
        ("small-1", True),
    ]


def test_all_devices_of_a_class_are_given_or_none(plane: ControlPlane) -> None:
    gang(plane, "one", {"deviceClassName": "large"})
    wait_until("the gang is bound", lambda: nodes(plane, "one", 1) == ["node-0"])
    gang(plane, "all", {"deviceClassName": "large", "allocationMode": "All"})
    _waits(plane, "all", "resourceclaims")
    plane.call("DELETE", f"{PODS.path(namespace=NAMESPACE, name='one-0')}?gracePeriodSeconds=0")
    wait_until("it has them all", lambda: nodes(plane, "all", 1) == ["node-0"])
    assert _devices(plane, "all-0") == [["large-0", "large-1"]]


@pytest.mark.parametrize(("constraint", "node"), [("matchAttribute", "node-1"), ("distinctAttribute", "node-0")])
def test_devices_match_or_are_distinct(plane: ControlPlane, constraint: str, node: str) -> None:
    gang(plane, "two", {"deviceClassName": "any", "count": 2}, constraints=[{constraint: f"{GPU}/root"}])
    wait_until("the gang is bound", lambda: nodes(plane, "two", 1) == [node])


def test_a_claim_that_others_gave_devices_keeps_its_pods_there_and_its_devices_from_others(plane: ControlPlane) -> None:
    request = {"name": "r", "exactly": {"deviceClassName": "small"}}
    make(plane, RESOURCECLAIMS, "theirs", spec={"devices": {"requests": [request]}})
    result = {"request": "r", "driver": GPU, "pool": "node-1", "device": "small-0"}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}
    allocation = {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [term]}}
    path = RESOURCECLAIMS.path(namespace=NAMESPACE, name="theirs", subresource="status")
    merge = "application/merge-patch+json"
    plane.call("PATCH", path, {"status": {"allocation": allocation}}, content_type=merge)
    gang(plane, "mine", {"deviceClassName": "small"})
    wait_until("the gang is bound", lambda: nodes(plane, "mine", 1) == ["node-1"])
    assert _devices(plane, "mine-0") == [["small-1"]]
    members(plane, "uses", {"resourceClaimName": "theirs"})
    wait_until("its user is bound", lambda: nodes(plane, "uses", 1) == ["node-1"])
    assert _devices(plane, "theirs") == [["small-0"]]
