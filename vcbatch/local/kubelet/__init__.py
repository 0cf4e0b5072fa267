"""The process kubelet: runs a node's pods as processes of this machine.

`open_processes` finds out what this machine allows; `Kubelet` runs pods with it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from vcbatch.local.kubelet.config import KubeletConfig, inherited_environment
from vcbatch.local.kubelet.connections import (
    ConnectionRefusedHereError,
    Connections,
    ConnectionUnavailableError,
    TooManyConnectionsError,
)
from vcbatch.local.kubelet.kubelet import Kubelet, LogUnavailableError, end_everything, memory_directory
from vcbatch.local.kubelet.logs import LogOptions
from vcbatch.local.kubelet.processes import LocalProcesses, probe
from vcbatch.local.kubelet.sandbox import Mode, Namespaces, Sandbox, SandboxUnavailableError, choose

__all__ = [
    "ConnectionRefusedHereError",
    "ConnectionUnavailableError",
    "Connections",
    "Kubelet",
    "KubeletConfig",
    "LogOptions",
    "LogUnavailableError",
    "Mode",
    "Sandbox",
    "SandboxUnavailableError",
    "TooManyConnectionsError",
    "end_containers",
    "inherited_environment",
    "open_processes",
]


async def open_processes(mode: Mode | None = None) -> tuple[LocalProcesses, Sandbox]:
    """The best way to run containers on this machine, or exactly the one that is asked for; raises
    `SandboxUnavailableError` where that doesn't work."""
    sandbox = await choose(wanted=mode, probe=probe)
    return LocalProcesses(sandbox.namespaces), sandbox


async def end_containers(root: Path) -> int:
    """End whatever a kubelet with this root has left running, without a server: what `vcbatch down` does after a
    crash. Returns how many containers were still running."""
    processes = LocalProcesses(Namespaces())
    try:
        return await end_everything(root, processes)
    finally:
        await processes.close()
        shutil.rmtree(memory_directory(root), ignore_errors=True)
