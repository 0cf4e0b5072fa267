"""vcbatch's own programs on a test cluster: separate processes, separate identities, the rights that are shipped.

Every program runs as its service account with a token from a file, under the roles of `helm/vcbatch/files/rbac`, never
as the administrator.
"""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from tests.cluster.controlplane import REPOSITORY, ControlPlane, free_port
from tests.cluster.processes import Program, wait_until

NAMESPACE = "volcano-system"
CONTROLLERS, SCHEDULER, WEBHOOKS = "controllers", "scheduler", "webhooks"
RBAC = REPOSITORY / "helm/vcbatch/files/rbac"


class Component:
    """One running `vcbatch controllers` or `vcbatch scheduler`."""

    def __init__(self, program: Program, *, health: int, metrics: int) -> None:
        self.program = program
        self.health = f"http://127.0.0.1:{health}"
        self._metrics = f"http://127.0.0.1:{metrics}/metrics"

    def ready(self) -> bool:
        """What /readyz says; False where nothing answers."""
        try:
            with urllib.request.urlopen(f"{self.health}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.HTTPError, OSError):
            return False

    def wait_ready(self, timeout: float = 60.0) -> Self:
        def ready() -> bool:
            self.program.check()
            return self.ready()

        wait_until(f"{self.program.name} is ready", ready, timeout=timeout)
        return self

    def metrics(self) -> str:
        """What /metrics exposes."""
        with urllib.request.urlopen(self._metrics, timeout=5) as answer:
            return str(answer.read().decode())

    def leading(self) -> bool:
        """Whether this replica works, by its own metrics."""
        return "vcbatch_leading 1.0" in self.metrics()


class Components:
    """The identities of vcbatch on one control plane, and the programs started with them."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
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

    def kubeconfig(self, part: str) -> Path:
        """The kubeconfig of `vcbatch-PART`."""
        if part not in self._kubeconfigs:
            self._kubeconfigs[part] = self.plane.service_account(NAMESPACE, f"vcbatch-{part}")
        return self._kubeconfigs[part]

    def start(self, part: str, *flags: str, replica: str = "", kubeconfig: Path | None = None) -> Component:
        """Start `vcbatch PART`; it isn't waited for. `replica` keeps the logs of several apart."""
        health, metrics = free_port(), free_port()
        name = f"vcbatch-{part}{f'-{replica}' if replica else ''}"
        command = [
            sys.executable, "-m", "vcbatch", part, "--kubeconfig", str(kubeconfig or self.kubeconfig(part)),
            "--healthz-address", f"127.0.0.1:{health}", "--listen-address", f"127.0.0.1:{metrics}", *flags,
        ]  # fmt: skip
        program = Program(
            name, command, log=self.plane.logs / f"{name}.log", guard=self.plane.guard, cwd=self.plane.folder,
            env={"PYTHONPATH": str(REPOSITORY)},
        )  # fmt: skip
        component = Component(program, health=health, metrics=metrics)
        self.running.append(component)
        program.start()
        return component

    def start_all(self, *, scheduler: Sequence[str] = (), controllers: Sequence[str] = ()) -> None:
        """One of each, and return once they work."""
        self.start(CONTROLLERS, *controllers)
        self.start(SCHEDULER, *scheduler)
        for component in self.running:
            component.wait_ready()

    def stop(self) -> None:
        """SIGTERM to all, and wait."""
        for component in self.running:
            component.program.stop()
        self.running.clear()
