"""This machine as a Node."""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from vcbatch._version import __version__
from vcbatch.api.names import (
    ARCHITECTURE_LABEL,
    CONTAINER_SANDBOX,
    GPU_RESOURCE,
    HOSTNAME_LABEL,
    KUBELET_MODE,
    NODE_LEASE_NAMESPACE,
    OS_LABEL,
)
from vcbatch.api.reasons import KubeletConditionReason
from vcbatch.api.resources import LEASES, NODES
from vcbatch.api.timestamps import format_micro_time, format_time
from vcbatch.interfaces.api import Api, ApiError, PatchKind
from vcbatch.interfaces.clock import Clock
from vcbatch.local.kubelet.config import KubeletConfig
from vcbatch.local.kubelet.devices import Gpu
from vcbatch.local.kubelet.sandbox import Sandbox

Json = dict[str, Any]

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "AMD64": "amd64"}


def available_cpus() -> list[int]:
    """The CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def machine_capacity(*, cpus: int, memory: int, disk: int, gpus: int, config: KubeletConfig) -> dict[str, str]:
    """The Node's capacity, with the configured overrides."""
    found = {
        "cpu": str(cpus),
        "memory": f"{memory // 1024}Ki",
        "ephemeral-storage": f"{disk // 1024}Ki",
        "pods": str(config.max_pods),
    }
    if gpus:
        found[GPU_RESOURCE] = str(gpus)
    return found | dict(config.capacity)


def total_memory() -> int:
    """The memory in bytes of this machine, or of the container that vcbatch runs in."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            limit = Path(path).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if limit.isdigit():
            total = min(total, int(limit))
    return total


def node_object(*, config: KubeletConfig, sandbox: Sandbox, gpus: list[Gpu]) -> Json:
    """The Node for registration, without its status."""
    architecture = _ARCHITECTURES.get(platform.machine(), platform.machine())
    system = platform.system().lower()
    labels = {
        HOSTNAME_LABEL: config.node_name,
        OS_LABEL: system,
        ARCHITECTURE_LABEL: architecture,
        KUBELET_MODE: str(sandbox.mode),
    }
    if gpus:
        labels[f"{GPU_RESOURCE}.product"] = "-".join(gpus[0].name.split())[:63]
        labels[f"{GPU_RESOURCE}.count"] = str(len(gpus))
        labels[f"{GPU_RESOURCE}.memory"] = str(gpus[0].memory_mib)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": config.node_name, "labels": labels | dict(config.labels)},
        "spec": {},
    }


def node_status(*, sandbox: Sandbox, capacity: Mapping[str, str], node_name: str, boot: str, now: str) -> Json:
    """The Node's status: ready, with its capacity and its isolation mode."""
    system = platform.system().lower()
    fine = (
        ("MemoryPressure", KubeletConditionReason.SUFFICIENT_MEMORY, "kubelet has sufficient memory available"),
        ("DiskPressure", KubeletConditionReason.NO_DISK_PRESSURE, "kubelet has no disk pressure"),
        ("PIDPressure", KubeletConditionReason.SUFFICIENT_PID, "kubelet has sufficient PID available"),
    )
    conditions = [_condition(kind, "False", reason, message, now) for kind, reason, message in fine]
    conditions += [
        _condition(CONTAINER_SANDBOX, "True", str(sandbox.mode), sandbox.message, now),
        _condition("Ready", "True", KubeletConditionReason.KUBELET_READY, "kubelet is posting ready status", now),
    ]
    return {
        "capacity": dict(capacity),
        "allocatable": dict(capacity),
        "conditions": conditions,
        "addresses": [
            {"type": "InternalIP", "address": "127.0.0.1"},
            {"type": "Hostname", "address": node_name},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
        "nodeInfo": {
            "machineID": "",
            "systemUUID": "",
            "bootID": boot,
            "kernelVersion": platform.release(),
            "osImage": platform.platform(terse=True),
            "containerRuntimeVersion": f"process://{__version__}",
            "kubeletVersion": f"v{__version__}",
            "kubeProxyVersion": "",
            "operatingSystem": system,
            "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
        },
    }


def _condition(kind: str, status: str, reason: str, message: str, now: str) -> Json:
    return {
        "type": kind,
        "status": status,
        "reason": str(reason),
        "message": message,
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }


def ready_condition(*, ready: bool, now: str, transition: bool) -> Json:
    """The condition Ready alone, for a heartbeat or the kubelet's end."""
    reason = KubeletConditionReason.KUBELET_READY if ready else KubeletConditionReason.KUBELET_NOT_READY
    message = "kubelet is posting ready status" if ready else "kubelet has stopped"
    condition = _condition("Ready", "True" if ready else "False", reason, message, now)
    if not transition:
        del condition["lastTransitionTime"]
    return condition


class NodeRegistration:
    """Maintains the Node object: created or updated at the start, marked not ready at the end."""

    def __init__(self, *, api: Api, clock: Clock, config: KubeletConfig, node: Json, status: Json) -> None:
        self._api = api
        self._clock = clock
        self._config = config
        self._node = node
        self._status = status

    async def register(self) -> None:
        """Create the Node, or update an existing one; retried until the server accepts it."""
        pause = 0.2
        while True:
            try:
                await self._register()
                return
            except ApiError as error:
                if not error.transient:
                    raise
                await self._clock.sleep(pause)
                pause = min(pause * 2, 10.0)

    async def _register(self) -> None:
        name = self._config.node_name
        try:
            await self._api.create(NODES, self._node)
        except ApiError as error:
            if not error.already_exists:
                raise
            labels = self._node["metadata"]["labels"]
            await self._api.patch(NODES, name, {"metadata": {"labels": labels}})
        await self._api.patch(NODES, name, {"status": self._status}, subresource="status", kind=PatchKind.STRATEGIC)
        await self._renew_lease()

    async def _renew_lease(self) -> None:
        """Renew the Lease that `kubectl describe node` shows (KEP-589), at the interval of the heartbeat."""
        name = self._config.node_name
        spec = {
            "holderIdentity": name,
            "leaseDurationSeconds": int(2 * self._config.heartbeat_seconds),
            "renewTime": format_micro_time(self._clock.now()),
        }
        lease = {"metadata": {"name": name, "namespace": NODE_LEASE_NAMESPACE}, "spec": spec}
        try:
            await self._api.patch(LEASES, name, {"spec": spec}, namespace=NODE_LEASE_NAMESPACE)
        except ApiError as error:
            if error.not_found:
                with suppress(ApiError):  # the node works without it
                    await self._api.create(LEASES, lease, namespace=NODE_LEASE_NAMESPACE)

    async def run(self) -> None:
        """Renew the heartbeat periodically, until cancelled."""
        while True:
            await self._clock.sleep(self._config.heartbeat_seconds)
            try:
                await self._write_ready(ready=True, transition=False)
                await self._renew_lease()
            except ApiError as error:
                if error.not_found:
                    await self.register()

    async def mark_stopped(self) -> None:
        """Report that the kubelet has stopped."""
        await asyncio.wait_for(self._write_ready(ready=False, transition=True), 5.0)

    async def _write_ready(self, *, ready: bool, transition: bool) -> None:
        now = format_time(self._clock.now())
        condition = ready_condition(ready=ready, now=now, transition=transition)
        patch = {"status": {"conditions": [condition]}}
        name = self._config.node_name
        await self._api.patch(NODES, name, patch, subresource="status", kind=PatchKind.STRATEGIC)
