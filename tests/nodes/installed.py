"""vcbatch on the cluster as people install it: its image, its chart, a real Helm."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.cluster.controlplane import REPOSITORY
from tests.cluster.processes import wait_until
from tests.nodes.bed import Bed, Plane
from tests.nodes.namespace import Namespace, container, job, task

Json = dict[str, Any]

NAMESPACE = "volcano-system"
RELEASE = "vcbatch"
CHART = REPOSITORY / "helm/vcbatch"
CONTROLLERS, SCHEDULER, WEBHOOKS = "controllers", "scheduler", "webhooks"
COMPONENTS = (CONTROLLERS, SCHEDULER, WEBHOOKS)
_PATIENCE = 420
"""Seconds that a busy machine may take to replace all pods; a quiet one takes half a minute."""
WAIT = f"--timeout={_PATIENCE}s"


@dataclass(frozen=True, slots=True)
class Installed:
    """The release, and what tests do to it and ask about it."""

    bed: Bed
    image: str
    """The image's name on the nodes: `docker.io/library/vcbatch:test`."""

    @property
    def plane(self) -> Plane:
        return self.bed.plane

    # Helm

    def helm(self, *arguments: str, timeout: float = _PATIENCE + 60) -> str:
        """What Helm printed; it must succeed."""
        home = self.bed.folder / "helm"
        environment = {
            "PATH": os.defpath, "HOME": str(home), "HELM_CACHE_HOME": str(home / "cache"),
            "HELM_CONFIG_HOME": str(home / "config"), "HELM_DATA_HOME": str(home / "data"),
            "KUBECONFIG": str(self.plane.kubeconfig),
        }  # fmt: skip
        done = subprocess.run(
            [str(self.bed.binaries.path("helm")), "--namespace", NAMESPACE, *arguments],
            capture_output=True, text=True, check=False, timeout=timeout, env=environment,
        )  # fmt: skip
        assert done.returncode == 0, f"helm {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    def install(self) -> None:
        """Return once everything is available and admission is asked."""
        self.helm("install", RELEASE, str(CHART), "--create-namespace", "--wait", WAIT, *self._values())
        self.wait_admission()

    def upgrade(self, values: Mapping[str, str]) -> None:
        """Change values of the release; return once all pods are those of the new revision."""
        self.helm("upgrade", RELEASE, str(CHART), "--wait", WAIT, *self._values(values))

    def _values(self, more: Mapping[str, str] | None = None) -> list[str]:
        repository, _, tag = self.image.rpartition(":")
        values = {
            "image.repository": repository, "image.tag": tag, "image.pullPolicy": "Never",
            "networkPolicy.apiServerPorts": f"{{{self.plane.port}}}", **(more or {}),
        }  # fmt: skip
        return [argument for key, value in values.items() for argument in ("--set", f"{key}={value}")]

    # State

    def wait_available(self) -> None:
        """Return once every Deployment has all its replicas, in their newest revision."""
        for component in COMPONENTS:
            done = self.plane.kubectl("rollout", "status", f"deployment/vcbatch-{component}", "-n", NAMESPACE, WAIT,
                                      timeout=_PATIENCE + 60)  # fmt: skip
            assert done.returncode == 0, done.stderr

    def wait_admission(self) -> None:
        """Return once every webhook is registered, with the authority by which API servers trust it."""

        def trusted() -> bool:
            found = [each for kind in ("mutating", "validating") for each in self.configurations(kind)]
            bundles = [
                [webhook["clientConfig"].get("caBundle") for webhook in each.get("webhooks", ())] for each in found
            ]
            return bool(bundles) and all(inner and all(inner) for inner in bundles)

        wait_until("the webhooks are trusted", trusted, pause=0.2)

    def configurations(self, kind: str) -> list[Json]:
        """The webhook configurations of vcbatch, `mutating` or `validating`."""
        path = f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations"
        found = self.plane.call("GET", path)["items"]
        return [each for each in found if each["metadata"]["name"].startswith("volcano-admission-service")]

    def pods(self, component: str) -> list[Json]:
        """The pods of a component."""
        label = f"app.kubernetes.io/component%3D{component}"
        return list(self.plane.call("GET", f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector={label}")["items"])

    def lease(self, component: str) -> Json:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/vcbatch-{component}"
        return dict(self.plane.call("GET", path)["spec"])

    def leader(self, component: str) -> str:
        """The name of the pod that leads."""
        return str(self.lease(component).get("holderIdentity") or "").rsplit("_", 2)[0]

    def leader_node(self, component: str) -> str:
        """The node that it runs on; empty where nobody leads."""
        leader = self.leader(component)
        return next((pod["spec"]["nodeName"] for pod in self.pods(component) if pod["metadata"]["name"] == leader), "")

    def allow_ssh(self, namespace: str) -> None:
        """Let jobs of that namespace use the `ssh` plugin, which needs Secrets."""
        done = self.plane.kubectl(
            "create", "rolebinding", "vcbatch-ssh", "--namespace", namespace, "--clusterrole=vcbatch-ssh",
            f"--serviceaccount={NAMESPACE}:vcbatch-{CONTROLLERS}",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


@dataclass(slots=True)
class Client:
    """Somebody who submits a short job again and again, whatever happens to vcbatch meanwhile."""

    namespace: Namespace
    accepted: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    _end: threading.Event = field(default_factory=threading.Event)

    def _submit(self) -> None:
        number = 0
        while not self._end.is_set():
            name = f"short-{number}"
            try:
                self.namespace.submit(job(name, task("member", 1, container("true", cpu="10m", memory="8Mi"))))
                self.accepted.append(name)
            except (AssertionError, OSError) as error:
                self.refused.append(f"{name}: {error}")
            number += 1
            self._end.wait(2)

    @contextmanager
    def submitting(self) -> Iterator[None]:
        """Submit as long as this lasts, and at least once in it."""
        thread = threading.Thread(target=self._submit, name="client")
        thread.start()
        try:
            yield
        finally:
            self._end.set()
            thread.join()

    def wait_completed(self) -> None:
        """Return once all its jobs are Completed."""

        def left() -> list[str]:
            return [name for name in self.accepted if self.namespace.phase(name) != "Completed"]

        wait_until("the client's jobs are completed", lambda: not left(), timeout=180, pause=1)


@contextmanager
def without_leader(installed: Installed, component: str) -> Iterator[list[float]]:
    """Measure how long nobody led while this lasts, in seconds: the longest time between two renewals of the Lease
    beyond the usual one. The list has the figure when this is over."""
    seconds: list[float] = []
    longest, ended = 0.0, threading.Event()

    def watch() -> None:
        nonlocal longest
        last, since = "", time.monotonic()
        while not ended.wait(0.2):
            try:
                lease = installed.lease(component)
            except (AssertionError, OSError):
                continue
            now = time.monotonic()
            if lease.get("renewTime") != last and lease.get("holderIdentity"):
                last, since = lease.get("renewTime", ""), now
            longest = max(longest, now - since)

    thread = threading.Thread(target=watch, name=f"lease of {component}")
    thread.start()
    try:
        yield seconds
    finally:
        ended.set()
        thread.join()
        seconds.append(longest)


def path_of(namespace: str, kind: str = "pods") -> str:
    """The path that a recorder watches."""
    return f"/api/v1/namespaces/{namespace}/{kind}"
