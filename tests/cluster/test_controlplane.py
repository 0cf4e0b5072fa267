"""The test bed itself: a control plane comes up, works and goes without a trace, whatever happens to the test."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.cluster.binaries.build import Binaries, go, mended
from tests.cluster.binaries.programs import BuildError, Mend, Program, kubernetes_version, programs
from tests.cluster.controlplane import (
    APISERVER,
    CONTROLLERS,
    ETCD,
    KWOK,
    REPOSITORY,
    SCHEDULER,
    ControlPlane,
    Options,
)  # fmt: skip
from tests.cluster.processes import ProgramEnded, wait_until
from tests.scenarios.deeds import job


def test_pods_run_on_simulated_nodes(control_plane: ControlPlane) -> None:
    control_plane.add_nodes(2)
    control_plane.must_kubectl(
        "run", "short", "--image=busybox", "--restart=Never", "--", "sh", "-c", "sleep 1; exit 3"
    )

    def phase() -> str:
        return str(json.loads(control_plane.must_kubectl("get", "pod", "short", "-o", "json"))["status"]["phase"])

    wait_until("the pod has failed", lambda: phase() == "Failed")


def test_a_job_is_scaled_by_a_patch_and_kubectl_scale_changes_nothing(control_plane: ControlPlane) -> None:
    """A CRD's path to its replicas may not go into a list, which a Job's tasks are."""
    body = job({"name": "sized", "queue": "default", "minAvailable": 1, "tasks": {"w": {"replicas": 2}}})
    control_plane.must_kubectl("apply", "-f", "-", stdin=json.dumps(body))
    scaled = control_plane.kubectl("scale", "vcjob/sized", "--replicas=3")
    assert scaled.returncode == 1
    assert "(NotFound)" in scaled.stderr
    sizes = ("get", "vcjob", "sized", "-o", "jsonpath={.spec.tasks[*].replicas}")
    assert control_plane.must_kubectl(*sizes) == "2"
    patch = json.dumps([{"op": "replace", "path": "/spec/tasks/0/replicas", "value": 3}])
    control_plane.must_kubectl("patch", "vcjob", "sized", "--type=json", "-p", patch)
    assert control_plane.must_kubectl(*sizes) == "3"


def test_two_at_once_know_nothing_of_each_other(binaries: Binaries, tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        planes = [ControlPlane(tmp_path / name, binaries) for name in ("one", "two")]
        try:
            list(pool.map(ControlPlane.start, planes))
            planes[0].call("POST", "/api/v1/namespaces", {"metadata": {"name": "only-here"}})
            assert planes[0].request("GET", "/api/v1/namespaces/only-here")[0] == 200
            assert planes[1].request("GET", "/api/v1/namespaces/only-here")[0] == 404
        finally:
            for plane in planes:
                plane.stop()


def test_nothing_is_left_after_a_stop(binaries: Binaries, tmp_path: Path) -> None:
    with ControlPlane(tmp_path, binaries, Options(kwok=False, scheduler=False)) as plane:
        pids = [program.pid for program in plane.programs.values()]
        state = plane.state
        assert sorted(plane.programs) == sorted([ETCD, APISERVER, CONTROLLERS])
        assert state.is_dir()
    assert not _alive(pids)
    assert not state.exists()
    assert (plane.logs / f"{APISERVER}.log").stat().st_size > 0


def test_nothing_is_left_when_the_test_process_is_killed(binaries: Binaries, tmp_path: Path) -> None:
    script = f"""
