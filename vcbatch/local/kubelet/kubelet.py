"""The kubelet of one machine: a Node, and the pods that are bound to it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import shutil
import signal
import socket
import stat
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Container, Sequence
from pathlib import Path
from typing import Any

from vcbatch.api.resources import PODS, SERVICES
from vcbatch.api.timestamps import format_time
from vcbatch.hosting.health import Health
from vcbatch.hosting.supervise import Background, first_of
from vcbatch.interfaces.api import Api
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.processes import Processes, ProcessRef
from vcbatch.interfaces.random import Random
from vcbatch.local.kubelet import logs as logs_
from vcbatch.local.kubelet import node as node_
from vcbatch.local.kubelet import unaccounted
from vcbatch.local.kubelet.config import KubeletConfig
from vcbatch.local.kubelet.connections import Connections
from vcbatch.local.kubelet.devices import DeviceTable, find_gpus
from vcbatch.local.kubelet.events import EventRecorder
from vcbatch.local.kubelet.hosts import HostsFiles
from vcbatch.local.kubelet.informer import Informer
from vcbatch.local.kubelet.lifecycle import Waiting
from vcbatch.local.kubelet.logins import Logins
from vcbatch.local.kubelet.logs import LogOptions
from vcbatch.local.kubelet.names import Addresses, service_of
from vcbatch.local.kubelet.node_services import ConfigObjects, NodeServices
from vcbatch.local.kubelet.ports import PortTable
from vcbatch.local.kubelet.records import PodRecord, pod_records
from vcbatch.local.kubelet.sandbox import Mode, Sandbox
from vcbatch.local.kubelet.supervisor.main import boot_id
from vcbatch.local.kubelet.unaccounted import UnaccountedPod
from vcbatch.local.kubelet.volumes import without_account_token
from vcbatch.local.kubelet.worker import PodWorker

Json = dict[str, Any]
log = logging.getLogger(__name__)

_LOGS_PAUSE_SECONDS = 60.0
_LOGS_CHECK_SECONDS = 600.0
"""Seconds between two checks of the age of kept logs, while none are added."""
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108


class LogUnavailableError(Exception):
    """There is no log; the text has the reason, with the message of Kubernetes where it has one."""


class Kubelet:
    """Runs the pods that are bound to one node as processes.

    `processes` and `sandbox` belong together: see `vcbatch.local.kubelet.open_processes`. Several kubelets may share a
    machine if their roots and node names differ.
    """

    def __init__(
        self,
        api: Api,
        clock: Clock,
        processes: Processes,
        random: Random,
        config: KubeletConfig,
        *,
        sandbox: Sandbox,
        health: Health | None = None,
    ) -> None:
        self._api = api
        self._clock = clock
        self._processes = processes
        self._random = random
        self._config = config
        self._sandbox = sandbox
        self._workers: dict[str, PodWorker] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._background = Background(clock=clock, random=random, health=health)
        self._groups: dict[str, set[str]] = {}
        self._node: NodeServices | None = None
        self._memory_wanted = asyncio.Event()
        self.unaccounted: Sequence[UnaccountedPod] = ()
        """Recorded pods whose objects the API server has lost; set once `ready`."""
        self.connections = Connections(find=self._find, follow=self._follow)
        """Commands in its containers, and connections with them and their ports."""
        self.ready = asyncio.Event()
        """Set once the Node is registered and its pods are watched."""

    async def run(self, stop: asyncio.Event) -> None:
        """Register the Node and run its pods until `stop` is set; then terminate them all and report that."""
        self._config.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._config.kept_logs is not None:
            self._config.kept_logs.open()
        node, registration = await self._assemble()
        self._node = node
        pods = self._informer(PODS, self._on_pod, field_selector=f"spec.nodeName={self._config.node_name}")
        try:
            await registration.register()
            for name, work in (
                ("events", node.events.run),
                ("hosts files", node.hosts.run),
                ("services", self._informer(SERVICES, self._on_service).run),
                ("pods", pods.run),
                ("heartbeat", registration.run),
                ("memory limits", self._watch_memory),
                ("kept logs", self._tend_logs),
                ("logins", Logins(self._config.root, peers=self._workers.values, background=self._background).run),
            ):
                self._background.keep(f"kubelet: {name}", work)
            await first_of(stop, pods.synced)
            if not stop.is_set():
                await self._end_strangers(pods)
                self.ready.set()
                await stop.wait()
        finally:
            await self._shut_down(node, registration)

    async def logs(self, namespace: str, name: str, container: str, options: LogOptions) -> AsyncIterator[bytes]:
        """The log of one container of a pod of this node; `container` may be empty where the pod has just one.

        Raises `LogUnavailableError` before the first chunk."""
        worker = self._find(namespace, name)
        if worker is None:
            raise LogUnavailableError(f'pod "{name}" is not on node "{self._config.node_name}"')
        container = container or worker.pod["spec"]["containers"][0]["name"]
        if not worker.containers.has(container):
            raise LogUnavailableError(f"container {container} is not valid for pod {name}")
        record = worker.containers.log_record(container, previous=options.previous)
        if record is None:
            raise LogUnavailableError(self._why_no_log(worker, name, container, options))
        chosen = record

        def has_ended() -> bool:
            return worker.containers.has_ended(container, chosen)

        async for chunk in logs_.read(chosen, options, clock=self._clock, has_ended=has_ended):
            yield chunk

    def _follow(self, worker: PodWorker, container: str) -> AsyncGenerator[bytes]:
        """The output of a running container from now on, until it has ended."""
        record = worker.containers.log_record(container, previous=False)
        assert record is not None  # noqa: S101
        options, containers = LogOptions(follow=True, tail_lines=0), worker.containers
        return logs_.read(record, options, clock=self._clock, has_ended=lambda: containers.has_ended(container, record))

    def _why_no_log(self, worker: PodWorker, name: str, container: str, options: LogOptions) -> str:
        if options.previous:
            return f'previous terminated container "{container}" in pod "{name}" not found'
        state = worker.containers.state_of(container).state
        why = state.reason if isinstance(state, Waiting) else "ContainerCreating"
        return f'container "{container}" in pod "{name}" is waiting to start: {why}'

    def _find(self, namespace: str, name: str) -> PodWorker | None:
        for worker in reversed(self._workers.values()):  # the newest, where a former one is still being terminated
            metadata = worker.pod["metadata"]
            if metadata["name"] == name and metadata["namespace"] == namespace:
                return worker
        return None

    # Start ------------------------------------------------------------------------------------------------------------

    async def _assemble(self) -> tuple[NodeServices, node_.NodeRegistration]:
        config = self._config
        gpus = await find_gpus()
        cpus = node_.available_cpus()
        capacity = node_.machine_capacity(
            cpus=len(cpus),
            memory=node_.total_memory(),
            disk=shutil.disk_usage(config.root).total,
            gpus=len(gpus),
            config=config,
        )
        self._addresses = Addresses(shared=None if has_loopback_network() else "127.0.0.1")
        random, clock, api = self._random, self._clock, self._api
        node = NodeServices(
            api=api,
            clock=clock,
            processes=self._processes,
            config=config,
            sandbox=self._sandbox,
            events=EventRecorder(api=api, clock=clock, random=random, node_name=config.node_name),
            hosts=HostsFiles(addresses=self._addresses, clock=clock, mapped=self._sandbox.mode is Mode.NSS),
            ports=PortTable(config.root / "ports.json"),
            devices=DeviceTable(cpus=cpus, gpus=gpus),
            objects=ConfigObjects(
                api=api, clock=clock, random=random, changed=self._on_object, background=self._background
            ),
            background=self._background,
            starts=asyncio.Semaphore(config.concurrent_starts),
            allocatable=capacity,
            memory_directory=memory_directory(config.root),
            kept_logs=config.kept_logs,
        )
        registration = node_.NodeRegistration(
            api=api,
            clock=clock,
            config=config,
            node=node_.node_object(config=config, sandbox=self._sandbox, gpus=gpus),
            status=node_.node_status(
                sandbox=self._sandbox,
                capacity=capacity,
                node_name=config.node_name,
                boot=boot_id(),
                now=format_time(clock.now()),
            ),
        )
        return node, registration

    def _informer(self, resource: Any, changed: Any, *, field_selector: str = "") -> Informer:
        return Informer(
            api=self._api,
            clock=self._clock,
            random=self._random,
            resource=resource,
            changed=changed,
            field_selector=field_selector,
        )

    async def _end_strangers(self, pods: Informer) -> None:
        """End the containers that a former kubelet left running for pods that the API server doesn't know, unless it
        has lost them."""
        assert self._node is not None  # noqa: S101
        root = self._config.root
        self.unaccounted = unaccounted.find(root, known=pods.objects, lost=self._config.lost_versions)
        for pod in self.unaccounted:
            self._addresses.take(pod.uid, wanted=pod.address or None)
        left_alone = {pod.uid for pod in self.unaccounted}
        with contextlib.suppress(OSError):  # it is reported all the same
            unaccounted.write(root, self.unaccounted)
        for record in pod_records(root):
            if record.path.name in pods.objects or record.path.name in left_alone:
                continue
            await end_record(record, self._processes)
            shutil.rmtree(self._node.memory_directory / record.path.name, ignore_errors=True)
            if self._config.kept_logs is not None:
                self._config.kept_logs.keep(record)
            else:
                record.remove()
        groups = {worker.group for worker in self._workers.values()}
        self._node.ports.retain(groups | {pod.group for pod in self.unaccounted})

    # Pods ------------------------------------------------------------------------------------------------------------

    def _on_pod(self, old: Json | None, new: Json | None) -> None:
        uid = (new or old or {})["metadata"]["uid"]
        new = without_account_token(new) if new is not None else None
        worker = self._workers.get(uid)
        if new is None:
            if worker is not None:
                worker.remove()
        elif worker is not None:
            worker.update(new)
        elif self._node is not None:
            self._employ(uid, new)
        self._memory_wanted.set()

    def _employ(self, uid: str, pod: Json) -> None:
        assert self._node is not None  # noqa: S101
        worker = PodWorker(pod, self._node)
        self._workers[uid] = worker
        self._groups.setdefault(worker.group, set()).add(uid)
        metadata = pod["metadata"]
        about = f"{metadata['namespace']}/{metadata['name']} ({uid})"
        self._tasks[uid] = self._background.finish("kubelet: worker", lambda: self._work(uid), about=about)

    async def _work(self, uid: str) -> None:
        """Run one pod. A worker that fails is replaced by another one, which continues from the records: the containers
        keep running meanwhile, and one failing pod doesn't affect the others."""
        worker = self._workers[uid]
        try:
            await worker.run()
        except Exception:
            self._workers[uid] = worker.successor()
            raise
        except BaseException:
            self._dismiss(uid, worker)
            raise
        self._dismiss(uid, worker)

    def _dismiss(self, uid: str, worker: PodWorker) -> None:
        self._workers.pop(uid, None)
        self._tasks.pop(uid, None)
        members = self._groups.get(worker.group, set())
        members.discard(uid)
        if not members and self._node is not None:
            self._groups.pop(worker.group, None)
            self._node.ports.release(worker.group)
            self._node.hosts.release(worker.group)

    def _on_service(self, old: Json | None, new: Json | None) -> None:
        assert self._node is not None  # noqa: S101
        key = (new or old or {})["metadata"]["uid"]
        self._node.hosts.set_service(key, None if new is None else service_of(new))

    def _on_object(self, kind: str, namespace: str, name: str) -> None:
        for worker in self._workers.values():
            if worker.pod["metadata"]["namespace"] == namespace and (kind, name) in worker.references:
                worker.objects_changed()

    async def _watch_memory(self) -> None:
        """Check the memory of containers that have a limit; sleep while there are none."""
        while True:
            self._memory_wanted.clear()
            limited = [worker for worker in self._workers.values() if worker.containers.has_memory_limits]
            if not limited:
                await self._memory_wanted.wait()
            for worker in limited:
                await worker.containers.kill_out_of_memory()
            await self._clock.sleep(self._config.memory_check_seconds)

    async def _tend_logs(self) -> None:
        """Keep the logs of deleted pods within their retention."""
        kept = self._config.kept_logs
        checked: float | None = None
        while True:
            now = self._clock.monotonic()
            if kept is not None and (kept.dirty or checked is None or now - checked >= _LOGS_CHECK_SECONDS):
                checked = now
                kept.keep_waiting()
                await asyncio.to_thread(kept.prune, self._clock.now())
            await self._clock.sleep(_LOGS_PAUSE_SECONDS)

    # Stop -------------------------------------------------------------------------------------------------------------

    async def _shut_down(self, node: NodeServices, registration: node_.NodeRegistration) -> None:
        self.connections.end()
        for worker in self._workers.values():
            worker.stop(self._config.shutdown_grace)
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()), timeout=self._config.shutdown_grace + 10.0)
        await self._background.close()
        left_alone = {pod.uid for pod in self.unaccounted} - self._workers.keys()
        await end_everything(self._config.root, self._processes, but=left_alone)
        with contextlib.suppress(Exception):
            await asyncio.wait_for(node.events.flush(), 5.0)
            await registration.mark_stopped()
        await self._processes.close()
        if not left_alone:
            # Nothing runs any more that could use the volumes in memory.
            shutil.rmtree(node.memory_directory, ignore_errors=True)
        self.ready.clear()


