"""The job plugins: what `spec.plugins` adds to a job's pods and keeps beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from vcbatch.api.flags import PLUGIN_FLAGS, Flags, parse_flags
from vcbatch.api.names import Plugin
from vcbatch.core.job.plan import Plan
from vcbatch.core.job.plugins import env, hcclrank, mpi, pytorch, ray, ssh, svc, tensorflow
from vcbatch.core.job.plugins.framework import Child, JobPlugin

__all__ = ["KNOWN", "Child", "JobPlugin", "PluginSet", "load"]


KNOWN: Final[Mapping[Plugin, Callable[[Plan, Flags], JobPlugin]]] = {
    Plugin.ENV: env.EnvPlugin,
    Plugin.SVC: svc.SvcPlugin,
    Plugin.SSH: ssh.SshPlugin,
    Plugin.PYTORCH: pytorch.PytorchPlugin,
    Plugin.TENSORFLOW: tensorflow.TensorflowPlugin,
    Plugin.MPI: mpi.MpiPlugin,
    Plugin.RAY: ray.RayPlugin,
    Plugin.HCCLRANK: hcclrank.HcclRankPlugin,
}
"""In the order in which they are applied: Volcano's is random, which makes plugins that read each other's work fail
now and then."""


@dataclass(frozen=True, slots=True)
class PluginSet:
    """The plugins of one job in their fixed order, with what was wrong with their arguments."""

    plugins: Mapping[str, JobPlugin]
    faults: tuple[str, ...] = ()


def load(plan: Plan) -> PluginSet:
    """Make the plugins that the job asks for. A fault in the arguments isn't fatal (nor is it in Volcano): what was
    read before it counts, and the fault is reported."""
    given = plan.job.spec.plugins
    plugins: dict[str, JobPlugin] = {}
    faults: list[str] = []
    for name, make in KNOWN.items():
        if name not in given:
            continue
        flags = parse_flags(given[name], PLUGIN_FLAGS[name])
        if flags.fault:
            faults.append(f"plugin {name}: {flags.fault}")
        plugins[name] = make(plan, flags)
    return PluginSet(plugins, tuple(faults))
