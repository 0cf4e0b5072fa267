"""The chart as Helm and Kubernetes judge it as a whole."""

from __future__ import annotations

import tarfile
from pathlib import Path

import kubernetes_validate
import pytest

from tests.chart.helm import CHART, render, run
from tests.chart.settings import SETTINGS

pytestmark = pytest.mark.usefixtures("helm")

VERSIONS = ("1.34", "1.35", "1.36", "1.37")
"""Of Kubernetes that are supported."""
_APIS = ("cert-manager.io/v1", "admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy")
_UNKNOWN = {"CustomResourceDefinition", "Certificate", "Issuer"}
"""Kinds of which the schemas of Kubernetes say nothing that can be checked here."""


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("settings", SETTINGS)
def test_everything_is_valid_in_each_version_of_kubernetes(settings: str, version: str) -> None:
    flags = ["--kube-version", f"{version}.0", *(flag for api in _APIS for flag in ("--api-versions", api))]
    made = render(SETTINGS[settings], *flags)
    assert not made.error, made.error
    checked = set[str]()
    for item in made.objects:
        if item["kind"] not in _UNKNOWN:
            kubernetes_validate.validate(item, version, strict=True)
            checked.add(item["kind"])
    assert {"Deployment", "NetworkPolicy", "PodDisruptionBudget", "ClusterRole", "Pod", "ServiceAccount"} <= checked


def test_lint() -> None:
    done = run("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_renders_the_same_as_the_folder(tmp_path: Path) -> None:
    done = run("package", str(CHART), "--destination", str(tmp_path))
    assert done.returncode == 0, done.stderr
    (package,) = tmp_path.glob("*.tgz")
    with tarfile.open(package) as archive:
        names = {name.removeprefix("vcbatch/") for name in archive.getnames()}
    ours = {str(path.relative_to(CHART)) for path in CHART.rglob("*") if path.is_file()}
    assert {name for name in ours if "__pycache__" not in name} <= names
    made = run("template", "vcbatch", str(package), "--namespace", "volcano-system")
    assert made.returncode == 0, made.stderr
    folder = run("template", "vcbatch", str(CHART), "--namespace", "volcano-system")
    assert folder.returncode == 0, folder.stderr
    assert made.stdout == folder.stdout


def test_a_release_fits_into_the_secret_that_helm_keeps_it_in() -> None:
    # Helm compresses the chart's files and what is rendered of them; a Secret holds 1 MiB.
    import base64
    import gzip
    import json

    files = {str(path): base64.b64encode(path.read_bytes()).decode() for path in CHART.rglob("*") if path.is_file()}
    kept = gzip.compress(json.dumps({"files": files, "manifest": render(crds=True).text}).encode())
    assert len(base64.b64encode(kept)) < 0.75 * 2**20
