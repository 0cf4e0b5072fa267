"""`python -m tests.cluster.bench_scale`: what a large cluster costs vcbatch that does nothing but follow it.

Simulated nodes, and pods that are created bound, so that no kubelet is needed. Cold start (until the component says
that it is ready), what it holds afterwards, what it costs idle, and what a restart of the API server costs.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import tempfile
import time
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.cluster import loading, usage
from tests.cluster.binaries.build import build
from tests.cluster.components import CONTROLLERS, SCHEDULER, Component, Components
from tests.cluster.controlplane import APISERVER, ControlPlane, Options
from tests.cluster.processes import wait_until
from tests.cluster.requests import Request, counted

console = Console(highlight=False, width=150)
_RELISTS = re.compile(r'^vcbatch_relists_total\{[^}]*resource="(\w+)"[^}]*\} (\S+)$', re.MULTILINE)


def relists(component: Component) -> Counter[str]:
    counts: Counter[str] = Counter()
    for resource, number in _RELISTS.findall(component.metrics()):
        counts[resource] += int(float(number))
    return counts


async def fill(plane: ControlPlane, nodes: int, pods: int) -> float:
    began = time.monotonic()
    async with loading.administrator(plane) as api:
        names = await loading.add_nodes(api, nodes, cpu="96", run=False)
        await loading.add_bound_pods(api, pods, names)
    return time.monotonic() - began


def row(table: Table, what: str, seconds: float | None, before: usage.Usage | None, after: usage.Usage) -> None:
    cpu = after.cpu - (before.cpu if before else 0.0)
    table.add_row(
        what,
        "" if seconds is None else f"{seconds:.1f}",
        f"{cpu:.2f}",
        f"{after.resident:.0f}",
        f"{after.peak:.0f}",
    )


def reads(requests: Counter[Request]) -> str:
    kinds: Counter[str] = Counter()
    for request, number in requests.items():
        if request.verb in ("LIST", "WATCH") and request.resource in ("pods", "nodes", "podgroups", "queues", "jobs"):
            kinds[f"{request.verb} {request.resource} {request.code}"] += number
    return ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()) if number)


def measure(plane: ControlPlane, part: str, components: Components, table: Table, *, idle: float) -> None:
    began = time.monotonic()
    # Without a Lease, which an API server that is away for long would take from a component.
    component = components.start(part, "--leader-elect=false").wait_ready(timeout=600)
    ready = time.monotonic() - began
    row(table, f"{part}: cold start", ready, None, usage.of(component.program.pid))
    time.sleep(10)
    settled = usage.of(component.program.pid)
    time.sleep(idle)
    row(table, f"{part}: idle for {idle:.0f} s", None, settled, usage.of(component.program.pid))


def restart(plane: ControlPlane, components: Components, table: Table) -> None:
    """Kill the API server, start it again, and wait until every component has followed what it follows anew."""
    before = {component.program.name: usage.of(component.program.pid) for component in components.running}
    seen = {component.program.name: relists(component)["pods"] for component in components.running}
    plane.programs[APISERVER].restart()
    plane.wait_ready()
    began = time.monotonic()
    for component in components.running:
        name = component.program.name

        def followed(component: Component = component, least: int = seen[name]) -> bool:
            component.program.check()
            return relists(component)["pods"] > least

        wait_until(f"{name} has its pods again", followed, timeout=600)
    seconds = time.monotonic() - began
    time.sleep(5)
    for component in components.running:
        now = usage.of(component.program.pid)
        row(table, f"{component.program.name.removeprefix('vcbatch-')}: API server restarted", seconds,
            before[component.program.name], now)  # fmt: skip
    console.print(f"requests that the restarted API server answered: {reads(counted(plane))}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--nodes", type=int, default=5000)
    options.add_argument("--pods", type=int, default=30_000)
    options.add_argument("--idle", type=float, default=30.0, help="seconds over which idle CPU is measured")
    given = options.parse_args()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("", "seconds", "CPU s", "MiB", "peak MiB"):
        table.add_column(column, justify="left" if not column else "right")
    with (
        tempfile.TemporaryDirectory(prefix="vcbatch-scale-") as folder,
        ControlPlane(Path(folder), build(), Options(kwok=False, scheduler=False, unlimited=True)) as plane,
    ):
        plane.install_crds()
        with Components(plane) as components:
            seconds = asyncio.run(fill(plane, given.nodes, given.pods))
            console.print(f"{given.nodes:,} nodes and {given.pods:,} pods made in {seconds:.0f} s")
            before = counted(plane)
            for part in (CONTROLLERS, SCHEDULER):
                measure(plane, part, components, table, idle=given.idle)
            console.print(f"requests of the cold starts: {reads(counted(plane) - before)}")
            restart(plane, components, table)
    console.print(table)


if __name__ == "__main__":
    main()
