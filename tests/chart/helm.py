"""The Helm client of the test bed, and the chart as it renders it.

`python -m tests.chart.helm` prints the client's path.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.binaries.build import BuildError, build, cache, go
from tests.support.lacking import required

Json = dict[str, Any]

CHART = Path(__file__).parents[2] / "helm/vcbatch"
RELEASE, NAMESPACE = "vcbatch", "volcano-system"


def unavailable() -> str:
    """Why there is no Helm client here; empty where there is one, or has to be (`CI=true`)."""
    if required() or cache("helm").complete or go() is not None:
        return ""
    return "chart tests skipped: helm isn't built, and there is no Go toolchain (PATH, /usr/local/go/bin)"


@functools.cache
def client() -> Path:
    """The Helm client, built where it isn't there yet. Raises BuildError."""
    return build("helm").path("helm")


def run(
    *arguments: str, stdin: str | None = None, kubeconfig: Path | None = None, timeout: float = 300.0
) -> subprocess.CompletedProcess[str]:
    """Run it with a home of its own: nothing of this machine's user is read or written."""
    with tempfile.TemporaryDirectory(prefix="vcbatch-helm-") as home:
        environment = {
            "HOME": home, "PATH": os.environ["PATH"], "KUBECONFIG": str(kubeconfig or "/dev/null"),
            "HELM_CACHE_HOME": home, "HELM_CONFIG_HOME": home, "HELM_DATA_HOME": home,
        }  # fmt: skip
        return subprocess.run(
            [str(client()), *arguments],
            input=stdin, capture_output=True, text=True, timeout=timeout, check=False, env=environment,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rendered:
    """What `helm template` made, or why it refused."""

    objects: Sequence[Json]
    text: str
    error: str

    def of(self, kind: str, name: str = "") -> list[Json]:
        """The objects of that kind, of that name where one is given."""
        return [item for item in self.objects if item["kind"] == kind and name in ("", item["metadata"]["name"])]

    def one(self, kind: str, name: str) -> Json:
        """The object; there has to be exactly one."""
        found = self.of(kind, name)
        assert len(found) == 1, f"{len(found)} of {kind} {name}: {sorted(self.names(kind))}"
        return found[0]

    def names(self, kind: str) -> set[str]:
        return {item["metadata"]["name"] for item in self.of(kind)}

    def container(self, deployment: str) -> Json:
        """The only container of a Deployment."""
        (container,) = self.one("Deployment", deployment)["spec"]["template"]["spec"]["containers"]
        return dict(container)

    def arguments(self, deployment: str) -> list[str]:
        return list(self.container(deployment)["args"])


def render(
    values: Mapping[str, Any] | None = None, *flags: str, namespace: str = NAMESPACE, crds: bool = False
) -> Rendered:
    """The chart with these values; without CRDs, which take longest, where they aren't asked for."""
    given = {**(values or {}), **({} if crds else {"crds": {"install": False, **(values or {}).get("crds", {})}})}
    return _rendered(json.dumps(given, sort_keys=True), flags, namespace)


@functools.cache
def _rendered(values: str, flags: tuple[str, ...], namespace: str) -> Rendered:
    done = run("template", RELEASE, str(CHART), "--namespace", namespace, "--values", "-", *flags, stdin=values)
    if done.returncode != 0:
        assert not done.stdout, done.stdout
        return Rendered([], "", done.stderr)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    objects = [item for item in yaml.load_all(done.stdout, Loader=loader) if item]
    return Rendered(objects, done.stdout, "")


def main() -> int:
    """Print the path, having built the client."""
    if reason := unavailable():
        sys.stderr.write(f"{reason}\n")
        return 1
    try:
        sys.stdout.write(f"{client()}\n")
    except BuildError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
