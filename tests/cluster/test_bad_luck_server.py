"""The control plane itself has bad luck while vcbatch works: afterwards everything is as if nothing had happened."""

from __future__ import annotations

import base64
import json
import signal
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.bad_luck import NODE_COUNT, NODE_CPU, Keeper, World
from tests.cluster.components import Components
from tests.cluster.controlplane import APISERVER, CONTROLLERS, ETCD, ControlPlane
from tests.cluster.gangs import gang
from tests.cluster.history import DELETED, PODS
from tests.cluster.invariants import HALF_STARTED_SECONDS
from tests.cluster.processes import wait_until

OUTAGE = 20.0
"""Seconds without etcd: longer than a Lease."""


@pytest.fixture(scope="module")
def at_work(control_plane: ControlPlane) -> Iterator[Components]:
    """vcbatch on nodes with room for half of what the tests submit."""
    control_plane.add_nodes(NODE_COUNT, cpu=NODE_CPU)
    with Components(control_plane) as components:
        components.start_all()
        keeper = Keeper(components)
        keeper.start()
        yield components
        keeper.close()


@pytest.fixture
def world(at_work: Components, request: pytest.FixtureRequest) -> Iterator[World]:
    name = "".join(c if c.isalnum() else "-" for c in request.node.name.removeprefix("test_").lower()).strip("-")
    with World(at_work.plane, at_work, name[:50].strip("-")) as world:
        yield world


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=lambda number: number.name)
def test_the_api_server_is_restarted(number: signal.Signals, world: World, tmp_path: Path) -> None:
    world.submit_gangs(20)
    world.wait_running(5)
    server = world.plane.programs[APISERVER]
    server.stop(number=number)
    server.start()
    world.plane.wait_ready()
    world.wait_all()
    assert world.created() == 80, "no pod was made twice"
    world.check(tmp_path, outages=True)


def test_etcd_stands_still(world: World, tmp_path: Path) -> None:
    world.submit_gangs(20)
    world.wait_running(5)
    etcd = world.plane.programs[ETCD]
    etcd.send(signal.SIGSTOP)
    try:
        time.sleep(OUTAGE)
    finally:
        etcd.send(signal.SIGCONT)
    world.plane.wait_ready()
    world.wait_all()
    assert world.created() == 80, "no pod was made twice"
    world.check(tmp_path, half_started_seconds=30 + OUTAGE, outages=True)


def test_etcd_is_killed_and_comes_back_later(world: World, tmp_path: Path) -> None:
    world.submit_gangs(20)
    world.wait_running(5)
    etcd = world.plane.programs[ETCD]
    etcd.kill()
    try:
        time.sleep(OUTAGE)
    finally:
        etcd.start()
    world.plane.wait_ready()
    world.wait_all()
    assert world.created() == 80, "no pod was made twice"
    world.check(tmp_path, half_started_seconds=30 + OUTAGE, outages=True)


def test_watches_meet_a_compacted_history(world: World, tmp_path: Path) -> None:
    """While the programs stand still, objects come, change and go; then the server forgets that it was so."""
    names = world.submit_gangs(4, command="sleep inf")
    world.wait_running(4)
    frozen = [component.program for component in world.components.running if "webhooks" not in component.program.name]
    for program in frozen:
        program.send(signal.SIGSTOP)
    began = time.monotonic()
    before = world.plane.call("GET", "/api/v1/pods?limit=1")["metadata"]["resourceVersion"]
    try:
        world.plane.call("DELETE", f"{world.jobs}/{names[0]}?propagationPolicy=Background")
        world.submit(gang("late", 4, command="sleep 1"))
        path = f"/api/v1/namespaces/{world.namespace}/pods"
        world.plane.call("DELETE", f"{path}/{names[1]}-worker-0?gracePeriodSeconds=0")
        wait_until("the pods of the deleted job are gone", lambda: len(world.pods()) == 11)
        _compact(world.plane)
        world.plane.programs[APISERVER].restart()
        world.plane.wait_ready()
        assert _expired(world.plane, before)
    finally:
        for program in frozen:
            program.send(signal.SIGCONT)
    frozen_seconds = time.monotonic() - began  # in which nobody could answer the loss
    world.submitted.remove(f"{world.namespace}/{names[0]}")
    wait_until(
        "the new gang is over, and the lost pod was answered",
        lambda: world.phases()[f"{world.namespace}/late"] == "Completed" and len(_alive(world, names[1])) == 4,
        timeout=180,
        pause=0.2,
    )
    for name in names[2:]:
        assert len(_alive(world, name)) == 4
    assert {name: world.created(name) for name in [*names, "late"]} == {
        names[0]: 4, names[1]: 5, names[2]: 4, names[3]: 4, "late": 4,
    }  # fmt: skip
    world.check(tmp_path, half_started_seconds=HALF_STARTED_SECONDS + frozen_seconds, outages=True)


