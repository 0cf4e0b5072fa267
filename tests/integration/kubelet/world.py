"""A kubelet on real processes and a server without sockets, for tests that wait for conditions and clean up."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.server import Server
from vcbatch.api.resources import CONFIGMAPS, EVENTS, PODS, SECRETS, SERVICES
from vcbatch.hosting.health import Health
from vcbatch.interfaces import Api
from vcbatch.local.kubelet import Kubelet, KubeletConfig, LogOptions, Mode, open_processes
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.random import SystemRandom

Json = dict[str, Any]
LONG = f"1{os.getpid()}.0"
"""A time to sleep that no other test run uses, so that leftovers are found by it; digits may follow."""
PATIENCE = 60.0  # seconds after which a condition counts as never met


@dataclass
class World:
    """One node named `local` and the means to put pods on it."""

    root: Path
    mode: Mode | None = None
    settings: Json = field(default_factory=dict)
    server: Server = field(default_factory=lambda: Server(SystemClock(), SystemRandom()))

    @property
    def api(self) -> Api:
        return self.server.api

    async def start(self) -> None:
        await self.server.start()
        await self.start_kubelet()

    async def start_kubelet(self) -> None:
        processes, sandbox = await open_processes(self.mode)
        config = KubeletConfig(root=self.root / "kubelet", working_dir=self.root, **self.settings)
        self.sandbox = sandbox
        self.health = Health(SystemClock())
        self.kubelet = Kubelet(
            self.api, SystemClock(), processes, SystemRandom(), config, sandbox=sandbox, health=self.health
        )
        self._stop = asyncio.Event()
        self._running = asyncio.create_task(self.kubelet.run(self._stop))
        ready = asyncio.create_task(self.kubelet.ready.wait())
        await asyncio.wait({self._running, ready}, return_when=asyncio.FIRST_COMPLETED, timeout=PATIENCE)
        assert self.kubelet.ready.is_set()

    async def stop(self) -> None:
        self._stop.set()
        await asyncio.wait_for(self._running, PATIENCE)
        await self.server.stop()

    async def crash(self) -> None:
        """The kubelet is gone from one moment to the next: nothing of its shutdown runs."""
        processes = self.kubelet._processes
        everything = [task for task in asyncio.all_tasks() if _is_kubelets(task)]
        self.kubelet._shut_down = _nothing  # type: ignore[method-assign]
        for task in everything:
            task.cancel()
        self._running.cancel()
        await asyncio.gather(*everything, self._running, return_exceptions=True)
        await processes.close()

    async def pod(self, name: str, *containers: Json | str, **spec: Any) -> Json:
        """Create a pod that is bound to the node; a string is the script of a container called `main`."""
        return await self.api.create(PODS, self._pod(name, *containers, **spec), namespace="default")

    def planted(self, name: str, *containers: Json | str, **spec: Any) -> None:
        """A pod that is there against the rules of the server."""
        self.server.plant(PODS, self._pod(name, *containers, **spec))

    def _pod(self, name: str, *containers: Json | str, **spec: Any) -> Json:
        built = [shell(c) if isinstance(c, str) else {"image": "any", **c} for c in containers]
        metadata = {"name": name, **spec.pop("metadata", {})}
        return {
            "metadata": metadata,
            "spec": {"nodeName": "local", "restartPolicy": "Never", "containers": built, **spec},
        }

    async def until(self, name: str, condition: Callable[[Json], bool]) -> Json:
        return await asyncio.wait_for(self.server.until(PODS, name, lambda o: o is not None and condition(o)), PATIENCE)

    async def phase(self, name: str, *phases: str) -> Json:
        return await self.until(name, lambda o: o["status"].get("phase") in phases)

    async def over(self, name: str) -> Json:
        return await self.phase(name, "Succeeded", "Failed")

    async def gone(self, name: str) -> None:
        await asyncio.wait_for(self.server.until(PODS, name, lambda o: o is None), PATIENCE)

    async def logs(self, name: str, container: str = "main", **options: Any) -> str:
        chunks = self.kubelet.logs("default", name, container, LogOptions(**options))
        return b"".join([chunk async for chunk in chunks]).decode()

    async def output(self, name: str, *containers: Json | str, **spec: Any) -> str:
        """Run a pod to its end, and give what its first container printed."""
        await self.pod(name, *containers, **spec)
        await self.over(name)
        first = containers[0]
        return await self.logs(name, "main" if isinstance(first, str) else first["name"])

    async def log_has(self, name: str, text: str) -> None:
        """Wait until the container has printed `text`."""
        await self.phase(name, "Running", "Succeeded", "Failed")
        async with asyncio.timeout(PATIENCE):
            seen = ""
            async for chunk in self.kubelet.logs("default", name, "", LogOptions(follow=True)):
                seen += chunk.decode()
                if text in seen:
                    return
        raise AssertionError(f"{text!r} was not printed: {seen!r}")

    async def config_map(self, name: str, **data: str) -> None:
        await self.api.create(CONFIGMAPS, {"metadata": {"name": name}, "data": data}, namespace="default")

    async def secret(self, name: str, **data: str) -> None:
        body = {"metadata": {"name": name}, "type": "Opaque", "data": data}
        await self.api.create(SECRETS, body, namespace="default")

    async def service(self, name: str, **selector: str) -> None:
        body = {"metadata": {"name": name}, "spec": {"selector": selector, "ports": [{"port": 80}]}}
        await self.api.create(SERVICES, body, namespace="default")

    async def event(self, name: str, reason: str) -> Json:
        """The first event of this reason about a pod, once it has been sent."""

        def wanted(event: Json) -> bool:
            return event["involvedObject"]["name"] == name and event["reason"] == reason

        return await asyncio.wait_for(self.server.first(EVENTS, wanted), PATIENCE)


def shell(script: str, name: str = "main", **fields: Any) -> Json:
    return {"name": name, "image": "any", "command": ["sh", "-c", script], **fields}


def terminated(pod: Json, container: str = "main") -> Json:
    kinds = ("containerStatuses", "initContainerStatuses")
    statuses = [s for kind in kinds for s in pod["status"].get(kind) or ()]
    return next(s for s in statuses if s["name"] == container)["state"]["terminated"]


@contextlib.asynccontextmanager
async def world(root: Path, **options: Any) -> AsyncIterator[World]:
    made = World(root=root, **options)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


def processes_with(marker: str) -> list[int]:
    """Pids of all processes whose command line has `marker`."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if marker.encode() in (entry / "cmdline").read_bytes().replace(b"\0", b" "):
                    found.append(int(entry.name))
    return found


async def no_process(marker: str) -> None:
    """Return once no process has `marker` in its command line."""
    async with asyncio.timeout(PATIENCE):
        while processes_with(marker):  # noqa: ASYNC110 - nobody tells when a foreign process ends
            await asyncio.sleep(0.01)


def _is_kubelets(task: asyncio.Task[Any]) -> bool:
    return task.get_name().startswith("kubelet: ")


async def _nothing(*_: Any) -> None:
    return
