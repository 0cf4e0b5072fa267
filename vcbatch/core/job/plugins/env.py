"""env: each container gets the index of its pod."""

from __future__ import annotations

from collections.abc import Sequence

from vcbatch.api import names
from vcbatch.api.flags import Flags
from vcbatch.core.job.plan import Plan, Task
from vcbatch.core.job.plugins.framework import Child, add_env, containers
from vcbatch.core.machine import Json


class EnvPlugin:
    """`VC_TASK_INDEX`, and `VK_TASK_INDEX` for programs older than Volcano."""

    def __init__(self, plan: Plan, flags: Flags) -> None:
        del plan, flags

    def children(self) -> Sequence[Child]:
        return ()

    def change_pod(self, pod: Json, *, task: Task, index: int) -> None:
        for container in containers(pod, init=True):
            for name in (names.ENV_TASK_INDEX_OLD, names.ENV_TASK_INDEX):
                add_env(container, {"name": name, "value": str(index)})
