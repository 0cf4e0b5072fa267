"""How the programs say who they are to a real server, and how they make sure of the server."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.components import CONTROLLERS, NAMESPACE, SCHEDULER, Components
from tests.cluster.controlplane import APISERVER, ControlPlane
from tests.cluster.pki import Authority
from tests.cluster.processes import wait_until
from tests.support import kubeconfigs

ALONE = "--leader-elect=false"


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> ControlPlane:
    control_plane.add_nodes(1)
    return control_plane


@pytest.fixture
def programs(plane: ControlPlane) -> Iterator[Components]:
    with Components(plane) as components:
        yield components


def test_tokens_are_rotated_under_running_programs(plane: ControlPlane, programs: Components) -> None:
    # Without Leases: a server that takes longer than ten seconds to come back would cost them.
    for part in (CONTROLLERS, SCHEDULER):
        programs.start(part, ALONE)
    for component in programs.running:
        component.wait_ready()
    _run_a_job(plane, "before")
    for part in (CONTROLLERS, SCHEDULER):
        # Whoever held a token of the old account is nobody now.
        _recreate_account(plane, part)
        plane.write_token(NAMESPACE, f"vcbatch-{part}", plane.folder / f"{NAMESPACE}-vcbatch-{part}.token")
    # Every watch begins anew, with the token of that moment.
    plane.programs[APISERVER].restart()
    plane.wait_ready()
    _run_a_job(plane, "after")
    for component in programs.running:
        component.wait_ready()


def test_a_program_in_a_pod_finds_everything_itself(plane: ControlPlane, programs: Components) -> None:
    account = plane.folder / "serviceaccount"
    account.mkdir()
    plane.write_token(NAMESPACE, f"vcbatch-{SCHEDULER}", account / "token")
    (account / "ca.crt").write_bytes(plane.authority.certificate.read_bytes())
    (account / "namespace").write_text(NAMESPACE)
    programs.start(SCHEDULER, ALONE, in_cluster=account).wait_ready()


def test_a_client_certificate_says_who_it_is(plane: ControlPlane, programs: Components) -> None:
    user = plane.user("robot")
    plane.must_kubectl("create", "clusterrolebinding", "robot", f"--clusterrole=vcbatch-{SCHEDULER}", "--user=robot")
    programs.start(SCHEDULER, ALONE, kubeconfig=user).wait_ready()


def test_a_context_is_chosen_by_name(plane: ControlPlane, programs: Components) -> None:
    config = _config(programs.kubeconfig(SCHEDULER))
    config["clusters"].append({"name": "gone", "cluster": {"server": "https://127.0.0.1:1"}})
    config["contexts"].append({"name": "gone", "context": {"cluster": "gone"}})
    config["current-context"] = "gone"
    path = _write(plane, "contexts", config)
    programs.start(SCHEDULER, ALONE, "--context", "testbed", kubeconfig=path).wait_ready()
    said = _refused(programs, path, "--context", "other")
    assert "context 'other' doesn't exist (known: gone, testbed)" in said


def test_a_server_of_another_authority_is_refused(plane: ControlPlane, programs: Components) -> None:
    config = _config(programs.kubeconfig(SCHEDULER))
    config["clusters"][0]["cluster"]["certificate-authority"] = str(Authority(plane.folder / "others").certificate)
    said = _refused(programs, _write(plane, "wrong-authority", config))
    assert f"the certificate of {plane.server} is refused" in said
    assert "Traceback" not in said


def test_a_server_has_to_have_the_name_that_is_asked_for(plane: ControlPlane, programs: Components) -> None:
    config = _config(programs.kubeconfig(SCHEDULER))
    cluster = config["clusters"][0]["cluster"]
    cluster["tls-server-name"] = "kubernetes.default.svc"
    programs.start(SCHEDULER, ALONE, kubeconfig=_write(plane, "right-name", config)).wait_ready()
    cluster["tls-server-name"] = "kubernetes.example.org"
    said = _refused(programs, _write(plane, "wrong-name", config))
    assert "refused" in said
    assert "'kubernetes.example.org'" in said


def test_a_credential_plugin_is_asked_again_once_its_token_is_refused(
    plane: ControlPlane, programs: Components
) -> None:
    token = plane.folder / "plugin.token"
    plane.write_token(NAMESPACE, f"vcbatch-{SCHEDULER}", token)
    plugin = plane.folder / "plugin.py"
    plugin.write_text(
        "import json, pathlib, sys\n"
        f"token = pathlib.Path({str(token)!r}).read_text()\n"
        'print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",'
        ' "status": {"token": token}}))\n'
    )
    config = _config(programs.kubeconfig(SCHEDULER))
    config["users"][0]["user"] = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": [str(plugin)],
            "interactiveMode": "Never",
        }
    }
    scheduler = programs.start(SCHEDULER, kubeconfig=_write(plane, "plugin", config)).wait_ready()
    _recreate_account(plane, SCHEDULER)
    plane.write_token(NAMESPACE, f"vcbatch-{SCHEDULER}", token)
    before = _renewed(plane)
    wait_until("the Lease is renewed with the new token", lambda: _renewed(plane) > before)
    scheduler.program.check()


def _renewed(plane: ControlPlane) -> str:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/vcbatch-{SCHEDULER}"
    return str(plane.call("GET", path)["spec"]["renewTime"])


def _recreate_account(plane: ControlPlane, part: str) -> None:
    account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
    plane.call("DELETE", f"{account}/vcbatch-{part}")
    plane.call("POST", account, {"metadata": {"name": f"vcbatch-{part}"}})


def _refused(programs: Components, kubeconfig: Path, *flags: str) -> str:
    """What a scheduler says that ends at once with status 1."""
    refused = programs.start(SCHEDULER, ALONE, *flags, replica=kubeconfig.stem, kubeconfig=kubeconfig)
    assert refused.program.wait_ended() == 1
    return refused.program.said()


def _config(path: Path) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load(path.read_text())
    return config


def _write(plane: ControlPlane, name: str, config: dict[str, Any]) -> Path:
    return kubeconfigs.write(plane.folder / f"{name}.kubeconfig", config)


def _run_a_job(plane: ControlPlane, name: str) -> None:
    container = {"name": "c", "image": "busybox", "command": ["sh", "-c", "exit 0"]}
    task = {"name": "w", "replicas": 2, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"schedulerName": "volcano", "queue": "default", "minAvailable": 2, "tasks": [task]},
    }
    plane.must_kubectl("create", "-f", "-", stdin=json.dumps(job))
    path = f"/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs/{name}"
    wait_until(
        f"{name} is Completed",
        lambda: (plane.call("GET", path).get("status") or {}).get("state", {}).get("phase") == "Completed",
    )
