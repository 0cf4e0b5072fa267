"""The chart on a real control plane, by a real Helm client.

What it installs works, an upgrade or a rollback disturbs no running gang, and what it leaves behind blocks nothing and
loses nothing.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.chart import helm as client
from tests.chart.settings import SETTINGS
from tests.cluster.binaries.build import Binaries
from tests.cluster.chart import Programs, Release, programs
from tests.cluster.controlplane import ControlPlane, Options
from tests.cluster.gangs import gang, phase, submit, wait_phase
from tests.cluster.processes import wait_until
from vcbatch.api.resources import JOBS, PODS
from webhooks.configurations import NAMES

CONTROLLERS, SCHEDULER, WEBHOOKS = "vcbatch-controllers", "vcbatch-scheduler", "vcbatch-webhooks"
EVICTING = """\
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: predicates
  - name: proportion
  - name: nodeorder
"""


DUAL_STACK = Options(flags={"kube-apiserver": ["--service-cluster-ip-range=10.0.0.0/16,fd00:10::/112"]})
NAMESPACES = ("volcano-system", "batch", "elsewhere")


@pytest.fixture(scope="module")
def plane(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with nodes and without CRDs, which the chart brings."""
    made = ControlPlane(tmp_path_factory.mktemp("cluster"), binaries, DUAL_STACK)
    try:
        made.start()
        made.add_nodes(3, cpu="8")
        yield made
    finally:
        made.stop()
        if not made.keep and sys.exc_info()[0] is None:
            shutil.rmtree(made.folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def _clean(plane: ControlPlane) -> Iterator[None]:
    """Each test leaves the cluster as it found it: no release, CRD, namespace or pod."""
    yield
    for namespace in NAMESPACES:
        listed = client.run("list", "--all", "-q", "--namespace", namespace, kubeconfig=plane.kubeconfig)
        assert listed.returncode == 0, listed.stderr
        for name in listed.stdout.split():
            Release(plane, name=name, namespace=namespace).uninstall()
    plane.delete_crds()
    for what in (
        ["pods", "--all", "--namespace", "default", "--grace-period=0", "--force"],
        ["namespace", *NAMESPACES, "--ignore-not-found"],
        ["priorityclass", "urgent", "--ignore-not-found"],
    ):
        plane.must_kubectl("delete", *what, "--wait", "--timeout=90s")
    plane.must_kubectl("uncordon", "node-0", "node-1", "node-2")


@pytest.fixture
def release(plane: ControlPlane) -> Release:
    """A release that isn't installed yet."""
    return Release(plane)


def _uids(plane: ControlPlane, job: str) -> set[str]:
    """The pods of a job that run."""
    query = f"labelSelector=volcano.sh/job-name%3D{job}"
    items = plane.call("GET", f"{PODS.path(namespace='default')}?{query}")["items"]
    return {item["metadata"]["uid"] for item in items if item["status"].get("phase") == "Running"}


def _running_gang(plane: ControlPlane, name: str, pods: int = 3) -> set[str]:
    submit(plane, gang(name, pods, command="sleep inf"))
    wait_phase(plane, name, "Running")
    wait_until(f"{pods} pods of {name} run", lambda: len(_uids(plane, name)) == pods)
    return _uids(plane, name)


def _completes(plane: ControlPlane, name: str, *, namespace: str = "default") -> None:
    submit(plane, gang(name, 3, command="true"), namespace=namespace)
    wait_until(f"{name} is Completed", lambda: phase(plane, name, namespace=namespace) == "Completed")


def _ours(plane: ControlPlane, *kinds: str) -> set[str]:
    """What there is with the chart's label, as `kind/name`."""
    labelled = ("-l", "app.kubernetes.io/name=vcbatch", "-o", "name")
    return set(plane.must_kubectl("get", ",".join(kinds), "-A", *labelled).split())


EVERYTHING = (
    "deployments",
    "services",
    "configmaps",
    "secrets",
    "serviceaccounts",
    "roles",
    "rolebindings",
    "clusterroles",
    "clusterrolebindings",
    "networkpolicies",
    "poddisruptionbudgets",
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
    "validatingadmissionpolicies",
    "mutatingadmissionpolicies",
)


# What is rendered ----------------------------------------------------------------------------------------------------


def test_the_api_server_takes_every_manifest_as_it_is(plane: ControlPlane) -> None:
    plane.call("POST", "/api/v1/namespaces", {"metadata": {"name": "volcano-system"}})
    account = {"metadata": {"name": "vcbatch-test"}}  # a pod is taken only where its account is there
    plane.call("POST", "/api/v1/namespaces/volcano-system/serviceaccounts", account)
    for name, values in SETTINGS.items():
        made = client.render(
            values, *(("--api-versions", "cert-manager.io/v1") if name == "cert-manager" else ()), crds=True
        )
        assert not made.error, made.error
        known = [item for item in made.objects if "cert-manager.io" not in item["apiVersion"]]
        dry_run = ("--server-side", "--dry-run=server", "--validate=strict")
        taken = plane.must_kubectl("apply", *dry_run, "-f", "-", stdin=yaml.safe_dump_all(known))
        assert len(taken.splitlines()) == len(known), name


# The life of a release -----------------------------------------------------------------------------------------------


def test_its_accounts_and_command_lines_suffice_for_its_programs(release: Release) -> None:
    plane = release.plane
    policy = {"schedulers": [{"name": "volcano", "policy": EVICTING}]}
    release.install(values=policy)
    with programs(release, WEBHOOKS, CONTROLLERS, SCHEDULER):
        plane.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", _priority("urgent", 1000))
        _completes(plane, "short")
        fills = gang("fills", 21, command="sleep inf")  # all but what the release asks for
        fills["spec"]["minAvailable"] = fills["spec"]["tasks"][0]["minAvailable"] = 3
        submit(plane, fills)
        wait_until("the nodes are full", lambda: len(_uids(plane, "fills")) == 21)
        urgent = gang("urgent", 3, command="true")
        urgent["spec"]["priorityClassName"] = "urgent"
        submit(plane, urgent)
        wait_phase(plane, "urgent", "Completed")
    for program in ("webhooks", "controllers", "scheduler"):
        said = "".join(path.read_text() for path in plane.logs.glob(f"vcbatch-{program}-*.log"))
        assert "forbidden" not in said, said[-3000:]


def _priority(name: str, value: int) -> dict[str, Any]:
    return {"metadata": {"name": name}, "value": value, "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}


def test_a_running_gang_outlives_upgrade_rollback_uninstallation_and_a_new_installation(release: Release) -> None:
    plane = release.plane
    release.install()
    crds = _crds(plane)
    assert len(crds) == len(list((client.CHART / "files/crds").glob("*.yaml")))
    with programs(release, CONTROLLERS, SCHEDULER):
        uids = _running_gang(plane, "long")
    release.upgrade(values={"schedulers": [{"name": "volcano", "policy": EVICTING}], "controllers": {"replicas": 3}})
    with programs(release, CONTROLLERS, SCHEDULER):
        _completes(plane, "after-upgrade")
        assert _uids(plane, "long") == uids
    release.rollback(1)
    assert plane.call("GET", f"{_deployments()}/{CONTROLLERS}")["spec"]["replicas"] == 2
    with programs(release, CONTROLLERS, SCHEDULER):
        _completes(plane, "after-rollback")
        assert _uids(plane, "long") == uids
    release.uninstall()
    assert not _ours(plane, *EVERYTHING)
    assert _crds(plane) == crds, "CRDs are kept as they were"
    assert _uids(plane, "long") == uids
    assert phase(plane, "long") == "Running"
    submit(plane, gang("meanwhile", 3, command="true"))  # nothing blocks it, and nobody runs it
    release.install()
    with programs(release, CONTROLLERS, SCHEDULER):
        wait_phase(plane, "meanwhile", "Completed")
        _completes(plane, "after-installation")
        assert _uids(plane, "long") == uids
        assert phase(plane, "long") == "Running"


def _deployments(namespace: str = "volcano-system") -> str:
    return f"/apis/apps/v1/namespaces/{namespace}/deployments"


def _crds(plane: ControlPlane) -> dict[str, str]:
    items = plane.call("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in items}


def test_an_upgrade_that_can_not_start_leaves_the_old_replicas_and_is_rolled_back(release: Release) -> None:
    plane = release.plane
    release.install()
    before = _pods_of(plane)
    tried = release.helm(
        "upgrade", release.name, str(client.CHART), "--wait", "--timeout", "10s",
        values={"image": {"registry": "registry.invalid"}},
    )  # fmt: skip
    assert tried.returncode != 0
    assert all("registry.invalid" in image for image in _images(plane)), "it was sent"
    assert before <= _pods_of(plane), "a replica ended before another was there"
    release.rollback(1)
    assert before <= _pods_of(plane)
    assert all("registry.invalid" not in image for image in _images(plane))


def _pods_of(plane: ControlPlane) -> set[str]:
    items = plane.call("GET", PODS.path(namespace="volcano-system"))["items"]
    return {item["metadata"]["name"] for item in items if _is_ready(item)}


def _is_ready(pod: dict[str, Any]) -> bool:
    conditions = pod["status"].get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _images(plane: ControlPlane) -> set[str]:
    items = plane.call("GET", _deployments())["items"]
    return {each["image"] for item in items for each in item["spec"]["template"]["spec"]["containers"]}


@pytest.mark.parametrize("namespace", ["volcano-system", "batch"])
def test_in_a_namespace_that_is_restricted(plane: ControlPlane, namespace: str) -> None:
    labels = {
        "pod-security.kubernetes.io/enforce": "restricted",
        "pod-security.kubernetes.io/enforce-version": "latest",
    }
    plane.call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace, "labels": labels}})
    release = Release(plane, namespace=namespace)
    release.install(values=_test_values())
    assert len([name for name in _all_pods(plane, namespace) if name.startswith("vcbatch-")]) == 6
    with programs(release, CONTROLLERS, SCHEDULER):
        _helm_test(release, namespace, succeeds=True)
        leases = plane.call("GET", f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases")["items"]
        assert {CONTROLLERS, SCHEDULER} <= {item["metadata"]["name"] for item in leases}
    release.uninstall()
    assert not _ours(plane, *EVERYTHING)


def _all_pods(plane: ControlPlane, namespace: str) -> set[str]:
    return {item["metadata"]["name"] for item in plane.call("GET", PODS.path(namespace=namespace))["items"]}


def _test_values(**more: Any) -> dict[str, Any]:
    """What a simulated node takes from a command is in docs/testing.md."""
    return {"tests": {"command": ["true"], **more}}


def _helm_test(release: Release, namespace: str, *, succeeds: bool) -> str:
    """`helm test`, whose pod's program runs here in the place of the simulated node. Returns what it printed."""
    plane, path = release.plane, PODS.path(namespace=namespace, name="vcbatch-test")
    answers: list[subprocess.CompletedProcess[str]] = []
    testing = threading.Thread(target=lambda: answers.append(release.helm("test", release.name, "--timeout", "180s")))
    testing.start()
    try:
        wait_until("the pod of the test is there", lambda: plane.request("GET", path)[0] == 200)
        program = Programs(release).run_pod(path)
        try:
            code = program.wait_ended(150)
        finally:
            program.kill()
        status = {"status": {"phase": "Succeeded" if code == 0 else "Failed"}}
        plane.call("PATCH", f"{path}/status", status, content_type="application/merge-patch+json")
    finally:
        testing.join()
    assert (code == 0) is succeeds, program.said()
    assert (answers[0].returncode == 0) is succeeds, answers[0].stdout + answers[0].stderr
    assert not plane.call("GET", JOBS.path(namespace=namespace))["items"], "the gang is deleted"
    return program.said()


def test_the_test_says_why_its_gang_does_not_run(release: Release) -> None:
    release.install(values={**_test_values(timeout="20s"), "nodeSelector": {"kubernetes.io/os": "linux"}})
    release.plane.must_kubectl("cordon", "node-0", "node-1", "node-2")
    with programs(release, CONTROLLERS, SCHEDULER):
        said = _helm_test(release, "volcano-system", succeeds=False)
    assert "error: " in said
    assert "--- events" in said
    assert "unschedulable" in said.lower(), said


# Admission -----------------------------------------------------------------------------------------------------------

BROKEN = gang("broken", 2, command="true")
BROKEN["spec"]["minAvailable"] = 3


def _rules(plane: ControlPlane) -> dict[str, Any]:
    """The webhooks of our configurations, by name."""
    return {
        name: plane.call("GET", resource.path(name=name)).get("webhooks") or []
        for resource, names in NAMES.items()
        for name in names
    }


def _written(plane: ControlPlane) -> bool:
    """Whether every configuration has its rules and an authority."""
    return all(
        webhooks and all(each["clientConfig"].get("caBundle") for each in webhooks)
        for webhooks in _rules(plane).values()
    )


def _creates(plane: ControlPlane, job: dict[str, Any], *, namespace: str = "default") -> tuple[int, str]:
    code, answer = plane.request("POST", f"{JOBS.path(namespace=namespace)}?dryRun=All", job)
    return code, str(answer)


def _until_nobody_judges(plane: ControlPlane) -> None:
    """The API server hears a moment later of what was removed."""
    wait_until("nobody judges any more", lambda: _creates(plane, BROKEN)[0] == 201)


def test_the_service_judges_from_when_it_is_ready_until_it_is_removed(plane: ControlPlane) -> None:
    release = Release(plane, namespace="batch")
    release.install(values={"schedulers": [{"name": "volcano"}, {"name": "research"}]})
    assert not any(_rules(plane).values())
    assert _creates(plane, BROKEN)[0] == 201, "nobody judges before somebody can"
    with programs(release, WEBHOOKS, CONTROLLERS, SCHEDULER):
        wait_until("the service has written its rules", lambda: _written(plane))
        wait_until("it is asked", lambda: _creates(plane, BROKEN)[0] == 400)
        assert "minAvailable" in _creates(plane, BROKEN)[1]
        assert _creates(plane, BROKEN, namespace="batch")[0] == 201, "its own namespace isn't judged"
        _completes(plane, "judged")
        before = _rules(plane)
        release.upgrade(values={"webhooks": {"replicas": 3}, "schedulers": [{"name": "volcano"}, {"name": "research"}]})
        release.rollback(1)
        assert _rules(plane) == before, "Helm leaves what the service wrote"
    code, said = _creates(plane, gang("alone", 1, command="true"))
    assert code == 500 and "failed calling webhook" in said, "nobody answers any more"
    plain = {"metadata": {"name": "plain"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    plane.call("POST", PODS.path(namespace="default"), plain)
    release.uninstall()
    assert not _ours(plane, *EVERYTHING)
    _until_nobody_judges(plane)


def test_a_service_that_still_runs_does_not_bring_back_what_was_removed(release: Release) -> None:
    plane = release.plane
    release.install()
    with programs(release, WEBHOOKS):
        wait_until("the service has written its rules", lambda: _written(plane))
        release.uninstall()
        _until_nobody_judges(plane)
    assert not _ours(plane, "mutatingwebhookconfigurations", "validatingwebhookconfigurations")
    assert _creates(plane, BROKEN)[0] == 201


def test_policies_judge_without_a_service(release: Release) -> None:
    plane = release.plane
    release.install(values={"admission": {"mode": "policies"}})
    wait_until("the policies are followed", lambda: _creates(plane, BROKEN)[0] == 422)
    assert _creates(plane, BROKEN, namespace="volcano-system")[0] == 201
    with programs(release, CONTROLLERS, SCHEDULER):
        _completes(plane, "judged")
    release.uninstall()
    assert not _ours(plane, *EVERYTHING)
    _until_nobody_judges(plane)


# What is refused -----------------------------------------------------------------------------------------------------


def test_a_second_release_is_refused_and_harms_nothing(release: Release) -> None:
    release.install()
    objects = _ours(release.plane, *EVERYTHING)
    other = Release(release.plane, name="second", namespace="elsewhere")
    tried = other.tried()
    assert tried.returncode != 0
    assert "by the Helm release vcbatch in namespace volcano-system" in tried.stderr
    assert _ours(release.plane, *EVERYTHING) == objects
    release.upgrade()


def test_crds_of_another_release_are_taken_over_by_the_commands_of_the_refusal(release: Release) -> None:
    plane = release.plane
    Release(plane, name="volcano").install()
    Release(plane, name="volcano").uninstall()
    tried = release.tried()
    assert tried.returncode != 0
    assert "belong to the Helm release volcano in namespace volcano-system" in tried.stderr
    assert "docs/migrate-from-volcano.md" in tried.stderr
    (command,) = re.findall(r"^ *(kubectl .*)$", tried.stderr, re.MULTILINE)
    kubectl = f"{shlex.quote(str(plane.binaries.path('kubectl')))} --kubeconfig {shlex.quote(str(plane.kubeconfig))}"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command.replace("kubectl", kubectl)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    release.install()


def test_crds_of_another_release_may_be_left_to_it(release: Release) -> None:
    Release(release.plane, name="volcano").install()
    Release(release.plane, name="volcano").uninstall()
    release.install(values={"crds": {"install": False}})


def test_without_crds_it_is_said_how_to_get_them(release: Release) -> None:
    tried = release.tried(values={"crds": {"install": False}})
    assert tried.returncode != 0
    assert "vcbatch crds | kubectl apply" in tried.stderr


def test_an_installation_by_somebody_without_the_rights_changes_nothing(release: Release) -> None:
    nobody = release.plane.user("nobody")
    done = client.run(
        "install", "vcbatch", str(client.CHART), "--namespace", "default", kubeconfig=nobody
    )  # fmt: skip
    assert done.returncode != 0
    assert "forbidden" in done.stderr
    assert not _ours(release.plane, *(kind for kind in EVERYTHING if "polic" not in kind))
    assert not _crds(release.plane)
