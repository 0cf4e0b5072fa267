"""The whole control plane in one process, on one event loop, under virtual time and from one seed.

The embedded server without sockets, admission, controllers, scheduler and a kubelet that only pretends. What runs here
is the program's own code; only kopf, which has a thread and a clock of its own, is replaced by plain watches.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import datetime
from functools import cache
from typing import Any

from tests.scenarios.deeds import node
from tests.scenarios.history import History
from tests.support import virtual_time
from tests.support.plain_watches import control_plane
from tests.support.virtual_time import SeededRandom, VirtualClock
from vcbatch.api.names import DEFAULT_SCHEDULER
from vcbatch.api.queue import DEFAULT, QueueState
from vcbatch.api.resources import CRDS, NAMESPACES, NODES, PODS, QUEUES
from vcbatch.cli.local.admission import admission_services, ensure_webhooks
from vcbatch.cli.local.definitions import ensure_definitions
from vcbatch.core.jobflow import Probe
from vcbatch.hosting.health import Health
from vcbatch.hosting.supervise import Part, Supervisor
from vcbatch.interfaces import Api, ApiError
from vcbatch.local.apiserver.assembly import build
from vcbatch.local.provisioner import Provisioner
from vcbatch.local.virtual import VirtualKubelet
from vcbatch.runtime.bootstrap import ensure_queues
from vcbatch.runtime.caches.informers import Informers
from vcbatch.runtime.events.recorder import Recorder
from vcbatch.runtime.scheduling.loop import SchedulerLoop
from vcbatch.runtime.workloads import Workloads
from vcbatch.scheduler import Policy, Scheduler

Json = dict[str, Any]
_ONE_NODE = {"name": "large", "cpu": "64", "memory": "256Gi"}


@cache
def _established_definitions() -> Sequence[Json]:
    """The CRDs as a server of their own keeps them once they are served. Each world starts as from that server's
    state: to create them takes longer than most of what is played there."""

    async def established() -> Sequence[Json]:
        clock = VirtualClock()
        kernel = build(clock=clock, random=SeededRandom(0), services=admission_services(clock))
        await kernel.start()
        try:
            await ensure_definitions(kernel.api)
            return (await kernel.api.list(CRDS)).items
        finally:
            await kernel.stop()

    with ThreadPoolExecutor(1) as beside_the_running_loop:
        return beside_the_running_loop.submit(lambda: virtual_time.run(established())).result()


class _PretendedServers:
    """Implements `probes.Ask`: a running pod answers where its command says that Python serves HTTP."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def ask(self, probe: Probe) -> bool:
        try:
            pod = await self._api.get(PODS, probe.pod, namespace=probe.namespace)
        except ApiError:
            return False
        served = f"-m http.server {probe.port}" in str(pod["spec"]["containers"])
        return served and pod["metadata"]["uid"] == probe.pod_uid and pod["status"].get("phase") == "Running"

    async def close(self) -> None:
        return None


class SimulatedWorld:
    """Implements `player.World`. Parts are killed by cancelling them wherever they are, and started afresh."""

    history: History

    def __init__(
        self,
        *,
        seed: int = 0,
        namespace: str = "scenario",
        api: Callable[[Api], Api] = lambda api: api,
        policy: Policy | None = None,
    ) -> None:
        self._policy = policy
        self.namespace = namespace
        self.clock = VirtualClock()
        self.random = SeededRandom(seed)
        self.health = Health(self.clock)
        """What the background tasks of all parts report."""
        self.kernel = build(
            clock=self.clock, random=self.random, services=admission_services(self.clock), health=self.health
        )
        self.api: Api = self.kernel.api
        self._seen_by_parts = api(self.kernel.api)
        self._running: dict[str, asyncio.Task[None]] = {}
        self._stop_kubelet = asyncio.Event()

    async def start(self, nodes: Sequence[Json]) -> None:
        for definition in _established_definitions():
            self.kernel.store.put(CRDS, {**definition, "metadata": dict(definition["metadata"])}, None)
        self.kernel.store.flush()
        await self.kernel.start()
        await ensure_webhooks(self.api)
        await ensure_queues(self.api, clock=self.clock, random=self.random)
        await self.api.create(NAMESPACES, {"metadata": {"name": self.namespace}})
        for short in nodes or [_ONE_NODE]:
            await self.api.create(NODES, node(short, self.clock.now()))
        self.start_kubelet()
        volumes = Provisioner(self._seen_by_parts, clock=self.clock, random=self.random, root=None, health=self.health)
        self._running["volumes"] = asyncio.create_task(volumes.run(asyncio.Event()))
        for part in ("controllers", "scheduler"):
            await self.restart(part)
        while (await self.api.get(QUEUES, DEFAULT)).get("status", {}).get("state") != QueueState.OPEN:
            await self.pass_time(0.05)

    async def restart(self, part: str, *, after: float = 0.0) -> None:
        await self._kill(part)
        await self.pass_time(after)
        make = {"controllers": self._controllers, "scheduler": self._scheduler}[part]
        supervisor = Supervisor(clock=self.clock, random=self.random, health=self.health)
        self._running[part] = asyncio.create_task(supervisor.run(*make()), name=part)

    def start_kubelet(self) -> None:
        kubelet = VirtualKubelet(self._seen_by_parts, self.clock, self.random, health=self.health)
        self._running["kubelet"] = asyncio.create_task(kubelet.run(self._stop_kubelet))

    async def kill_kubelet(self) -> None:
        """Pods stay as they are until it is started again."""
        await self._kill("kubelet")

    async def pass_time(self, seconds: float) -> None:
        await self.clock.sleep(seconds)
        for part, task in self._running.items():
            if task.done():
                raise AssertionError(f"the {part} ended: {task.exception()!r}")

    def jump(self, seconds: float) -> None:
        self.clock.shift(seconds)

    def now(self) -> datetime:
        return self.clock.now()

    async def evict(self, pod: str) -> None:
        metadata = {"name": pod, "namespace": self.namespace}
        path = PODS.path(namespace=self.namespace, name=pod, subresource="eviction")
        await self.kernel.api._post(path, {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata})

    async def stop(self) -> None:
        for part in list(self._running):
            await self._kill(part)
        await self.kernel.stop()

    async def _kill(self, part: str) -> None:
        task = self._running.pop(part, None)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _controllers(self) -> list[Part]:
        api, clock, random = self._seen_by_parts, self.clock, self.random
        informers = Informers(api, clock=clock, random=random)
        plane = control_plane(api, informers, clock=clock, random=random, asks=_PretendedServers(self.api))
        workloads = Workloads(api, informers, clock=clock, random=random)
        return [*plane.sources(), *plane.parts(), *workloads.parts(), *informers.parts()]

    def _scheduler(self) -> list[Part]:
        api, clock, random = self._seen_by_parts, self.clock, self.random
        informers = Informers(api, clock=clock, random=random)
        recorder = Recorder(api, clock=clock, random=random, component=DEFAULT_SCHEDULER)
        loop = SchedulerLoop(api, Scheduler(self._policy), informers, recorder, clock=clock, random=random)
        return [*informers.parts(), *loop.parts(), Part(name="events", run=recorder.run)]


@asynccontextmanager
async def simulated(nodes: Sequence[Json] = (), **options: Any) -> AsyncIterator[SimulatedWorld]:
    """A running world with these nodes (`name`, `cpu`, `memory`), ready to take jobs."""
    world = SimulatedWorld(**options)
    await world.start(nodes)
    try:
        yield world
    finally:
        await world.stop()
