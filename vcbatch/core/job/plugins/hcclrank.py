"""hcclrank: the rank that Huawei's collective communication library reads from an annotation."""

from __future__ import annotations

from collections.abc import Sequence

from vcbatch.api import names
from vcbatch.api.flags import Flags
from vcbatch.core.job.plan import Plan, Task
from vcbatch.core.job.plugins.framework import Child, containers
from vcbatch.core.machine import Json


class HcclRankPlugin:
    """A rank that a user or the pytorch plugin set has precedence; else masters come first, then workers."""

    def __init__(self, plan: Plan, flags: Flags) -> None:
        self._master, self._worker = flags.text("master"), flags.text("worker")
        master = plan.tasks.get(self._master)
        self._masters = master.replicas if master else 0

    def children(self) -> Sequence[Child]:
        return ()

    def change_pod(self, pod: Json, *, task: Task, index: int) -> None:
        annotations = pod["metadata"].setdefault("annotations", {})
        if annotations.get(names.HCCL_RANK_INDEX):
            return
        rank = _given(pod) or self._rank(task, index)
        if rank:
            annotations[names.HCCL_RANK_INDEX] = rank

    def _rank(self, task: Task, index: int) -> str:
        if task.name == self._master:
            return str(index)
        return str(self._masters + index) if task.name == self._worker else ""


def _given(pod: Json) -> str:
    """The value of the first `RANK` in a container's environment."""
    variables = (entry for container in containers(pod, init=False) for entry in container.get("env") or ())
    return next((entry.get("value") or "" for entry in variables if entry.get("name") == names.ENV_RANK), "")
