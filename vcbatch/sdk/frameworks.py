"""The arguments of the job plugins that set up frameworks, for `Job.plugins`.

Each function returns one plugin with its arguments; join several with `|`. Arguments that are None get the plugin's own
default.
"""

from __future__ import annotations

from vcbatch.api.names import Plugin

Plugins = dict[str, tuple[str, ...]]


def pytorch(*, master: str | None = None, worker: str | None = None, port: int | None = None) -> Plugins:
    """Sets `MASTER_ADDR`, `MASTER_PORT`, `WORLD_SIZE` and `RANK`, the environment of torch.distributed.

    `master` and `worker` are the names of tasks, `port` is the master's.
    """
    return _plugin(Plugin.PYTORCH, {"master": master, "worker": worker, "port": port})


def tensorflow(
    *,
    ps: str | None = None,
    worker: str | None = None,
    chief: str | None = None,
    evaluator: str | None = None,
    port: int | None = None,
) -> Plugins:
    """Sets `TF_CONFIG`, from which tf.distribute builds its cluster.

    `ps`, `worker`, `chief` and `evaluator` are the names of tasks, `port` is that of every pod.
    """
    return _plugin(
        Plugin.TENSORFLOW, {"ps": ps, "worker": worker, "chief": chief, "evaluator": evaluator, "port": port}
    )


def mpi(*, master: str | None = None, worker: str | None = None, port: int | None = None) -> Plugins:
    """Sets `MPI_HOST` for the launcher, which logs in to the workers by ssh.

    `master` and `worker` are the names of tasks, `port` is that of ssh.
    """
    return _plugin(Plugin.MPI, {"master": master, "worker": worker, "port": port})


def ray(
    *,
    head: str | None = None,
    worker: str | None = None,
    port: int | None = None,
    dashboard_port: int | None = None,
    client_port: int | None = None,
) -> Plugins:
    """Starts a Ray cluster of a head and workers, with a Service for the head.

    `head` and `worker` are the names of tasks; the ports are the head's.
    """
    flags = {
        "head": head,
        "worker": worker,
        "port": port,
        "dashboardPort": dashboard_port,
        "clientPort": client_port,
    }
    return _plugin(Plugin.RAY, flags)


def env() -> Plugins:
    """Sets `VC_TASK_INDEX` in every pod."""
    return _plugin(Plugin.ENV, {})


def svc() -> Plugins:
    """Gives the pods host names, and lists of them in files and in the environment."""
    return _plugin(Plugin.SVC, {})


def ssh() -> Plugins:
    """Gives the pods keys with which they log in to each other."""
    return _plugin(Plugin.SSH, {})


def _plugin(plugin: Plugin, flags: dict[str, str | int | None]) -> Plugins:
    return {plugin.value: tuple(f"--{flag}={value}" for flag, value in flags.items() if value is not None)}
