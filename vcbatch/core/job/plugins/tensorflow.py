"""tensorflow: `TF_CONFIG`, from which `tf.distribute` builds its cluster."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from vcbatch.api import names
from vcbatch.api.flags import Flags
from vcbatch.core.job.plan import Plan, Task
from vcbatch.core.job.plugins.framework import Child, add_env, containers
from vcbatch.core.job.plugins.hosts import hosts
from vcbatch.core.machine import Json

_ROLES: Final = ("ps", "worker", "chief", "evaluator")


class TensorflowPlugin:
    """The same cluster for all pods, with the task type and index of each pod. A job of one pod needs none."""

    def __init__(self, plan: Plan, flags: Flags) -> None:
        self._alone = len(plan.tasks) == 1 and plan.replicas == 1
        port = flags.number("port")
        cluster: dict[str, list[str]] = {}
        self._roles: dict[str, str] = {}
        for role in _ROLES:
            task = plan.tasks.get(flags.text(role))
            if task is None:
                continue
            self._roles.setdefault(task.name, role)
            if task.replicas:
                cluster[role] = [f"{host}:{port}" for host in hosts(plan, task)]
        # Encoded once: with a thousand hosts it is the largest part of the pod.
        self._cluster = _encode(cluster)

    def children(self) -> Sequence[Child]:
        return ()

    def change_pod(self, pod: Json, *, task: Task, index: int) -> None:
        if self._alone:
            return
        place = _encode({"type": self._roles.get(task.name, task.name), "index": index})
        entry = {"name": names.ENV_TF_CONFIG, "value": f'{{"cluster":{self._cluster},"task":{place}}}'}
        for container in containers(pod, init=False):
            add_env(container, dict(entry))


def _encode(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
