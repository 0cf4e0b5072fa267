"""The variables of a submitting shell that its jobs on a local server get, as with `sbatch --export`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from vcbatch.api import names
from vcbatch.local.environments import Environments, SubmittedEnvironment

ALL: Final = "ALL"
NONE: Final = "NONE"

_RENDEZVOUS: Final = frozenset({
    "MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK",
    "GROUP_WORLD_SIZE", "ROLE_NAME", "ROLE_RANK", "ROLE_WORLD_SIZE", "NODE_RANK", "TF_CONFIG", "MPI_HOST",
    "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "JOB_COMPLETION_INDEX", "KUBERNETES_PORT", "VK_TASK_INDEX",
})  # fmt: skip
_OUTER_JOB: Final = (
    "VC_", "VCBATCH_", "TORCHELASTIC_", "PET_", "SLURM_", "SLURMD_", "SBATCH_", "SALLOC_", "SRUN_", "PBS_", "LSB_",
    "JSM_", "FLUX_", "OMPI_", "PMI_", "PMIX_", "PRTE_", "MV2_COMM_", "KUBERNETES_SERVICE_", "KUBERNETES_PORT_",
    "NSS_WRAPPER_",
)  # fmt: skip
"""Prefixes of the variables by which a program recognizes its job. In the job that it submits, they would make it join
the outer one, or wait for it."""
_PER_CONTAINER: Final = frozenset({
    "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "HOSTNAME", "PWD", "OLDPWD", "SHLVL", "_",
    "NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES",
})  # fmt: skip
"""Variables that describe the shell itself, or that the kubelet sets for each container."""
_PRELOAD: Final = "LD_PRELOAD"
_OWN_PRELOAD: Final = "libnss_wrapper"


class InvalidExport(ValueError):
    """An invalid value of `--export`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """`everything` is True for the whole environment; `named` are variables with their values, in addition to it or,
    without it, to those that the server passes to every container."""

    everything: bool = True
    named: Mapping[str, str] = field(default_factory=dict[str, str])

    @staticmethod
    def parse(text: str, environ: Mapping[str, str]) -> Export:
        """Parse `ALL`, `NONE`, or a list of `NAME`, `NAME=VALUE` and `ALL`; a name without a value has that of
        `environ`. Raises `InvalidExport`."""
        if text == NONE:
            return Export(everything=False)
        everything, named = False, dict[str, str]()
        for part in text.split(","):
            name, equals, value = part.partition("=")
            if part == ALL:
                everything = True
            elif part == NONE or not name:
                raise InvalidExport(f"invalid value {text!r}: must be ALL, NONE, or a list of NAME and NAME=VALUE")
            elif equals:
                named[name] = value
            elif name in environ:
                named[name] = environ[name]
            else:
                raise InvalidExport(f"{name} is not set in the shell: use {name}=VALUE")
        return Export(everything=everything, named=named)

    def environment(self, environ: Mapping[str, str], *, umask: int) -> SubmittedEnvironment:
        """The environment of the job. A named variable is always part of it, others not if they belong to an outer
        job, to the shell itself or to the allocation of devices."""
        found = _passed(environ) if self.everything else {}
        return SubmittedEnvironment(variables=found | dict(self.named), umask=umask, complete=self.everything)


def _passed(environ: Mapping[str, str]) -> dict[str, str]:
    found = {
        name: value
        for name, value in environ.items()
        if name not in _RENDEZVOUS and name not in _PER_CONTAINER and not name.startswith(_OUTER_JOB)
    }
    if _PRELOAD in found:
        # In mode nss the kubelet adds this library to the user's own; for each container with another hosts file.
        libraries = found.pop(_PRELOAD).replace(":", " ").split()
        if own := [path for path in libraries if not Path(path).name.startswith(_OWN_PRELOAD)]:
            found[_PRELOAD] = ":".join(own)
    return found


def with_environment(job: Mapping[str, Any], number: str) -> dict[str, Any]:
    """The job (a manifest), whose pods get the stored environment with this id."""
    annotation = {names.ENVIRONMENT: number}
    spec = job["spec"]
    tasks = [{**task, "template": _annotated(task["template"], annotation)} for task in spec["tasks"]]
    return {**_annotated(job, annotation), "spec": {**spec, "tasks": tasks}}


def _annotated(item: Mapping[str, Any], annotation: Mapping[str, str]) -> dict[str, Any]:
    metadata = item.get("metadata") or {}
    return {**item, "metadata": {**metadata, "annotations": {**(metadata.get("annotations") or {}), **annotation}}}


def store(export: Export, *, state_dir: Path, namespace: str) -> str:
    """Store the environment of this process for a job that is created in this namespace next; returns its id. Raises
    `OSError`."""
    environment = export.environment(os.environ, umask=_umask())
    return Environments.of(state_dir).write(environment, namespace=namespace)


def discard(number: str, *, state_dir: Path) -> None:
    """Remove an environment for which no job was created."""
    Environments.of(state_dir).remove(number)


def _umask() -> int:
    """The file mode creation mask of this process, read without setting it: other threads may create files."""
    with Path("/proc/self/status").open(encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    return 0o022
