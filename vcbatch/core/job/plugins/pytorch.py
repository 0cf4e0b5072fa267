"""pytorch: the environment of torch.distributed (`env://`): MASTER_ADDR, MASTER_PORT, WORLD_SIZE, RANK."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vcbatch.api import names
from vcbatch.api.flags import Flags
from vcbatch.core.job.plan import Plan, Task
from vcbatch.core.job.plugins.framework import Child, add_env, add_port, containers, entries
from vcbatch.core.job.plugins.hosts import hosts
from vcbatch.core.job.plugins.master_wait import wait_container
from vcbatch.core.machine import Json


class PytorchPlugin:
    """Ranks count through the master task first, then the workers. Without a master task there is nothing to do."""

    def __init__(self, plan: Plan, flags: Flags) -> None:
        self._flags = flags
        self._master = plan.tasks.get(flags.text("master"))
        self._worker = plan.tasks.get(flags.text("worker"))
        self._address = next(iter(hosts(plan, self._master)), "") if self._master else ""
        if self._master and not self._address:  # no master pod (yet): the name that the first one will have
            self._address = f"{names.pod_name(plan.job.name, self._master.name, 0)}.{plan.job.name}"

    def children(self) -> Sequence[Child]:
        return ()

    def change_pod(self, pod: Json, *, task: Task, index: int) -> None:
        if self._master is None:
            return
        port = self._flags.number("port")
        masters, workers = self._master.replicas, self._worker.replicas if self._worker else 0
        env = {
            names.ENV_MASTER_ADDR: self._address,
            names.ENV_MASTER_PORT: str(port),
            names.ENV_WORLD_SIZE: str(masters + workers),
        }
        if task.name == self._master.name:
            env[names.ENV_RANK] = str(index)
        elif self._worker and task.name == self._worker.name:
            env[names.ENV_RANK] = str(masters + index)
        for container in containers(pod, init=False):
            add_port(container, name=names.PYTORCH_PORT_NAME, port=port)
            for name, value in env.items():
                add_env(container, {"name": name, "value": value})
        if self._worker and task.name == self._worker.name:
            self._wait_for_master(pod, {name: env[name] for name in (names.ENV_MASTER_ADDR, names.ENV_MASTER_PORT)})

    def _wait_for_master(self, pod: Json, master: Mapping[str, str]) -> None:
        if not self._flags.is_set("wait-master-enabled"):
            return
        present = entries(pod["spec"], "initContainers")
        if all(container.get("name") != names.WAIT_FOR_MASTER_CONTAINER for container in present):
            image, timeout = self._flags.text("wait-master-image"), self._flags.number("wait-master-timeout")
            present.append(wait_container(pod, image=image, timeout=timeout, defaults=master))
