"""How the programs of the test bed are built: what is missing, each module by one command, and nothing twice."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cluster.binaries.build import build, cache
from tests.cluster.binaries.programs import (
    HERE,
    KUBERNETES_VARIABLE,
    KUBERNETES_VERSIONS,
    BuildError,
    kubernetes_version,
)

_FAKE_GO = """#!/bin/sh
echo "$*" >> "$CALLS"
while [ "$1" != -o ]; do shift; done
to=$2
shift 2
case "$to" in
*/) for package in "$@"; do echo made > "$to$(basename "$package")"; done ;;
*) echo made > "$to" ;;
esac
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a compiler that makes files of a line was asked for; the cache is empty."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/go").write_text(_FAKE_GO)
    (tmp_path / "bin/go").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    monkeypatch.setenv("VCBATCH_TESTBED_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    (tmp_path / "calls").touch()
    return tmp_path / "calls"


def test_programs_of_a_module_are_built_together_and_those_of_others_apart(calls: Path) -> None:
    made = build("kubectl", "etcd", "kube-proxy", "helm")
    assert made.complete
    packages = [re.findall(r"\S+/cmd/\S+|\S+/server/v3$", call) for call in calls.read_text().splitlines()]
    assert packages == [
        ["k8s.io/kubernetes/cmd/kubectl", "k8s.io/kubernetes/cmd/kube-proxy"],
        ["go.etcd.io/etcd/server/v3"],
        ["helm.sh/helm/v3/cmd/helm"],
    ]


def test_only_what_is_missing_is_built(calls: Path) -> None:
    build("kubectl")
    before = cache("kubectl").path("kubectl").stat()
    build("kubectl", "kubelet")
    first, second = calls.read_text().splitlines()
    assert first.endswith("/cmd/kubectl") and second.endswith("/cmd/kubelet")
    assert cache("kubectl").path("kubectl").stat() == before
    build("kubelet", "kubectl")
    assert len(calls.read_text().splitlines()) == 2


def test_what_fails_is_told_with_the_compilers_words_and_leaves_nothing(calls: Path) -> None:
    (calls.parent / "bin/go").write_text("#!/bin/sh\necho no such package >&2; exit 1\n")
    with pytest.raises(BuildError, match=r"kubectl could not be built:\nno such package"):
        build("kubectl")
    assert [path.name for path in cache("kubectl").path("kubectl").parent.iterdir()] == [".lock"]


def test_a_version_of_kubernetes_that_is_not_pinned_is_refused() -> None:
    with pytest.raises(BuildError, match=rf"{KUBERNETES_VARIABLE}=1\.20: the test bed knows 1\.36, 1\.37"):
        kubernetes_version({KUBERNETES_VARIABLE: "1.20"})


def test_a_program_that_is_not_pinned_is_refused() -> None:
    with pytest.raises(BuildError, match="the test bed has no program kubeadm; it has etcd, "):
        build("kubeadm")


_PIN = re.compile(r"^\s*(?:require )?(\S+\.\S+/\S+) (v\d\S+)", re.MULTILINE)
_REPLACED = re.compile(r"^\s*(?:replace )?(\S+) => \S+ (v\S+)", re.MULTILINE)


def _pins(module: str) -> dict[str, str]:
    """The versions that a module is built with, the replaced ones last."""
    text = (HERE / module / "go.mod").read_text()
    return dict(_PIN.findall(text)) | dict(_REPLACED.findall(text))


@pytest.mark.parametrize("module", ["kwok", "coredns"])
def test_what_is_built_from_the_same_sources_is_compiled_once(module: str) -> None:
    kubernetes, own = _pins(f"kubernetes-{KUBERNETES_VERSIONS[0]}"), _pins(module)
    shared = kubernetes.keys() & own.keys()
    assert {"k8s.io/client-go", "golang.org/x/net", "google.golang.org/grpc"} <= shared
    assert {name: own[name] for name in shared} == {name: kubernetes[name] for name in shared}