def _alive(world: World, job: str) -> list[str]:
    return [
        name
        for name, pod in world.pods().items()
        if name.startswith(f"{job}-") and pod["status"].get("phase") in ("Pending", "Running")
    ]


def _expired(plane: ControlPlane, version: str) -> bool:
    """Whether a watch from there is told to list anew, as those of the frozen programs will be."""
    code, answer = plane.request("GET", f"/api/v1/pods?watch=1&timeoutSeconds=2&resourceVersion={version}")
    return code == 410 or (isinstance(answer, dict) and answer.get("object", {}).get("code") == 410)


def _compact(plane: ControlPlane) -> None:
    """Forget all but the present revision, physically, by etcd's own gateway."""

    def post(path: str, body: object) -> dict[str, dict[str, str]]:
        request = urllib.request.Request(plane.etcd + path, data=json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.loads(answer.read())

    key = base64.b64encode(b"/registry").decode()
    revision = post("/v3/kv/range", {"key": key, "limit": "1"})["header"]["revision"]
    post("/v3/kv/compaction", {"revision": revision, "physical": True})


@pytest.mark.parametrize("propagation", ["Foreground", "Background"])
def test_jobs_are_deleted_while_nobody_collects_garbage(propagation: str, world: World, tmp_path: Path) -> None:
    names = world.submit_gangs(3, command="sleep inf")
    world.wait_running(3)
    program = world.plane.programs[CONTROLLERS]
    program.kill()
    try:
        world.plane.call("DELETE", f"{world.jobs}/{names[0]}?propagationPolicy={propagation}")
        world.submit(gang("meanwhile", 4, command="sleep 1"))
        wait_until("others go on", lambda: world.phases()[f"{world.namespace}/meanwhile"] == "Completed", timeout=120)
    finally:
        program.start()
    wait_until("the job is gone", lambda: world.plane.request("GET", f"{world.jobs}/{names[0]}")[0] == 404, timeout=120)
    wait_until("its pods are gone", lambda: not _alive(world, names[0]), timeout=120)
    assert world.created(names[0]) == 4, "a job that is being deleted gets no new pods"
    world.check(tmp_path, deleted=[names[0]])


def test_a_namespace_is_deleted_while_nobody_empties_it(world: World, tmp_path: Path) -> None:
    names = world.submit_gangs(6, pods=8, command="sleep 3")
    world.wait_running(2)
    program = world.plane.programs[CONTROLLERS]
    program.kill()
    try:
        world.plane.call("DELETE", f"/api/v1/namespaces/{world.namespace}")
        wait_until(
            "what ran is over",
            lambda: not any(pod["status"].get("phase") == "Running" for pod in world.pods().values()),
            timeout=120,
        )
    finally:
        program.start()
    wait_until(
        "the namespace is gone",
        lambda: world.plane.request("GET", f"/api/v1/namespaces/{world.namespace}")[0] == 404,
        timeout=180,
    )
    wait_until("its pods are gone", lambda: not world.pods())
    world.check(tmp_path, deleted=names)


def test_a_node_goes_with_its_pods(world: World, tmp_path: Path) -> None:
    """kube-controller-manager fails the pods of a node that no longer is; the job restarts by its policy."""
    lost = world.plane.add_nodes(1, prefix="short-lived", cpu="4", labels={"doomed": "true"})[0]
    job = gang("moves", 4, command="sleep inf")
    job["spec"]["policies"] = [
        {"event": "PodEvicted", "action": "RestartJob"},
        {"event": "PodFailed", "action": "RestartJob"},
    ]
    job["spec"]["tasks"][0]["template"]["spec"]["affinity"] = {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 100, "preference": {"matchExpressions": [{"key": "doomed", "operator": "Exists"}]}}
            ]
        }
    }
    world.submit(job)
    world.wait_running(1)
    on_node = [name for name, pod in world.pods().items() if pod["spec"].get("nodeName") == lost]
    assert on_node, {name: pod["spec"].get("nodeName") for name, pod in world.pods().items()}
    world.plane.call("DELETE", f"/api/v1/nodes/{lost}")

    def moved() -> bool:
        pods = world.pods().values()
        places = [pod["spec"].get("nodeName") for pod in pods if pod["status"].get("phase") == "Running"]
        return len(places) == 4 and lost not in places and world.phases()[world.submitted[0]] == "Running"

    wait_until("the gang runs elsewhere", moved, timeout=240, pause=0.2)
    removed = {c.name for c in world.recorder.changes(PODS) if c.type == DELETED}
    assert {f"{world.namespace}/{name}" for name in on_node} <= removed
    status = world.plane.call("GET", f"{world.jobs}/moves")["status"]
    assert status.get("retryCount", 0) == 1, "the loss of one node is one cause, not one for each pod"
    world.check(tmp_path)
