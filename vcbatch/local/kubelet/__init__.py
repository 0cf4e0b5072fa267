"""The process kubelet: runs a node's pods as processes of this machine.

`open_processes` detects which isolation this machine supports; `Kubelet` runs pods with it.
"""

from __future__ import annotations

import shutil
from collections.abc import Container
from pathlib import Path

from vcbatch.local.kubelet import unaccounted
from vcbatch.local.kubelet.config import KubeletConfig, inherited_environment
from vcbatch.local.kubelet.connections import (
    ConnectionRefusedHereError,
    Connections,
    ConnectionUnavailableError,
    TooManyConnectionsError,
)
from vcbatch.local.kubelet.kept_logs import KeptLogs, Retention
from vcbatch.local.kubelet.kubelet import Kubelet, LogUnavailableError, end_everything, end_record, memory_directory
from vcbatch.local.kubelet.logs import LogOptions
from vcbatch.local.kubelet.processes import LocalProcesses, probe
from vcbatch.local.kubelet.records import PodRecord, newest_version
from vcbatch.local.kubelet.sandbox import Mode, Namespaces, Sandbox, SandboxUnavailableError, choose

__all__ = [
    "ConnectionRefusedHereError",
    "ConnectionUnavailableError",
    "Connections",
    "KeptLogs",
    "Kubelet",
    "KubeletConfig",
    "LogOptions",
    "LogUnavailableError",
    "Mode",
    "Retention",
    "Sandbox",
    "SandboxUnavailableError",
    "TooManyConnectionsError",
    "end_containers",
    "end_unaccounted",
    "inherited_environment",
    "newest_version",
    "open_processes",
]


async def open_processes(mode: Mode | None = None) -> tuple[LocalProcesses, Sandbox]:
    """The best mode for running containers on this machine, or exactly the `mode` given; raises
    `SandboxUnavailableError` where that doesn't work."""
    sandbox = await choose(wanted=mode, probe=probe)
    return LocalProcesses(sandbox.namespaces), sandbox


async def end_unaccounted(root: Path, *, known: Container[str]) -> int:
    """End the containers of unaccounted pods and remove these pods from the list, except those that are `known` by
    their UID after all. Returns how many containers were still running."""
    processes = LocalProcesses(Namespaces())
    ended = 0
    try:
        for pod in unaccounted.read(root):
            if pod.uid not in known:
                record = PodRecord(root / "pods" / pod.uid)
                ended += await end_record(record, processes)
                shutil.rmtree(memory_directory(root) / pod.uid, ignore_errors=True)
                record.remove()
    finally:
        await processes.close()
    unaccounted.write(root, ())
    return ended


async def end_containers(root: Path) -> int:
    """End all processes that a kubelet with this root has left running, without a server, as `vcbatch down` does after
    a crash. Returns how many containers were still running."""
    processes = LocalProcesses(Namespaces())
    try:
        return await end_everything(root, processes)
    finally:
        await processes.close()
        shutil.rmtree(memory_directory(root), ignore_errors=True)
        unaccounted.write(root, ())
