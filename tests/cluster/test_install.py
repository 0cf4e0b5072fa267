"""`vcbatch install` and `uninstall` on a real control plane. The pods of its Deployments run on simulated nodes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.binaries.build import Binaries
from tests.cluster.controlplane import REPOSITORY, ControlPlane
from tests.cluster.gangs import gang, submit
from vcbatch.api.resources import CRDS, DEPLOYMENTS, JOBS
from vcbatch.cli.inventory.read import VALIDATING_WEBHOOKS

Json = dict[str, Any]


@pytest.fixture
def plane(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster without CRDs: their deletion takes as long as it likes."""
    with ControlPlane(tmp_path_factory.mktemp("cluster"), binaries) as made:
        made.add_nodes(2)
        yield made


def vcbatch(plane: ControlPlane, *arguments: str, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "vcbatch", *arguments, "--kubeconfig", str(kubeconfig or plane.kubeconfig)],
        capture_output=True, text=True, check=False, timeout=300, cwd=plane.folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )  # fmt: skip


def changes(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """What became of each object."""
    assert done.returncode == 0, done.stdout + done.stderr
    return {words[0]: " ".join(words[1:]) for words in map(str.split, done.stdout.splitlines())}


def test_install_again_and_uninstall(plane: ControlPlane) -> None:
    first = changes(vcbatch(plane, "install", "--dry-run"))
    assert set(first.values()) == {"created (server dry run)"}
    assert plane.call("GET", CRDS.path())["items"] == []

    done = vcbatch(plane, "install", "--timeout", "3m")
    assert set(changes(done).values()) == {"created"}
    assert 'deployment "vcbatch-scheduler" successfully rolled out' in done.stderr
    assert changes(done).keys() == first.keys()

    assert set(changes(vcbatch(plane, "install")).values()) == {"unchanged"}
    one = changes(vcbatch(plane, "install", "--set", "replicas=1"))
    assert {key for key, value in one.items() if value == "configured"} == {
        "deployment.apps/vcbatch-controllers", "deployment.apps/vcbatch-scheduler", "deployment.apps/vcbatch-webhooks",
    }  # fmt: skip

    without = changes(vcbatch(plane, "install", "--set", "admission=none"))
    pruned = {name for name, value in without.items() if value == "pruned"}
    assert {"deployment.apps/vcbatch-webhooks", "service/volcano-admission-service"} <= pruned
    assert plane.call("GET", VALIDATING_WEBHOOKS.path())["items"] == []
    assert not [name for name in pruned if name.startswith(("customresourcedefinition", "namespace"))]

    elsewhere = vcbatch(plane, "install", "--namespace", "elsewhere", "--no-wait")
    assert elsewhere.returncode == 1
    assert "already installed in namespace volcano-system" in elsewhere.stderr

    submit(plane, gang("kept", 1, command="sleep inf"))
    removed = changes(vcbatch(plane, "uninstall"))
    assert set(removed.values()) == {"deleted"}
    assert not [name for name in removed if name.startswith(("customresourcedefinition", "namespace"))]
    assert plane.call("GET", JOBS.path(namespace="default", name="kept"))
    assert plane.call("GET", DEPLOYMENTS.path(namespace="volcano-system"))["items"] == []
    assert plane.call("GET", VALIDATING_WEBHOOKS.path())["items"] == []
    again = changes(vcbatch(plane, "install", "--no-wait"))
    assert {value for name, value in again.items() if name.startswith("customresource")} == {"unchanged"}


def test_fields_of_other_managers_are_named_and_nothing_is_changed(plane: ControlPlane) -> None:
    crd = REPOSITORY / "crds/queues.scheduling.volcano.sh.yaml"
    text = crd.read_text(encoding="utf-8").replace("shortNames: [q, queue-v1beta1]", "shortNames: [q, other]")
    plane.must_kubectl("apply", "--server-side", "--field-manager=helm", "-f", "-", stdin=text)
    refused = vcbatch(plane, "install", "--no-wait")
    assert refused.returncode == 1
    assert 'conflict with "helm"' in refused.stderr
    assert "--force-conflicts" in refused.stderr
    assert [one["metadata"]["name"] for one in plane.call("GET", CRDS.path())["items"]] == [
        "queues.scheduling.volcano.sh"
    ]
    forced = changes(vcbatch(plane, "install", "--no-wait", "--force-conflicts"))
    assert forced["customresourcedefinition.apiextensions.k8s.io/queues.scheduling.volcano.sh"] == "configured"


def test_a_user_without_rights_is_told_which_are_missing(plane: ControlPlane) -> None:
    refused = vcbatch(plane, "install", "--no-wait", kubeconfig=plane.user("eve"))
    assert refused.returncode == 1
    assert "nothing was changed" in refused.stderr.lower()
    assert "Traceback" not in refused.stderr
    assert "secret/volcano-admission-secret" in refused.stderr
    assert plane.call("GET", CRDS.path())["items"] == []
