"""The job plugins: what `spec.plugins` adds to a job's pods, and the objects that it creates for the job."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from vcbatch.api.flags import PLUGIN_FLAGS, Flags, Value, parse_flags
from vcbatch.api.names import Plugin
from vcbatch.core.job.plan import Plan, Task
from vcbatch.core.job.plugins import env, hcclrank, mpi, pytorch, ray, ssh, svc, tensorflow
from vcbatch.core.job.plugins.framework import Child, JobPlugin, containers
from vcbatch.core.machine import Json

__all__ = ["KNOWN", "Child", "Factory", "JobPlugin", "PluginFailedError", "PluginSet", "load", "register"]

Factory = Callable[[Plan, Flags], JobPlugin]

KNOWN: Final[dict[str, Factory]] = {
    Plugin.ENV: env.EnvPlugin,
    Plugin.SVC: svc.SvcPlugin,
    Plugin.SSH: ssh.SshPlugin,
    Plugin.PYTORCH: pytorch.PytorchPlugin,
    Plugin.TENSORFLOW: tensorflow.TensorflowPlugin,
    Plugin.MPI: mpi.MpiPlugin,
    Plugin.RAY: ray.RayPlugin,
    Plugin.HCCLRANK: hcclrank.HcclRankPlugin,
}
"""In the order in which they are applied: Volcano's is random, which makes plugins that read each other's changes fail
now and then. Users' plugins come last, by name."""

_NAME: Final = re.compile(r"[a-z]([a-z0-9-]{0,30}[a-z0-9])?", re.ASCII)


class PluginFailedError(Exception):
    """A plugin raised: no decision on the job is possible until the cause is fixed."""

    def __init__(self, name: str, error: Exception) -> None:
        super().__init__(f"plugin {name} failed: {type(error).__name__}: {error}")


def register(name: str, *, flags: Mapping[str, Value], make: Factory) -> None:
    """Add a user's plugin, once, before the first decision. Raises `ValueError` for a name that is invalid (it becomes
    a key of `status.controlledResources`) or in use, and for a flag whose default has another type."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"job plugin {name!r}: a name has small letters, digits and dashes, 32 at most")
    if name in KNOWN:
        raise ValueError(f"job plugin {name}: there is one of this name already")
    for flag, default in flags.items():
        if type(default) not in (bool, int, str):
            raise ValueError(
                f"job plugin {name}: the default of {flag} is {default!r}, want a boolean, integer or text"
            )
    PLUGIN_FLAGS[name] = dict(flags)
    KNOWN[name] = make


@dataclass(frozen=True, slots=True)
class PluginSet:
    """The plugins of one job in their fixed order, with the errors of their arguments. Exceptions of plugins are raised
    as `PluginFailedError`."""

    plugins: Mapping[str, JobPlugin]
    errors: tuple[str, ...] = ()

    def children(self) -> Iterator[Child]:
        """The objects that the plugins keep for the job."""
        for name, plugin in self.plugins.items():
            with _blaming(name):
                children: Sequence[Child] = plugin.children()
            yield from children

    def change_pod(self, pod: Json, *, task: Task, index: int) -> None:
        """Apply all plugins to a pod that is about to be created, in place. Variables that they add to a container
        precede those of its author, who may refer to them: Kubernetes expands `$(NAME)` only where NAME is defined
        earlier (volcano-sh/volcano#611)."""
        if not self.plugins:
            return
        written = {container.get("name"): _names(container) for container in containers(pod, init=True)}
        for name, plugin in self.plugins.items():
            with _blaming(name):
                plugin.change_pod(pod, task=task, index=index)
        with _blaming(", ".join(self.plugins)):
            for container in containers(pod, init=True):
                before = written.get(container.get("name"))
                if before:
                    # The sort is stable: the order among the added ones, and among the author's, is kept.
                    container["env"] = sorted(container["env"], key=lambda entry: entry.get("name") in before)


def load(plan: Plan) -> PluginSet:
    """Load the plugins that the job names. An error in the arguments isn't fatal (nor is it in Volcano): arguments
    before it count, and the error is reported."""
    given = plan.job.spec.plugins
    plugins: dict[str, JobPlugin] = {}
    errors: list[str] = []
    for name, make in KNOWN.items():
        if name not in given:
            continue
        flags = parse_flags(given[name], PLUGIN_FLAGS[name])
        if flags.error:
            errors.append(f"plugin {name}: {flags.error}")
        with _blaming(name):
            plugins[name] = make(plan, flags)
    return PluginSet(plugins, tuple(errors))


def _names(container: Json) -> frozenset[str]:
    return frozenset(entry.get("name", "") for entry in container.get("env") or ())


@contextmanager
def _blaming(name: str) -> Generator[None]:
    try:
        yield
    except Exception as error:
        raise PluginFailedError(name, error) from error
