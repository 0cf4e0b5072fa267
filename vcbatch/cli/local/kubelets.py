"""The process kubelet with its volumes, and the simulated kubelets, as one unit that starts, serves logs and stops."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from vcbatch.api.names import VIRTUAL_NODE
from vcbatch.api.quantity import parse_quantity
from vcbatch.api.resources import NODES
from vcbatch.cli.base.options import DEFAULT_SIZE
from vcbatch.hosting.health import Health
from vcbatch.interfaces.api import Api, ApiError
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.processes import Processes, Session
from vcbatch.interfaces.random import Random
from vcbatch.local.apiserver.apierrors import StatusError, bad_request
from vcbatch.local.environment_owners import EnvironmentOwners
from vcbatch.local.environments import Environments
from vcbatch.local.kubelet import (
    ConnectionRefusedHereError,
    ConnectionUnavailableError,
    KeptLogs,
    Kubelet,
    KubeletConfig,
    LogOptions,
    LogUnavailableError,
    Mode,
    Retention,
    Sandbox,
    TooManyConnectionsError,
    open_processes,
)
from vcbatch.local.kubelet.unaccounted import UnaccountedPod
from vcbatch.local.provisioner import Provisioner
from vcbatch.local.virtual import VirtualKubelet, VirtualNode

log = logging.getLogger(__name__)

AUTO = "auto"
NONE = "none"
_DEFAULT_SIZE = {name: quantity for name, _, quantity in (one.partition("=") for one in DEFAULT_SIZE.split(","))}
_VIRTUAL_PREFIX = "virtual-"


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletOptions:
    """`mode` is a name of `Mode`, or `auto`, or `none`, with which no pod runs on this machine."""

    root: Path
    environments: Environments | None = None
    mode: str = AUTO
    virtual_nodes: int = 0
    virtual_node_size: Mapping[str, str] = field(default_factory=dict[str, str])
    """The capacity of each virtual node where it isn't the default; 0 for none of a resource."""
    kept_logs: Path | None = None
    """The directory of the logs of deleted pods."""
    retention: Retention | None = None
    """None: logs are deleted with their pods, and those that were kept before as well."""


