"""vcbatch's own programs on a test cluster: separate processes, separate identities, the rights that are shipped.

Every program runs as its service account with a token from a file, under the roles of `helm/vcbatch/files/rbac`, never
as the administrator.
"""

from __future__ import annotations

import os
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.cluster import admission
from tests.cluster.controlplane import REPOSITORY, ControlPlane
from tests.cluster.processes import Program, wait_until
from tests.support.ports import free_port
from vcbatch.runtime.client.kubeconfig import SERVICE_ACCOUNT_VARIABLE

NAMESPACE = "volcano-system"
CONTROLLERS, SCHEDULER, WEBHOOKS = "controllers", "scheduler", "webhooks"
RBAC = REPOSITORY / "helm/vcbatch/files/rbac"


class Component:
    """One running `vcbatch controllers`, `vcbatch scheduler` or `vcbatch webhooks`."""

    def __init__(self, program: Program, *, health: int, metrics: int, port: int = 0) -> None:
        self.program = program
        self.port = port
        self.health = f"http://127.0.0.1:{health}"
        self._metrics = f"http://127.0.0.1:{metrics}/metrics"

    def alive(self) -> bool:
        """What /healthz says; False where nothing answers."""
        return self._good("healthz")

    def ready(self) -> bool:
        """What /readyz says; False where nothing answers."""
        return self._good("readyz")

    def _good(self, path: str) -> bool:
        try:
            with urllib.request.urlopen(f"{self.health}/{path}", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.HTTPError, OSError):
            return False

    def wait_ready(self, timeout: float = 120.0) -> Self:
        def ready() -> bool:
            self.program.check()
            return self.ready()

        wait_until(f"{self.program.name} is ready", ready, timeout=timeout)
        return self

    def metrics(self) -> str:
        """What /metrics exposes."""
        with urllib.request.urlopen(self._metrics, timeout=30) as answer:
            return str(answer.read().decode())

    def leading(self) -> bool:
        """Whether this replica works, by its own metrics."""
        return "vcbatch_leader 1.0" in self.metrics()


class Components:
    """The identities of vcbatch on one control plane, and the programs started with them."""

    def __init__(self, plane: ControlPlane, *, managed_certificates: bool = False) -> None:
        """`managed_certificates`: admission makes its own, as it does by default; else the test bed gives it some."""
        self.plane = plane
        self._managed = managed_certificates
        self.running: list[Component] = []
        self._kubeconfigs: dict[str, Path] = {}

    def __enter__(self) -> Self:
        self.install()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def install(self) -> None:
        """The namespace, a service account for each program, and the shipped roles bound to them."""
        done = self.plane.kubectl("create", "namespace", NAMESPACE)
        assert done.returncode == 0 or "AlreadyExists" in done.stderr, done.stderr
        self.plane.apply(RBAC)

    def allow_ssh(self, namespace: str) -> None:
        """Let jobs of that namespace use the `ssh` plugin, which needs Secrets."""
        done = self.plane.kubectl(
            "create", "rolebinding", "vcbatch-ssh", "--namespace", namespace, "--clusterrole=vcbatch-ssh",
            f"--serviceaccount={NAMESPACE}:vcbatch-{CONTROLLERS}",
        )  # fmt: skip
        assert done.returncode == 0 or "AlreadyExists" in done.stderr, done.stderr

    def kubeconfig(self, part: str) -> Path:
        """The kubeconfig of `vcbatch-PART`."""
        if part not in self._kubeconfigs:
            self._kubeconfigs[part] = self.plane.service_account(NAMESPACE, f"vcbatch-{part}")
        return self._kubeconfigs[part]

    def start(
        self,
        part: str,
        *flags: str,
        replica: str = "",
        kubeconfig: Path | None = None,
        in_cluster: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Component:
        """Start `vcbatch PART`; it isn't waited for. `replica` keeps the logs of several apart.

        With `in_cluster`, a folder as the kubelet mounts it for a service account, it finds everything as in a pod.
        A PYTHONPATH in `env` comes after the project's own.
        """
        health, metrics = free_port(), free_port()
        name = f"vcbatch-{part}{f'-{replica}' if replica else ''}"
        if part == WEBHOOKS:
            metrics, port = health, free_port()
            places = admission.serving_flags(self.plane, port=port, name=name, managed=self._managed)
        else:
            port, places = 0, ["--listen-address", f"127.0.0.1:{metrics}"]
        cluster = ["--kubeconfig", str(kubeconfig or self.kubeconfig(part))] if in_cluster is None else []
        command = [
            sys.executable,
            "-m",
            "vcbatch",
            part,
            *cluster,
            "--healthz-address",
            f"127.0.0.1:{health}",
            *places,
            *flags,
        ]
        environment = {**(env or {}), **(self._pod_environment(in_cluster) if in_cluster else {})}
        environment["PYTHONPATH"] = os.pathsep.join([str(REPOSITORY), environment.get("PYTHONPATH", "")])
        program = Program(
            name,
            command,
            log=self.plane.logs / f"{name}.log",
            guard=self.plane.guard,
            cwd=self.plane.folder,
            env=environment,
        )
        component = Component(program, health=health, metrics=metrics, port=port)
        self.running.append(component)
        program.start()
        return component

    def _pod_environment(self, account: Path) -> dict[str, str]:
        host, _, port = self.plane.server.removeprefix("https://").rpartition(":")
        return {
            "KUBERNETES_SERVICE_HOST": host,
            "KUBERNETES_SERVICE_PORT": port,
            SERVICE_ACCOUNT_VARIABLE: str(account),
            "KUBECONFIG": "",
            "HOME": str(account),
        }

    def start_all(self, *, scheduler: Sequence[str] = (), controllers: Sequence[str] = ()) -> None:
        """One of each, and return once they work. From then on the API server asks the admission service."""
        started = [self.start(WEBHOOKS), self.start(CONTROLLERS, *controllers), self.start(SCHEDULER, *scheduler)]
        started[0].wait_ready()
        self.install_admission(started[0])
        for component in self.running:
            component.wait_ready()

    def install_admission(self, webhooks: Component) -> None:
        """From now on the API server asks these; returns once it does."""
        admission.install(self.plane, port=webhooks.port, managed=self._managed)
        admission.wait_asked(self.plane, webhooks.metrics)

    def stop(self) -> None:
        """SIGTERM to all, and wait. Nobody is asked for admission any more."""
        if any(component.program.name.startswith("vcbatch-webhooks") for component in self.running):
            admission.remove(self.plane)
        for component in self.running:
            component.program.stop()
        self.running.clear()