import json, sys, time
from pathlib import Path
from tests.cluster.binaries.build import build
from tests.cluster.controlplane import ControlPlane, Options
plane = ControlPlane(Path({str(tmp_path)!r}), build())
plane.start()
print(json.dumps([[program.pid for program in plane.programs.values()], str(plane.state)]), flush=True)
time.sleep(600)
"""
    victim = subprocess.Popen([sys.executable, "-c", script], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    try:
        assert victim.stdout is not None
        pids, state = json.loads(victim.stdout.readline())
        assert len(_alive(pids)) == 5
    finally:
        victim.kill()
        victim.wait()
    wait_until("all programs are gone", lambda: not _alive(pids))
    wait_until("the state is gone", lambda: not Path(state).exists())


def _alive(pids: Iterable[int]) -> list[int]:
    def alive(pid: int) -> bool:
        try:
            return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    return [pid for pid in pids if alive(pid)]


@pytest.mark.parametrize("name", [ETCD, APISERVER, KWOK])
def test_a_program_that_ends_early_is_named_with_what_it_said(name: str, binaries: Binaries, tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path, binaries, Options(flags={name: ["--no-such-flag"]}))
    try:
        with pytest.raises(ProgramEnded, match=rf"(?s)^{name} ended with .*no-such-flag"):
            plane.start()
    finally:
        plane.stop()


# Ports in the order of their choice: etcd, its peers, API server, controllers, scheduler, kwok and its nodes.
@pytest.mark.parametrize("roles", [(0, 2, 4, 6), (1, 3, 5)])
def test_ports_taken_in_between_are_chosen_anew(
    roles: Sequence[int], binaries: Binaries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each attempt but the last another program finds that its port was taken."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port, attempts = taken.getsockname()[1], iter(roles)
        choose = ControlPlane._distinct_ports  # pyright: ignore[reportPrivateUsage]

        def chosen(count: int) -> list[int]:
            ports, role = choose(count), next(attempts, None)
            return ports if role is None else [*ports[:role], port, *ports[role + 1 :]]

        monkeypatch.setattr(ControlPlane, "_distinct_ports", staticmethod(chosen))
        with ControlPlane(tmp_path, binaries) as plane:
            assert plane.request("GET", "/readyz")[0] == 200
            assert str(port) not in plane.server
        assert next(attempts, None) is None, "every one of them was found"


def test_a_chosen_set_of_controllers_runs(make_control_plane: Callable[..., ControlPlane]) -> None:
    plane = make_control_plane(
        Options(controllers=("serviceaccount-controller", "namespace-controller"), kwok=False, unlimited=True)
    )
    plane.call("POST", "/apis/apps/v1/namespaces/default/deployments", _deployment())
    plane.call("POST", "/api/v1/namespaces", {"metadata": {"name": "served"}})
    plane.wait_service_accounts("served")
    assert plane.call("GET", "/apis/apps/v1/namespaces/default/replicasets")["items"] == []


def _deployment() -> dict[str, Any]:
    labels = {"app": "idle"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "any"}]}}
    return {"metadata": {"name": "idle"}, "spec": {"selector": {"matchLabels": labels}, "template": template}}


FAILING = """
import pytest

def test_fails(control_plane):
    assert control_plane.request("GET", "/no/such/path")[0] == 200

def test_passes(make_control_plane):
    from tests.cluster.controlplane import Options
    assert make_control_plane(Options(kwok=False)).request("GET", "/readyz")[0] == 200
"""


def test_a_failed_test_shows_the_logs_and_only_its_folder_stays(binaries: Binaries, tmp_path: Path) -> None:
    """In a pytest of its own, with the conftest of this folder."""
    (tmp_path / "conftest.py").write_text(
        "from tests.cluster.conftest import *\n"
        "from tests.cluster.conftest import pytest_runtest_makereport, binaries, control_plane, make_control_plane\n"
    )
    (tmp_path / "test_of_its_own.py").write_text(FAILING)
    base = tmp_path / "base"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-o", "addopts=", f"--basetemp={base}",
         "--rootdir", str(tmp_path), "-c", os.devnull, str(tmp_path)],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(REPOSITORY)}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    for name in (ETCD, APISERVER, CONTROLLERS, SCHEDULER, KWOK):
        assert f"{name}.log" in done.stdout
    kept = [path.parent.parent for path in base.rglob(f"{APISERVER}.log")]
    assert len(kept) == 1


def test_a_killed_kwok_goes_on_where_it_was(control_plane: ControlPlane) -> None:
    """Programs that a test has stopped with SIGSTOP are ended too; pods of the time in between aren't forgotten."""
    node = control_plane.add_nodes(1, prefix="waits")[0]
    pods = "/api/v1/namespaces/default/pods"

    def pod(name: str, command: str) -> dict[str, Any]:
        container = {"name": "main", "image": "any", "command": ["sh", "-c", command]}
        spec = {"nodeName": node, "restartPolicy": "Never", "containers": [container]}
        return {"metadata": {"name": name}, "spec": spec}

    def phase(name: str) -> str:
        return str(control_plane.call("GET", f"{pods}/{name}")["status"]["phase"])

    control_plane.call("POST", pods, pod("before", "sleep 10"))
    wait_until("the first runs", lambda: phase("before") == "Running")
    kwok = control_plane.programs[KWOK]
    pid = kwok.pid
    kwok.send(signal.SIGSTOP)
    kwok.kill()
    assert not _alive([pid])
    control_plane.call("POST", pods, pod("in-between", "exit 7"))
    kwok.start()
    wait_until("the first is over", lambda: phase("before") == "Succeeded")
    wait_until("the other is over", lambda: phase("in-between") == "Failed")


def test_a_module_without_the_fault_to_mend_is_not_built(tmp_path: Path) -> None:
    compiler = go()
    if compiler is None:
        pytest.skip("there is no Go toolchain")
    gone = Mend(module="sigs.k8s.io/kwok", file="pkg/utils/informer/event.go", wrong="if theFault {", right="")
    program = Program("kwok-mended", programs()["kwok"].module, "sigs.k8s.io/kwok/cmd/kwok", gone)
    with pytest.raises(BuildError, match=r"kwok-mended could not be built: .* has no `if theFault \{`"):
        mended(compiler, program, gone, tmp_path)


def test_the_server_has_the_chosen_version(control_plane: ControlPlane) -> None:
    version = control_plane.call("GET", "/version")
    assert version["gitVersion"] == programs()["kube-apiserver"].module.version
    assert f"{version['major']}.{version['minor']}" == kubernetes_version()
