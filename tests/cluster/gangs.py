"""Gangs to submit to a control plane, and what is asked about them."""

from __future__ import annotations

from typing import Any

from tests.cluster.controlplane import ControlPlane, Json
from tests.cluster.processes import wait_until
from vcbatch.api.resources import JOBS


def gang(name: str, pods: int, *, command: str, cpu: str = "1") -> Json:
    """A job of one task whose pods all start together and run this shell command."""
    container = {
        "name": "main",
        "image": "none",
        "command": ["sh", "-c", command],
        "resources": {"requests": {"cpu": cpu}},
    }
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    task = {"name": "worker", "replicas": pods, "minAvailable": pods, "template": template}
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {"name": name},
        "spec": {
            "schedulerName": "volcano",
            "queue": "default",
            "minAvailable": pods,
            "maxRetry": 3,
            "tasks": [task],
        },
    }


def submit(plane: ControlPlane, job: Json, *, namespace: str = "default") -> None:
    plane.call("POST", JOBS.path(namespace=namespace), job)


def status(plane: ControlPlane, name: str, *, namespace: str = "default") -> Json:
    found: Any = plane.call("GET", JOBS.path(namespace=namespace, name=name))
    return found.get("status") or {}


def phase(plane: ControlPlane, name: str, *, namespace: str = "default") -> str:
    return str((status(plane, name, namespace=namespace).get("state") or {}).get("phase") or "")


def wait_phase(plane: ControlPlane, name: str, wanted: str, *, timeout: float = 120.0) -> None:
    wait_until(f"{name} is {wanted}", lambda: phase(plane, name) == wanted, timeout=timeout, pause=0.2)
