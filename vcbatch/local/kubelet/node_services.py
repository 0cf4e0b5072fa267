"""The objects that all pod workers of one node share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vcbatch.api.resources import CONFIGMAPS, PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES, SECRETS
from vcbatch.hosting.supervise import Background
from vcbatch.interfaces.api import Api, get_or_none
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.processes import Processes
from vcbatch.interfaces.random import Random
from vcbatch.local.kubelet.config import KubeletConfig
from vcbatch.local.kubelet.devices import DeviceTable
from vcbatch.local.kubelet.events import EventRecorder
from vcbatch.local.kubelet.hosts import HostsFiles
from vcbatch.local.kubelet.informer import Informer
from vcbatch.local.kubelet.kept_logs import KeptLogs
from vcbatch.local.kubelet.ports import PortTable
from vcbatch.local.kubelet.sandbox import Sandbox
from vcbatch.local.kubelet.volumes import bound_volume, config_map_contents, secret_contents, volume_path

Json = dict[str, Any]

_RESOURCES = {"configmap": CONFIGMAPS, "secret": SECRETS}
_CONTENTS: dict[str, Callable[[Json], dict[str, bytes]]] = {
    "configmap": config_map_contents,
    "secret": secret_contents,
}


class ConfigObjects:
    """ConfigMaps and Secrets, watched from the first time that a pod reads one, and claims, read on demand."""

    def __init__(
        self,
        *,
        api: Api,
        clock: Clock,
        random: Random,
        changed: Callable[[str, str, str], None],
        background: Background,
    ) -> None:
        self._api = api
        self._background = background
        self._informers: dict[str, Informer] = {}
        for kind, resource in _RESOURCES.items():
            self._informers[kind] = Informer(
                api=api, clock=clock, random=random, resource=resource, changed=_reporter(kind, changed)
            )
        self._started: set[str] = set()

    async def fetch(self, kind: str, namespace: str, name: str) -> Mapping[str, bytes] | None:
        """The content of one object; None where it doesn't exist."""
        informer = self._informers[kind]
        if kind not in self._started:
            self._started.add(kind)
            self._background.keep(f"kubelet: {kind}s", informer.run)
        await informer.synced.wait()
        found = informer.find(namespace, name)
        if found is None:
            # The pod's watch may be ahead of this one: read it before reporting it as missing.
            found = await get_or_none(self._api, _RESOURCES[kind], name, namespace=namespace)
        return None if found is None else _CONTENTS[kind](found)

    async def claim_path(self, namespace: str, name: str) -> Path:
        """The path of a claim's volume on this machine. Raises `VolumeError` and `ConfigError`."""
        claim = await get_or_none(self._api, PERSISTENTVOLUMECLAIMS, name, namespace=namespace)
        volume = bound_volume(name, claim)
        return volume_path(name, await get_or_none(self._api, PERSISTENTVOLUMES, volume))


def _reporter(kind: str, changed: Callable[[str, str, str], None]) -> Callable[[Json | None, Json | None], None]:
    def report(old: Json | None, new: Json | None) -> None:
        metadata = (new or old or {})["metadata"]
        changed(kind, metadata["namespace"], metadata["name"])

    return report


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeServices:
    """The services that every pod worker of a node gets."""

    api: Api
    clock: Clock
    processes: Processes
    config: KubeletConfig
    sandbox: Sandbox
    events: EventRecorder
    hosts: HostsFiles
    ports: PortTable
    devices: DeviceTable
    objects: ConfigObjects
    starts: asyncio.Semaphore
    allocatable: Mapping[str, str]
    memory_directory: Path
    background: Background
    kept_logs: KeptLogs | None = None
    host_ip: str = "127.0.0.1"
