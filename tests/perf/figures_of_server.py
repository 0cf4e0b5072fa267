"""What `vcbatch up` and the admission service cost on this machine."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.perf import bench_apiserver, bench_webhooks
from tests.perf.figure import Figure
from vcbatch.api.resources import JOBS, NAMESPACES, PODS
from vcbatch.interfaces import Api
from vcbatch.runtime.client.http import HttpApi
from vcbatch.runtime.client.kubeconfig import load
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.random import SystemRandom


def seconds_of(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - began


def python_start() -> float:
    return statistics.median(seconds_of([sys.executable, "-c", "import asyncio, ssl"]) for _ in range(5))


@contextmanager
def running(state: Path) -> Iterator[float]:
    """`vcbatch up` for the length of the block; yields the seconds until it said ready."""
    command = [sys.executable, "-m", "vcbatch"]
    try:
        yield seconds_of([*command, "up", "--detach", "--port", "0", "--state-dir", str(state)])
    finally:
        subprocess.run([*command, "down", "--state-dir", str(state)], check=True, capture_output=True)


def gang(name: str, members: int, command: str) -> dict:
    container = {"name": "main", "image": "none", "command": ["sh", "-c", command]}
    container["resources"] = {"requests": {"cpu": "1m", "memory": "1Mi"}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    task = {"name": "member", "replicas": members, "template": template}
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {"name": name},
        "spec": {"minAvailable": members, "tasks": [task]},
    }


async def until_phase(api: Api, name: str, phase: str) -> None:
    listing = await api.list(JOBS, namespace="default", field_selector=f"metadata.name={name}")
    jobs = list(listing.items)
    while True:
        if any(((job.get("status") or {}).get("state") or {}).get("phase") == phase for job in jobs):
            return
        async for event in api.watch(
            JOBS,
            namespace="default",
            field_selector=f"metadata.name={name}",
            resource_version=listing.resource_version,
        ):
            jobs = [event.object]
            if ((event.object.get("status") or {}).get("state") or {}).get("phase") == phase:
                return


async def first_process(api: Api, folder: Path, number: int) -> float:
    """From the create request to the first instruction of the container."""
    mark = folder / f"started-{number}"
    began = time.time()
    await api.create(JOBS, gang(f"first-{number}", 1, f"date +%s.%N > {mark}"), namespace="default")
    await until_phase(api, f"first-{number}", "Completed")
    return float(mark.read_text()) - began


async def trivial_gang(api: Api, members: int) -> float:
    began = time.perf_counter()
    await api.create(JOBS, gang(f"gang-{members}", members, "true"), namespace="default")
    await until_phase(api, f"gang-{members}", "Completed")
    return time.perf_counter() - began


def footprint(state: Path, *, over: float) -> tuple[float, float]:
    """CPU (share of one core) and resident bytes of everything that `vcbatch up` started, while nothing happens."""
    server = psutil.Process(int((state / "pid").read_text().split()[0]))
    family = [server, *server.children(recursive=True)]

    def cpu() -> float:
        return sum(sum(process.cpu_times()[:2]) for process in family)

    before = cpu()
    time.sleep(over)
    return (cpu() - before) / over, float(sum(process.memory_info().rss for process in family))


async def on_a_running_server(state: Path, bare_rate: float) -> list[Figure]:
    async with HttpApi(load(state / "kubeconfig"), clock=SystemClock(), random=SystemRandom()) as api:
        await api.get(NAMESPACES, "default")
        firsts = [await first_process(api, state, number) for number in range(5)]
        hundred = await trivial_gang(api, 100)
        writes = await bench_apiserver.run(api)
        pods = await api.list(PODS, namespace="default")
    return [
        Figure(what="apply to first process", value=statistics.median(firsts), unit="s", aim=0.5),
        Figure(
            what=f"gang of 100 trivial pods, apply to Completed ({len(pods.items)} pods kept)", value=hundred, unit="s"
        ),
        *(
            Figure(
                what=f"API server, {name}, 5 watchers",
                value=figure.per_second,
                unit="/s",
                aim=1000 if name == "creates" else None,
                more_is_better=True,
                yardstick=f"{figure.per_second / bare_rate:.2f} of a bare HTTPS server; p99 {figure.p99 * 1000:.1f} ms",
            )
            for name, figure in writes.items()
        ),
    ]


def admission(state: Path, start: float, *, seconds: float = 3.0) -> list[Figure]:
    """The admission service as a process of its own, beside a server that is idle."""
    with bench_webhooks.running(state / "kubeconfig", state / "webhooks") as service:
        measured = asyncio.run(bench_webhooks.measure(service, seconds=seconds))
        resident = float(service.process.memory_info().rss)
    figures = [
        Figure(
            what="`vcbatch webhooks` to ready",
            value=service.ready,
            unit="s",
            aim=1.5,
            yardstick=f"{service.ready / start:.1f} Python starts",
        ),
        Figure(what="its memory afterwards", value=resident / 1e6, unit="MB"),
    ]
    for each in measured:
        yardstick = f"{each.cpu * 1e6:.0f} us CPU, {1 / each.cpu:,.0f} a CPU second; p50 {each.p50 * 1000:.1f} ms"
        figures += [
            Figure(
                what=f"admission: {each.what}",
                value=each.per_second,
                unit="/s",
                aim=1500,
                more_is_better=True,
                yardstick=yardstick,
            ),
            Figure(what="p99 of it", value=each.p99 * 1000, unit="ms", aim=10),
        ]
    return figures


def local_server() -> list[Figure]:
    """`vcbatch up` on a state directory that it has been on before, and the admission service beside it."""
    start = python_start()
    with tempfile.TemporaryDirectory(prefix="vcbatch-bench-") as folder:
        state = Path(folder) / "state"
        with running(state):
            pass
        with running(state) as ready:
            idle, resident = footprint(state, over=20.0)
            return [
                Figure(
                    what="`vcbatch up` to ready",
                    value=ready,
                    unit="s",
                    aim=2.0,
                    yardstick=f"{ready / start:.1f} Python starts of {start * 1000:.0f} ms",
                ),
                Figure(what="idle CPU", value=idle * 100, unit="%", aim=1.0),
                Figure(what="idle memory", value=resident / 1e6, unit="MB", aim=200.0),
                *asyncio.run(on_a_running_server(state, bench_apiserver.yardstick())),
                *admission(state, start),
            ]
