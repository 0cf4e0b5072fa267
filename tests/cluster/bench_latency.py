"""`python -m tests.cluster.bench_latency`: how soon a gang is bound on a cluster that has nothing else to do.

From the request that submits a job until a watch has told of its last bind, step by step, many times in turn with a
bare client on the same control plane, which creates and binds as many pods side by side and decides nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.cluster import loading
from tests.cluster.bench import cluster
from tests.cluster.components import CONTROLLERS, SCHEDULER, Components
from tests.cluster.controlplane import ControlPlane
from tests.cluster.gangs import gang
from vcbatch.api.pod import Pod
from vcbatch.api.resources import JOBS, PODGROUPS, PODS
from vcbatch.api.scheduling import PodGroupView
from vcbatch.runtime.caches.cache import Cache, Change
from vcbatch.runtime.caches.watch import Reflector
from vcbatch.runtime.client.http import HttpApi
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.random import SystemRandom

console = Console(highlight=False, width=120)
STEPS = ("PodGroup made", "let in", "first pod made", "last pod made", "last pod bound")
_COMMAND = "sleep 36000"


class Steps:
    """When each step of the gang that is watched was told, as two watches tell it."""

    def __init__(self) -> None:
        self._pods = 0
        self._made: set[str] = set()
        self._bound: set[str] = set()
        self._prefix = ""
        self.at: dict[str, float] = {}
        self.done = asyncio.Event()

    def begin(self, prefix: str, pods: int) -> None:
        """Watch the pods and the PodGroup whose names begin so."""
        self._prefix, self._pods = prefix, pods
        self._made, self._bound, self.at = set(), set(), {}
        self.done.clear()

    def podgroup(self, change: Change[PodGroupView]) -> None:
        group = change.current
        if group.metadata.name.startswith(self._prefix):
            self._reached("PodGroup made")
            if group.status.phase not in ("", "Pending"):
                self._reached("let in")

    def pod(self, change: Change[Pod]) -> None:
        pod = change.current
        if not pod.metadata.name.startswith(self._prefix):
            return
        self._made.add(pod.metadata.uid)
        self._reached("first pod made")
        if len(self._made) == self._pods:
            self._reached("last pod made")
        if pod.spec.node_name:
            self._bound.add(pod.metadata.uid)
        if len(self._bound) == self._pods:
            self._reached("last pod bound")
            self.done.set()

    def _reached(self, step: str) -> None:
        self.at.setdefault(step, time.monotonic())


class Stopwatch:
    """One try after the other against one control plane."""

    def __init__(self, api: HttpApi, names: list[str], pods: int, *, rest: float) -> None:
        self._api, self._names, self._pods, self._rest = api, names, pods, rest
        self._steps = Steps()

    async def follow(self, stack: AsyncExitStack) -> None:
        """Open the watches, until the stack is closed."""
        pods, groups = Cache(model=Pod), Cache(model=PodGroupView)
        pods.listen(self._steps.pod)
        groups.listen(self._steps.podgroup)
        for resource, cache in ((PODS, pods), (PODGROUPS, groups)):
            reflector: Reflector[Any] = Reflector(
                self._api, resource, cache, clock=SystemClock(), random=SystemRandom()
            )
            task = asyncio.ensure_future(reflector.run())
            stack.push_async_callback(lambda task=task: asyncio.gather(task, return_exceptions=True))
            stack.callback(task.cancel)
            await reflector.synced.wait()

    async def time(self, prefix: str, submit: Callable[[str], Awaitable[None]]) -> dict[str, float]:
        """Milliseconds from the submission to each step, once the cluster has rested."""
        await asyncio.sleep(self._rest)
        self._steps.begin(prefix, self._pods)
        began = time.monotonic()
        await submit(prefix)
        async with asyncio.timeout(60):
            await self._steps.done.wait()
        return {step: (at - began) * 1000 for step, at in self._steps.at.items()}

    async def job(self, name: str) -> None:
        await self._api.create(JOBS, gang(name, self._pods, command=_COMMAND), namespace="default")

    async def bare(self, name: str) -> None:
        async def one(number: int) -> None:
            pod = loading.pod(f"{name}-{number}", scheduler="nobody")
            made = await self._api.create(PODS, pod, namespace="default")
            await self._api.bind(
                namespace="default", name=f"{name}-{number}", uid=made["metadata"]["uid"], node=self._names[number]
            )

        await loading.side_by_side(one, range(self._pods))


async def measure(plane: ControlPlane, names: list[str], *, pods: int, tries: int, rest: float) -> Table:
    ours: list[dict[str, float]] = []
    least: list[dict[str, float]] = []
    async with loading.administrator(plane) as api, AsyncExitStack() as stack:
        stopwatch = Stopwatch(api, names, pods, rest=rest)
        await stopwatch.follow(stack)
        await stopwatch.time("first", stopwatch.job)  # connections and code that the others find warm
        for number in range(tries):
            least.append(await stopwatch.time(f"bare{number:03}", stopwatch.bare))
            ours.append(await stopwatch.time(f"gang{number:03}", stopwatch.job))
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in (f"ms to a gang of {pods}: {tries} tries", "median", "least", "most", "median of a bare client"):
        table.add_column(column, justify="left" if column.startswith("ms") else "right")
    for step in STEPS:
        times = [found[step] for found in ours]
        bare = [found[step] for found in least if step in found]
        table.add_row(
            step, f"{statistics.median(times):.0f}", f"{min(times):.0f}", f"{max(times):.0f}",
            f"{statistics.median(bare):.0f}" if bare else "",
        )  # fmt: skip
    return table


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--nodes", type=int, default=1000, help="nodes of 32 CPUs")
    options.add_argument("--pods", type=int, default=10, help="pods of the gang")
    options.add_argument("--tries", type=int, default=20)
    options.add_argument("--rest", type=float, default=3.0, help="seconds of rest before each try")
    given = options.parse_args()
    with cluster(given.nodes) as (plane, names), Components(plane) as components:
        for part in (CONTROLLERS, SCHEDULER):
            components.start(part).wait_ready()
        time.sleep(10)
        console.print(f"{given.nodes:,} nodes, otherwise idle; load average before: {os.getloadavg()[0]:.1f}")
        console.print(asyncio.run(measure(plane, names, pods=given.pods, tries=given.tries, rest=given.rest)))


if __name__ == "__main__":
    main()
