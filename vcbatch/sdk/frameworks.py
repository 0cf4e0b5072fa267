"""The arguments of the job plugins that set frameworks up, for `Job.plugins`.

Each function gives one plugin with its arguments; several are joined with `|`. What a function isn't told is left to
the plugin's own default.
"""

from __future__ import annotations

from vcbatch.api.names import Plugin

Plugins = dict[str, tuple[str, ...]]


def pytorch(*, master: str | None = None, worker: str | None = None, port: int | None = None) -> Plugins:
    """`MASTER_ADDR`, `MASTER_PORT`, `WORLD_SIZE` and `RANK`, which torch.distributed reads. `master` and `worker` name
    tasks."""
    return _plugin(Plugin.PYTORCH, {"master": master, "worker": worker, "port": port})


def tensorflow(
    *,
    ps: str | None = None,
    worker: str | None = None,
    chief: str | None = None,
    evaluator: str | None = None,
    port: int | None = None,
) -> Plugins:
    """`TF_CONFIG`, as tf.distribute reads it. The others name tasks."""
    return _plugin(
        Plugin.TENSORFLOW, {"ps": ps, "worker": worker, "chief": chief, "evaluator": evaluator, "port": port}
    )


def mpi(*, master: str | None = None, worker: str | None = None, port: int | None = None) -> Plugins:
    """`MPI_HOST` for the launcher, which logs in to the workers by ssh."""
    return _plugin(Plugin.MPI, {"master": master, "worker": worker, "port": port})


def ray(
    *,
    head: str | None = None,
    worker: str | None = None,
    port: int | None = None,
    dashboard_port: int | None = None,
    client_port: int | None = None,
) -> Plugins:
    """A Ray cluster of a head and workers."""
    flags = {
        "head": head,
        "worker": worker,
        "port": port,
        "dashboardPort": dashboard_port,
        "clientPort": client_port,
    }
    return _plugin(Plugin.RAY, flags)


def env() -> Plugins:
    """`VC_TASK_INDEX` in every pod."""
    return _plugin(Plugin.ENV, {})


def svc() -> Plugins:
    """Names for the pods, and lists of them in the environment."""
    return _plugin(Plugin.SVC, {})


def ssh() -> Plugins:
    """Keys with which the pods log in to each other."""
    return _plugin(Plugin.SSH, {})


def _plugin(plugin: Plugin, flags: dict[str, str | int | None]) -> Plugins:
    return {plugin.value: tuple(f"--{flag}={value}" for flag, value in flags.items() if value is not None)}
