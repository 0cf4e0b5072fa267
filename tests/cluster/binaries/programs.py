"""The programs of the test bed: which Go module pins each, which package is built, and with which link flags."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent

KUBERNETES_VARIABLE = "VCBATCH_TESTBED_KUBERNETES"
"""Environment variable that chooses the Kubernetes minor version of the test bed."""
KUBERNETES_VERSIONS = ("1.36", "1.37")
"""The Kubernetes minor versions that are pinned here, the default first."""


class BuildError(Exception):
    """A program of the test bed could not be built; the message names it and the end of what the compiler said."""


@dataclass(frozen=True, slots=True)
class Module:
    """A Go module in a folder beside this file, whose `go.mod` and `go.sum` pin every version."""

    folder: str
    """Name of the folder."""
    pins: str
    """The dependency whose version is the version of what is built."""
    stamps: tuple[str, ...] = ()
    """Variables that the linker sets: `package.variable=value`, with `{version}`, `{major}`, `{minor}` of `pins`."""

    @property
    def version(self) -> str:
        """The pinned version, e.g. `v1.36.1`. Raises BuildError where `go.mod` has none."""
        text = (HERE / self.folder / "go.mod").read_text(encoding="utf-8")
        found = re.search(rf"^(?:require)?\s*{re.escape(self.pins)} (v\S+)", text, re.MULTILINE)
        if found is None:
            raise BuildError(f"{self.folder}/go.mod pins no version of {self.pins}")
        return found.group(1)

    @property
    def link_flags(self) -> str:
        """The value of the compiler's `-ldflags`."""
        major, minor, _ = self.version.removeprefix("v").split(".", 2)
        values = {"version": self.version, "major": major, "minor": minor}
        return " ".join(("-s -w", *(f"-X {stamp.format_map(values)}" for stamp in self.stamps)))


@dataclass(frozen=True, slots=True)
class Mend:
    """A fault of a pinned module that is built without it: in `file` of the module, `wrong` becomes `right`."""

    module: str
    file: str
    wrong: str
    right: str


@dataclass(frozen=True, slots=True)
class Program:
    """One program of the test bed: its name, the module that pins it and the package that is built."""

    name: str
    module: Module
    package: str
    mend: Mend | None = None


# Kubernetes reads its own version at run time (skew checks, feature gates, `serverVersion`), and a build from modules
# would otherwise call itself v0.0.0-master with an empty major and minor.
_KUBERNETES_STAMPS = tuple(
    f"{package}.{variable}={value}"
    for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    for variable, value in (
        ("gitVersion", "{version}"),
        ("gitMajor", "{major}"),
        ("gitMinor", "{minor}"),
        ("gitCommit", "0" * 40),
        ("gitTreeState", "clean"),
        ("buildDate", "1970-01-01T00:00:00Z"),
    )
)

# Without these Helm takes the cluster of `helm template` and `helm lint` for Kubernetes 1.20.
_HELM_STAMPS = (
    "helm.sh/helm/v3/internal/version.version={version}",
    "helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1",
    "helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=36",
    "helm.sh/helm/v3/pkg/lint/rules.k8sVersionMajor=1",
    "helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor=36",
)

# A watch that the server ended (as it does to those that read too slowly) is asked for from version 0, which means
# everything again: thousands of pods, during which the watch falls behind again, for as long as there is work. Tests
# live with that, and even by it: what kwok couldn't write while the server was away, it receives once more.
_RESUME_WATCHES = Mend(
    module="sigs.k8s.io/kwok",
    file="pkg/utils/informer/event.go",
    wrong="if !o.EnableListPager || o.EnableStreamWatch {",
    right='if opts.ResourceVersion == "" && (!o.EnableListPager || o.EnableStreamWatch) {',
)

_ETCD = Module("etcd", "go.etcd.io/etcd/server/v3")
_KWOK = Module("kwok", "sigs.k8s.io/kwok")
_HELM = Module("helm", "helm.sh/helm/v3", _HELM_STAMPS)
_COREDNS = Module("coredns", "github.com/coredns/coredns")


def kubernetes_version(environment: Mapping[str, str] = os.environ) -> str:
    """The chosen Kubernetes minor version, e.g. `1.36`. Raises BuildError for one that isn't pinned here."""
    chosen = environment.get(KUBERNETES_VARIABLE) or KUBERNETES_VERSIONS[0]
    if chosen not in KUBERNETES_VERSIONS:
        raise BuildError(f"{KUBERNETES_VARIABLE}={chosen}: the test bed knows {', '.join(KUBERNETES_VERSIONS)}")
    return chosen


CONTROL_PLANE = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubectl",
    "kwok",
)
"""What a control plane with simulated kubelets consists of."""
KWOK_RESUMING = "kwok-resuming"
"""kwok for measurements, whose watches go on where they ended."""
NODES = ("kubelet", "kube-proxy", "coredns")
"""What real nodes need beside it."""
HELM = "helm"
_OF_KUBERNETES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kubelet", "kube-proxy")


def programs() -> dict[str, Program]:
    """Every program by its name, with the chosen version of Kubernetes. Raises BuildError for an unknown version."""
    kubernetes = Module(f"kubernetes-{kubernetes_version()}", "k8s.io/kubernetes", _KUBERNETES_STAMPS)
    kwok = "sigs.k8s.io/kwok/cmd/kwok"
    known = (
        Program("etcd", _ETCD, "go.etcd.io/etcd/server/v3"),
        *(Program(name, kubernetes, f"k8s.io/kubernetes/cmd/{name}") for name in _OF_KUBERNETES),
        Program("kwok", _KWOK, kwok),
        Program(KWOK_RESUMING, _KWOK, kwok, _RESUME_WATCHES),
        Program(HELM, _HELM, "helm.sh/helm/v3/cmd/helm"),
        Program("coredns", _COREDNS, "."),
    )
    return {program.name: program for program in known}
