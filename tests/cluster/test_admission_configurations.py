"""The admission service fills in and keeps its own configurations, as the real API server stores them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.admission import bundles
from tests.cluster.components import CONTROLLERS, SCHEDULER, WEBHOOKS, Component, Components
from tests.cluster.controlplane import ControlPlane
from tests.cluster.processes import wait_until
from tests.corpus.corpus import bases
from vcbatch.api.model import Json
from vcbatch.api.names import JDB_MIN_AVAILABLE
from vcbatch.api.resources import JOBS, PODS, QUEUES
from webhooks.configurations import NAMES, RULES, RULES_VERSION, VALIDATING, shipped

MANAGED = "--manage-configurations"


@pytest.fixture
def programs(control_plane: ControlPlane) -> Iterator[Components]:
    """With configurations as a chart creates them: without webhooks."""
    with Components(control_plane, managed_certificates=True) as components:
        try:
            for resource, names in NAMES.items():
                for name in names:
                    body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}}
                    control_plane.call("POST", resource.path(), body)
            yield components
        finally:
            for resource, names in NAMES.items():
                for name in names:
                    control_plane.request("DELETE", resource.path(name=name))


def filled(plane: ControlPlane) -> list[str]:
    """The configurations that have their rules."""
    items = [item for resource in NAMES for item in plane.call("GET", resource.path())["items"]]
    return [
        item["metadata"]["name"]
        for item in items
        if item.get("webhooks") and item["metadata"].get("annotations", {}).get(RULES) == str(RULES_VERSION)
    ]


def reviews(component: Component, path: str) -> float:
    """How many the service has answered there."""
    found = re.findall(rf'vcbatch_admission_reviews_total{{[^}}]*path="{path}"[^}}]*}} (\S+)', component.metrics())
    return sum(map(float, found))


def job(name: str, **spec: object) -> Json:
    body = bases()["job"]["object"]
    return {
        "apiVersion": JOBS.api_version,
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {**body["spec"], **spec},
    }


def test_the_service_fills_in_its_configurations_and_keeps_them(programs: Components) -> None:
    plane = programs.plane
    programs.start(CONTROLLERS).wait_ready()
    path = JOBS.path(namespace="default")
    for number in range(3):  # while nobody can answer, nobody is asked
        plane.call("POST", f"{path}?dryRun=All", job(f"before-{number}"))
    replicas = [programs.start(WEBHOOKS, MANAGED, replica=str(number)) for number in range(2)]
    for replica in replicas:
        replica.wait_ready()
    refused = 0
    everything = len(shipped())

    def all_filled() -> bool:
        nonlocal refused
        refused += plane.request("POST", f"{path}?dryRun=All", job("meanwhile"))[0] != 201
        return len(filled(plane)) == everything

    wait_until("the rules are written", all_filled)
    assert refused == 0
    assert all(bundles(plane))
    wait_until(
        "jobs are judged", lambda: plane.request("POST", f"{path}?dryRun=All", job("bad", minAvailable=9))[0] == 400
    )

    name = NAMES[VALIDATING][0]
    _empty(plane, name)
    wait_until("what was changed is changed back", lambda: len(filled(plane)) == everything)

    # As at the end of a release: what is deleted under a running service stays away, though it still mends another.
    gone = [resource.path(name=each) for resource, names in NAMES.items() for each in names if each != name]
    for path in gone:
        plane.call("DELETE", path)
    _empty(plane, name)
    wait_until("the service has looked since", lambda: filled(plane) == [name])
    for replica in replicas:
        assert replica.program.stop() == 0
    assert {plane.request("GET", path)[0] for path in gone} == {404}


def _empty(plane: ControlPlane, name: str) -> None:
    """Take the rules out of a configuration."""
    path = VALIDATING.path(name=name)
    plane.call("PATCH", path, {"webhooks": []}, content_type="application/merge-patch+json")


def test_pods_of_jobs_arent_asked_about_and_other_pods_are(programs: Components) -> None:
    plane = programs.plane
    plane.add_nodes(1, prefix="asked")
    service = programs.start(WEBHOOKS, MANAGED)
    for part in (CONTROLLERS, SCHEDULER):
        programs.start(part).wait_ready()
    service.wait_ready()
    wait_until("the rules are written", lambda: len(filled(plane)) == len(shipped()))
    bad = {"metadata": {"name": "p", "annotations": {JDB_MIN_AVAILABLE: "never"}},
           "spec": {"schedulerName": "volcano", "containers": [{"name": "c", "image": "i"}]}}  # fmt: skip
    pods = PODS.path(namespace="default")
    wait_until("pods are judged", lambda: plane.request("POST", f"{pods}?dryRun=All", bad)[0] == 400)
    before = {path: reviews(service, path) for path in ("/pods/mutate", "/pods/validate", "/podgroups/validate")}
    assert before["/pods/validate"] > 0
    plane.must_kubectl("create", "-f", "-", stdin=json.dumps(job("asked-once")))
    stored = JOBS.path(namespace="default", name="asked-once")
    wait_until("its pods have run", lambda: plane.call("GET", stored).get("status", {}).get("succeeded", 0) == 2)
    assert {path: reviews(service, path) for path in before} == before
    assert reviews(service, "/jobs/validate") > 0
    done = plane.kubectl("create", "-f", "-", stdin=json.dumps({**bad, "apiVersion": "v1", "kind": "Pod"}))
    assert "denied the request" in done.stderr


def test_a_pod_is_not_resized_beyond_what_its_queue_may_use(programs: Components) -> None:
    """Kubernetes issue 131835: `pods/resize` goes by no admission of pods."""
    plane = programs.plane
    plane.add_nodes(1, prefix="resized")
    service = programs.start(WEBHOOKS, MANAGED)
    for part in (CONTROLLERS, SCHEDULER):
        programs.start(part).wait_ready()
    service.wait_ready()
    wait_until("the rules are written", lambda: len(filled(plane)) == len(shipped()))
    limited = {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": "limited"},
               "spec": {"capability": {"cpu": "2"}}}  # fmt: skip
    plane.call("POST", QUEUES.path(), limited)
    container = {"name": "c", "image": "i", "command": ["sleep", "inf"], "resources": {"requests": {"cpu": "500m"}}}
    task = {"name": "w", "replicas": 2, "template": {"spec": {"containers": [container]}}}
    body = job("resized", queue="limited", minAvailable=2, tasks=[task])
    plane.call("POST", JOBS.path(namespace="default"), body)
    pod = PODS.path(namespace="default", name="resized-w-0")
    wait_until("there is a pod", lambda: plane.request("GET", pod)[0] == 200)
    wait_until("it runs", lambda: plane.call("GET", pod)["status"]["phase"] == "Running")
    used = QUEUES.path(name="limited")
    wait_until("that is counted", lambda: plane.call("GET", used)["status"].get("allocated", {}).get("cpu") == "1")

    running = plane.call("GET", pod)  # whose node supports resizes: its kubelet says what containers run with
    for one in running["status"]["containerStatuses"]:
        one["resources"] = container["resources"]
    plane.call("PUT", f"{pod}/status", running)

    def resize(cpu: str) -> tuple[int, Any]:
        change = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}}
        kind = "application/strategic-merge-patch+json"
        return plane.request("PATCH", f"{pod}/resize", change, content_type=kind)

    code, refused = resize("2")
    assert code == 400, refused
    message = json.loads(refused)["message"] if isinstance(refused, str) else refused["message"]
    assert (
        'spec.containers[0].resources.requests[cpu]: Invalid value: "2": pod default/resized-w-0 would use 1500m more '
        "cpu, and queue limited has 1 left of 2 (spec.capability): want at most 1 more"
    ) in message
    code, taken = resize("1500m")
    assert code == 200, taken
    wait_until("that is counted", lambda: plane.call("GET", used)["status"]["allocated"]["cpu"] == "2")
    assert resize("1600m")[0] == 400
