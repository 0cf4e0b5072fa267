"""The hosts files of all pods of this node, updated when pods start, become ready and end."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vcbatch.hosting.supervise import pause
from vcbatch.interfaces.clock import Clock
from vcbatch.local.kubelet.names import Addresses, Host, PodName, Service, common_lines, hosts_file, pod_name

Json = dict[str, Any]
log = logging.getLogger(__name__)

_RETRY_SECONDS = 2.0
_SETTLE_SECONDS = 0.02  # a gang's pods start within milliseconds: their files are written once, not once per pod
_LOOPBACK = ("127.0.0.1\tlocalhost", "::1\tlocalhost ip6-localhost ip6-loopback")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    host: Host
    path: Path
    aliases: Sequence[Json]
    key: str


class HostsFiles:
    """The names and addresses of the pods. `mapped` adds IPv4-mapped lines (see `names.hosts_file`)."""

    def __init__(self, *, addresses: Addresses, clock: Clock, mapped: bool) -> None:
        self._addresses = addresses
        self._clock = clock
        self._mapped = mapped
        self._entries: dict[str, _Entry] = {}
        self._reserved: dict[str, dict[str, PodName]] = {}
        self._services: dict[str, Service] = {}
        self._owners: dict[str, str] = {}
        self._dirty = asyncio.Event()
        self._own_lines = _machine_lines()

    def join(self, pod: Json, path: Path, *, wanted: str | None = None) -> str:
        """Add a pod. Writes its hosts file at `path`, and returns its address.

        Raises:
            OSError: the file can't be written; the pod isn't added.
        """
        uid = pod["metadata"]["uid"]
        known = self._entries.get(uid)
        if known is not None:
            return known.host.address
        name = pod_name(pod)
        key = name.key if name.subdomain and self._owners.get(name.key) in (None, uid) else uid
        self._owners[key] = uid
        address = self._addresses.take(key, wanted=wanted)
        host = Host(name=name, address=address, labels=pod["metadata"].get("labels") or {})
        self._entries[uid] = _Entry(host=host, path=path, aliases=pod["spec"].get("hostAliases") or (), key=key)
        try:
            self.write(uid)
        except BaseException:
            self.leave(uid)
            raise
        self._dirty.set()
        return address

    def reserve(self, group: str, names: Mapping[str, PodName]) -> None:
        """Reserve names of peers that a gang's environment refers to: they resolve before their pods are here."""
        mine = self._reserved.setdefault(group, {})
        fresh = {key: name for key, name in names.items() if key not in mine}
        if fresh:
            mine |= fresh
            self._dirty.set()

    def address_of(self, name: PodName) -> str:
        """The address that a pod of this name has or will have."""
        return self._addresses.take(name.key)

    def describe(self, pod: Json, *, ready: bool) -> None:
        """Record what Services select pods by: the pod's labels, and whether it is ready."""
        uid = pod["metadata"]["uid"]
        entry = self._entries.get(uid)
        if entry is None:
            return
        host = replace(entry.host, labels=pod["metadata"].get("labels") or {}, ready=ready)
        if host == entry.host:
            return
        self._entries[uid] = replace(entry, host=host)
        if self._services:
            self._dirty.set()

    def leave(self, uid: str) -> None:
        """Remove a pod that has ended or was deleted. Its address stays with a name that is still reserved."""
        entry = self._entries.pop(uid, None)
        if entry is None:
            return
        if self._owners.pop(entry.key, None) and not self._is_reserved(entry.key):
            self._addresses.release(entry.key)
        self._dirty.set()

    def release(self, group: str) -> None:
        """The gang has no pods here any more: release its reserved names."""
        for key in self._reserved.pop(group, {}):
            if key not in self._owners and not self._is_reserved(key):
                self._addresses.release(key)

    def set_service(self, key: str, service: Service | None) -> None:
        before = self._services.get(key)
        if service is None:
            self._services.pop(key, None)
        else:
            self._services[key] = service
        if before != service:
            self._dirty.set()

    async def run(self) -> None:
        """Rewrite the files after changes, until cancelled. The first time all are written: an earlier run may have
        failed before it wrote them."""
        self._dirty.set()
        while True:
            await self._dirty.wait()
            await self._clock.sleep(_SETTLE_SECONDS)
            self._dirty.clear()
            if not await self._write_all():
                await pause(self._clock, _RETRY_SECONDS, woken=self._dirty)
                self._dirty.set()

    async def _write_all(self) -> bool:
        """Write every file that has changed; returns False where some couldn't be written."""
        common: dict[str, Sequence[str]] = {}
        unwritten: list[str] = []
        for uid in list(self._entries):
            # Pods are added, changed and removed during the awaits of this loop.
            entry = self._entries.get(uid)
            if entry is None:
                continue
            namespace = entry.host.name.namespace
            if namespace not in common:
                common[namespace] = self._common(namespace)
            try:
                self._write(entry, common[namespace])
            except OSError as error:
                unwritten.append(f"{entry.path}: {error.strerror or error}")
            await asyncio.sleep(0)
        if unwritten:
            log.warning("%d hosts files can't be written, retrying: %s", len(unwritten), unwritten[0])
        return not unwritten

    def write(self, uid: str) -> None:
        """Update one pod's file now."""
        entry = self._entries[uid]
        self._write(entry, self._common(entry.host.name.namespace))

    def _is_reserved(self, key: str) -> bool:
        return any(key in names for names in self._reserved.values())

    def _common(self, namespace: str) -> list[str]:
        hosts = [entry.host for entry in self._entries.values()]
        present = {host.name.key for host in hosts}
        for names in self._reserved.values():
            hosts += [
                Host(name=name, address=self._addresses.take(key)) for key, name in names.items() if key not in present
            ]
        return common_lines(namespace=namespace, hosts=hosts, services=self._services.values())

    def _write(self, entry: _Entry, common: Sequence[str]) -> None:
        text = hosts_file(
            own=entry.host.name,
            address=entry.host.address,
            common=common,
            host_lines=self._own_lines,
            aliases=entry.aliases,
            mapped=self._mapped,
        )
        write_in_place(entry.path, text.encode())


def write_in_place(path: Path, data: bytes) -> None:
    """Replace a file's content without replacing the file, which containers have mounted. A reader sees the old or the
    new lines, never a truncated line: the rest of a longer file is overwritten with blanks by the same write."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        size = os.fstat(descriptor).st_size
        if size == len(data) and os.pread(descriptor, size, 0) == data:
            return
        os.pwrite(descriptor, data + b"\n" * max(0, size - len(data)), 0)
        os.ftruncate(descriptor, len(data))
    finally:
        os.close(descriptor)


def _machine_lines() -> list[str]:
    """The lines of this machine's own hosts file, so that containers have them as well; loopback names where it has
    none."""
    try:
        text = Path("/etc/hosts").read_text(errors="replace")
        lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    except OSError:
        lines = []
    kept = [line for line in lines if line][:1000]
    names = {name for line in kept for name in line.split()[1:]}
    return kept if "localhost" in names else [*_LOOPBACK, *kept]
