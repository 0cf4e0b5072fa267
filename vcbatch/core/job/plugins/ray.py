"""ray: a head and its workers as one Ray cluster, reachable through a Service."""

from __future__ import annotations

from collections.abc import Sequence

from vcbatch.api import names
from vcbatch.api.flags import Flags
from vcbatch.api.resources import SERVICES
from vcbatch.core.job.plan import Plan, Task
from vcbatch.core.job.plugins.framework import Child, add_port, containers
from vcbatch.core.job.plugins.hosts import hosts
from vcbatch.core.machine import Json


class RayPlugin:
    """The commands of the head's and the workers' containers start Ray; their own commands are replaced. A job without
    a head task is rejected at admission, and gets nothing here."""

    def __init__(self, plan: Plan, flags: Flags) -> None:
        self._plan = plan
        self._flags = flags
        self._head = plan.tasks.get(flags.text("head"))
        self._worker = flags.text("worker")
        self._ports = {
            names.RAY_GCS_PORT_NAME: flags.number("port"),
            names.RAY_DASHBOARD_PORT_NAME: flags.number("dashboardPort"),
            names.RAY_CLIENT_PORT_NAME: flags.number("clientPort"),
        }

    def children(self) -> Sequence[Child]:
        if self._head is None:
            return ()
        job = self._plan.job
        selector = {names.JOB_NAME: job.name, names.JOB_NAMESPACE: job.namespace, names.TASK_SPEC: self._head.name}
        ports = [
            {"name": name, "port": port, "protocol": "TCP", "targetPort": self._target(self._head, name, port)}
            for name, port in self._ports.items()
        ]
        return (Child(SERVICES, names.ray_head_service(job.name), {"spec": {"selector": selector, "ports": ports}}),)

    def change_pod(self, pod: Json, *, task: Task, index: int) -> None:
        del index
        if self._head is None:
            return
        if task.name == self._head.name:
            for container in _named(pod, self._flags.text("headContainer")):
                for name, port in self._ports.items():
                    add_port(container, name=name, port=port)
                container["command"] = ["sh", "-c", self._start_head()]
        elif task.name == self._worker:
            for container in _named(pod, self._flags.text("workerContainer")):
                container["command"] = ["sh", "-c", self._join(self._head)]

    def _target(self, head: Task, name: str, port: int) -> str | int:
        """The port of the head's container by its name, as in Volcano's. Where the user declared a port of that number
        or name, the plugin adds none, and the number is returned."""
        pod: Json = {"spec": head.spec.pod_spec}
        declared: list[Json] = [
            entry for container in containers(pod, init=False) for entry in container.get("ports") or ()
        ]
        theirs = any(entry.get("containerPort") == port or entry.get("name") == name for entry in declared)
        return name if _named(pod, self._flags.text("headContainer")) and not theirs else port

    def _start_head(self) -> str:
        port, dashboard, client = self._ports.values()
        return (
            f"ray start --head --block --dashboard-host=0.0.0.0 --port={port} --dashboard-port={dashboard}"
            f" --ray-client-server-port={client}"
        )

    def _join(self, head: Task) -> str:
        host = next(iter(hosts(self._plan, head)), "")
        return f"ray start --block --address={host}:{self._ports[names.RAY_GCS_PORT_NAME]}"


def _named(pod: Json, name: str) -> list[Json]:
    return [container for container in containers(pod, init=False) if container.get("name") == name]
