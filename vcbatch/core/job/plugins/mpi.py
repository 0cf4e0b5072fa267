"""mpi: the launcher gets the hosts of the workers, and every pod opens the port that ssh listens on."""

from __future__ import annotations

from collections.abc import Sequence

from vcbatch.api import names
from vcbatch.api.flags import Flags
from vcbatch.core.job.plan import Plan, Task
from vcbatch.core.job.plugins.framework import Child, add_env, add_port, containers
from vcbatch.core.job.plugins.hosts import hosts
from vcbatch.core.machine import Json


class MpiPlugin:
    """`MPI_HOST` for the master task. Keys and host names come from ssh and svc, which admission adds to the job."""

    def __init__(self, plan: Plan, flags: Flags) -> None:
        self._port = flags.number("port")
        self._master = flags.text("master")
        worker = plan.tasks.get(flags.text("worker"))
        self._alone = worker is None
        self._hosts = ",".join(hosts(plan, worker)) if worker and worker.replicas else ""

    def children(self) -> Sequence[Child]:
        return ()

    def change_pod(self, pod: Json, *, task: Task, index: int) -> None:
        del index
        master = task.name == self._master
        if master and self._alone:  # there is no worker to log in to
            return
        for container in containers(pod, init=True):
            add_port(container, name=names.MPI_PORT_NAME, port=self._port)
            if master:
                add_env(container, {"name": names.ENV_MPI_HOST, "value": self._hosts})
