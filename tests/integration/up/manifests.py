"""Jobs for tests, as YAML that kubectl takes."""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]


def job(name: str, command: str, *, replicas: int = 1, cpu: str = "10m", **spec: Any) -> str:
    """A job with one task; `spec` is merged over it."""
    container = {"name": "main", "image": "any", "command": ["sh", "-c", command]}
    container["resources"] = {"requests": {"cpu": cpu}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    task = {"name": "w", "replicas": replicas, "template": template}
    body: Json = {"minAvailable": replicas, "tasks": [task], **spec}
    return json.dumps(
        {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": body}
    )
