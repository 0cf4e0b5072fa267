"""What vcbatch writes on a real control plane, by the server's own count: so much per pod, so much per gang."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from tests.cluster.binaries.build import Binaries
from tests.cluster.components import Components
from tests.cluster.controlplane import ControlPlane
from tests.cluster.gangs import gang, submit, wait_phase
from tests.cluster.processes import wait_until
from tests.cluster.requests import Audit, counted, open_watches, writes
from vcbatch.api.resources import JOBS, PODS

# Per gang, whatever its size, from its submission until it has ended. Events: 16 of pods, two of the PodGroup. Else:
# the PodGroup is made, updated twice and removed, the job's status is written three times, and what its queue and the
# one above hold and count some nine times. A machine that is busy needs a few more: what belongs together takes longer.
MOST_EVENTS = 18
MOST_OTHERS = 18
# And for each second that it takes to start and to end: counts are written every two to five seconds, of five objects.
MOST_PER_SECOND = 1.5
SIZES = (4, 32, 128)


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    return Audit(tmp_path_factory.mktemp("audit"))


@pytest.fixture(scope="module")
def plane(binaries: Binaries, audit: Audit, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with nodes and vcbatch's components, which have come to rest."""
    with ControlPlane(tmp_path_factory.mktemp("cluster"), binaries, audit.options) as plane:
        plane.install_crds()
        plane.add_nodes(8)
        with Components(plane) as components:
            components.start_all()
            unchanged(lambda: writes(counted(plane)))
            yield plane


def unchanged(reconcile: Callable[[], Counter[str]], *, seconds: float = 7.0) -> Counter[str]:
    """What is looked at, once it has stayed as it is for so long. Nothing is put off for more than five seconds."""
    last, since = reconcile(), time.monotonic()

    def rested() -> bool:
        nonlocal last, since
        now = reconcile()
        if now != last:
            last, since = now, time.monotonic()
        return time.monotonic() - since >= seconds

    wait_until("nothing is asked for any more", rested, timeout=300, pause=0.25)
    return last


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Writes from before a gang was submitted until after it had ended, its own submission left out."""

    writes: Counter[str]
    seconds: float


def run_gang(plane: ControlPlane, pods: int) -> Cost:
    before, began = unchanged(lambda: writes(counted(plane))), time.monotonic()
    submit(plane, gang(f"gang-{pods}", pods, command="sleep 2; exit 0"))
    wait_phase(plane, f"gang-{pods}", "Completed")
    seconds = time.monotonic() - began
    counts = unchanged(lambda: writes(counted(plane))) - before
    counts["POST jobs"] -= 1
    return Cost(writes=+counts, seconds=seconds)


@pytest.fixture(scope="module")
def gangs(plane: ControlPlane) -> dict[int, Cost]:
    run_gang(plane, 1)  # the first of a server reads and makes things that the others find
    return {pods: run_gang(plane, pods) for pods in SIZES}


@pytest.mark.parametrize("pods", SIZES)
def test_a_pod_costs_one_create_and_one_bind(gangs: dict[int, Cost], pods: int) -> None:
    counts = gangs[pods].writes
    assert (counts["POST pods"], counts["POST pods/binding"]) == (pods, pods)
    others = {kind for kind in counts if kind.partition(" ")[2].startswith("pods")} - {"POST pods", "POST pods/binding"}
    assert others <= {"PATCH pods/status"}, "what the simulated kubelets tell of their pods"


def test_nothing_is_written_to_a_pod_that_gets_its_place(audit: Audit, gangs: dict[int, Cost]) -> None:
    created = 1 + sum(gangs)
    written = audit.written()
    pods = {kind: number for kind, number in written.items() if kind.partition(" ")[2].startswith("pods")}
    assert pods == {"create pods": created, "create pods/binding": created}


@pytest.mark.parametrize("pods", SIZES)
def test_what_a_gang_costs_beside_its_pods_does_not_grow_with_them(gangs: dict[int, Cost], pods: int) -> None:
    cost = gangs[pods]
    others = cost.writes.copy()
    for kind in ("POST pods", "POST pods/binding", "PATCH pods/status"):
        del others[kind]
    events = others.pop("POST events", 0) + others.pop("PATCH events", 0)
    assert events <= MOST_EVENTS, cost
    assert others.total() <= MOST_OTHERS + cost.seconds * MOST_PER_SECOND, cost


@pytest.mark.usefixtures("gangs")
def test_pods_of_a_small_gang_tell_where_they_are(plane: ControlPlane) -> None:
    said = plane.must_kubectl("describe", "pod", "gang-4-worker-0")
    assert "Scheduled" in said
    assert "Successfully assigned default/gang-4-worker-0 to node-" in said
    events = plane.call("GET", "/api/v1/namespaces/default/events?fieldSelector=involvedObject.kind=PodGroup")
    assert [event for event in events["items"] if "112 more pods" in event["message"]]


@pytest.mark.usefixtures("plane")
def test_an_idle_cluster_is_asked_for_nothing_but_leases(audit: Audit) -> None:
    # The controllers look a few times more while kopf starts, at growing distances of up to 16 s.
    before = unchanged(audit.asked, seconds=18)
    time.sleep(30)  # what is asked is what happens in a time
    assert audit.asked() == before


def test_a_look_that_changes_nothing_costs_no_request(plane: ControlPlane, audit: Audit) -> None:
    submit(plane, gang("looked-at", 4, command="sleep 600"))
    wait_phase(plane, "looked-at", "Running")
    before = unchanged(audit.asked)
    for number in range(5):
        note = {"metadata": {"annotations": {"looked": str(number)}}}
        pod = PODS.path(namespace="default", name="looked-at-worker-0")
        plane.call("PATCH", pod, note, content_type="application/merge-patch+json")
    assert unchanged(audit.asked) == before
    plane.call("DELETE", JOBS.path(namespace="default", name="looked-at"))


@pytest.mark.usefixtures("gangs")
def test_kopf_watches_once_and_leaves_no_trace(plane: ControlPlane) -> None:
    watches = open_watches(plane)
    # Beside kopf's own there are those of the scheduler and the webhooks, and kube-controller-manager's of everything.
    assert 1 <= watches["commands"] <= 2, watches
    assert 1 <= watches["queues"] <= 4, watches
    job = plane.call("GET", JOBS.path(namespace="default", name="gang-4"))
    assert "finalizers" not in job["metadata"]
    assert not [key for key in job["metadata"].get("annotations") or {} if "kopf" in key]