async def end_record(record: PodRecord, processes: Processes) -> int:
    """End every container of a pod that is still running; returns how many were."""
    ended = 0
    for container in record.containers():
        for run in record.runs(container):
            found = await processes.adopt(run.path)
            if isinstance(found, ProcessRef):
                await processes.signal(found, signal.SIGKILL)
                await processes.wait(found)
                ended += 1
    return ended


async def end_everything(root: Path, processes: Processes, *, but: Container[str] = ()) -> int:
    """End every recorded container below a kubelet's root, concurrently, except those of pods with these UIDs; works
    without a server. Returns how many were still running. Their records stay, so that the next kubelet can report how
    they ended."""
    ending = (end_record(record, processes) for record in pod_records(root) if record.path.name not in but)
    return sum(await asyncio.gather(*ending))


def has_loopback_network() -> bool:
    """Whether this machine can listen on every address of 127.0.0.0/8, as on Linux."""
    try:
        with socket.socket() as probe:
            probe.bind(("127.64.0.1", 0))
    except OSError:
        return False
    return True


def memory_directory(root: Path) -> Path:
    """The directory of emptyDir volumes with `medium: Memory`, created if needed: in memory where this machine has such
    a file system and no other user owns that name there."""
    if sys.platform.startswith("linux") and os.access(_SHARED_MEMORY, os.W_OK):
        digest = hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:12]
        path = _SHARED_MEMORY / f"vcbatch-{os.geteuid()}-{digest}"
        with contextlib.suppress(OSError):
            path.mkdir(mode=0o700, exist_ok=True)
            found = path.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077:
                return path
    path = root / "memory"
    path.mkdir(mode=0o700, exist_ok=True)
    return path