class Kubelets:
    """Created before the server, which reads logs from it; started after the server, where it registers its nodes."""

    def __init__(
        self,
        options: KubeletOptions,
        machine: tuple[Processes, Sandbox] | None,
        *,
        clock: Clock,
        random: Random,
        health: Health,
    ) -> None:
        self._options = options
        self._health = health
        self._machine = machine
        self._clock = clock
        self._random = random
        self.kept_logs = _kept_logs(options)
        """The logs of deleted pods; None where they aren't kept."""
        self._config = KubeletConfig(
            root=options.root,
            mode=machine[1].mode if machine else Mode.PLAIN,
            kept_logs=self.kept_logs,
            environments=options.environments,
        )
        self._kubelet: Kubelet | None = None
        self._virtual: VirtualKubelet | None = None
        self._stop = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    @classmethod
    async def open(cls, options: KubeletOptions, *, clock: Clock, random: Random, health: Health) -> Kubelets:
        """Detect which modes this machine supports. Raises `SandboxUnavailableError` where the requested mode doesn't
        work."""
        machine = None
        if options.mode != NONE:
            machine = await open_processes(None if options.mode == AUTO else Mode(options.mode))
        return cls(options, machine, clock=clock, random=random, health=health)

    @property
    def node_name(self) -> str | None:
        """The name of this machine's Node; None where it runs no pods."""
        return self._config.node_name if self._machine else None

    @property
    def mode(self) -> str:
        return self._machine[1].mode.value if self._machine else NONE

    @property
    def unaccounted(self) -> Sequence[UnaccountedPod]:
        """Pods with records on this machine whose objects the server has lost; known once ready."""
        return self._kubelet.unaccounted if self._kubelet is not None else ()

    async def start(self, api: Api, *, lost: Sequence[Container[int]] = ()) -> None:
        """Start the kubelets on this server, which has lost its writes with the resource versions in `lost`."""
        if self._machine is not None:
            processes, sandbox = self._machine
            config = replace(self._config, lost_versions=lost)
            self._kubelet = Kubelet(
                api, self._clock, processes, self._random, config, sandbox=sandbox, health=self._health
            )
            self._tasks.append(asyncio.create_task(self._kubelet.run(self._stop), name="kubelet"))
        else:
            await _remove_node(api, self._config.node_name)
        root = self._options.root / "volumes" if self._machine is not None else None
        volumes = Provisioner(api, clock=self._clock, random=self._random, root=root, health=self._health)
        self._tasks.append(asyncio.create_task(volumes.run(self._stop), name="volumes"))
        if (environments := self._options.environments) is not None:
            owners = EnvironmentOwners(api, environments, clock=self._clock, random=self._random, health=self._health)
            self._tasks.append(asyncio.create_task(owners.run(self._stop), name="environments"))
        await self._start_virtual(api)

    async def _start_virtual(self, api: Api) -> None:
        """Start the requested virtual nodes, and delete those of an earlier start. Nodes that a user created and
        labelled stay as they are."""
        wanted = [
            _virtual_node(number, self._options.virtual_node_size) for number in range(self._options.virtual_nodes)
        ]
        names = {node.name for node in wanted}
        for node in (await api.list(NODES, label_selector=f"{VIRTUAL_NODE}=true")).items:
            name = node["metadata"]["name"]
            if name.startswith(_VIRTUAL_PREFIX) and name not in names:
                await api.delete(NODES, name)
        self._virtual = VirtualKubelet(api, self._clock, self._random, nodes=wanted, health=self._health)
        self._tasks.append(asyncio.create_task(self._virtual.run(self._stop), name="virtual kubelet"))

    async def ready(self) -> None:
        """Return once the Nodes are registered and Ready."""
        if self._kubelet is not None:
            await self._kubelet.ready.wait()
        if self._virtual is not None:
            await self._virtual.ready.wait()

    async def ended(self) -> None:
        """Return, or raise, when a kubelet ends, which none does before `stop`."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def stop(self) -> None:
        """End all pods, and return when they have ended."""
        self._stop.set()
        for result in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(result, Exception):
                log.error("stopping a kubelet failed: %s", result, exc_info=result)

    async def logs(self, namespace: str, name: str, container: str, options: LogOptions) -> AsyncIterator[bytes]:
        """The log of a container, for the server."""
        try:
            async for chunk in self._running(namespace, name).logs(namespace, name, container, options):
                yield chunk
        except LogUnavailableError as error:
            raise bad_request(str(error)) from error

    async def exec(
        self, namespace: str, name: str, container: str, command: Sequence[str], *, stdin: bool, tty: bool
    ) -> Session:
        """Execute a command in a container, for the server."""
        with _as_status():
            return await self._running(namespace, name).connections.exec(
                namespace, name, container, command, stdin=stdin, tty=tty
            )

    async def attach(self, namespace: str, name: str, container: str, *, stdin: bool, tty: bool) -> Session:
        """Attach to a container, for the server."""
        with _as_status():
            return await self._running(namespace, name).connections.attach(
                namespace, name, container, stdin=stdin, tty=tty
            )

    async def dial(self, namespace: str, name: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to a pod's port, for the server."""
        with _as_status():
            return await self._running(namespace, name).connections.dial(namespace, name, port)

    def _running(self, namespace: str, name: str) -> Kubelet:
        """The kubelet that runs this pod. Raises `StatusError` where none does."""
        if self._virtual is not None and (node := self._virtual.node_of(namespace, name)) is not None:
            why = f'pod "{name}" is on simulated node "{node}"'
            raise StatusError(405, "MethodNotAllowed", f"{why}: it has no containers or logs")
        if self._machine is None:
            raise bad_request("no pods run locally (--kubelet-mode none)")
        if self._kubelet is None:
            raise StatusError(503, "ServiceUnavailable", "the kubelet is still starting")
        return self._kubelet


def _kept_logs(options: KubeletOptions) -> KeptLogs | None:
    if options.kept_logs is None:
        return None
    kept = KeptLogs(options.kept_logs, options.retention or Retention(), waiting=options.root / "ended")
    if options.retention is not None:
        return kept
    kept.clear()
    return None


async def _remove_node(api: Api, name: str) -> None:
    """Delete the Node of an earlier start, which no kubelet serves now."""
    try:
        await api.delete(NODES, name)
    except ApiError as error:
        if not error.not_found:
            raise


@contextmanager
def _as_status() -> Iterator[None]:
    """Convert errors of the kubelet to error responses of the server."""
    try:
        yield
    except ConnectionUnavailableError as error:
        raise StatusError(500, "InternalError", f"Internal error occurred: {error}") from error
    except ConnectionRefusedHereError as error:
        raise bad_request(str(error)) from error
    except TooManyConnectionsError as error:
        raise StatusError(429, "TooManyRequests", str(error)) from error


def _virtual_node(number: int, size: Mapping[str, str]) -> VirtualNode:
    capacity = {**_DEFAULT_SIZE, **size}
    return VirtualNode(
        name=f"{_VIRTUAL_PREFIX}{number:04}",
        capacity={name: quantity for name, quantity in capacity.items() if parse_quantity(quantity).nano},
    )
