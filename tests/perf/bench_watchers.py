"""Memory of the embedded server under watchers that don't read: `python -m tests.perf.bench_watchers`.

A list of some 36 MB is watched from the start by 30 clients that read nothing. Shown are the server's resident memory
before, while they are there, and after they have closed, and how long a request of somebody else took meanwhile.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click
import psutil

from tests.support.raw_http import Stalled, token_of, trusting
from vcbatch.api.resources import CONFIGMAPS
from vcbatch.runtime.client.http import HttpApi
from vcbatch.runtime.client.kubeconfig import load
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.random import SystemRandom

PROGRAM = """
import asyncio, sys
from pathlib import Path
from vcbatch.local.apiserver.server import EmbeddedServer
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.random import SystemRandom

async def main():
    server = EmbeddedServer(state_dir=Path(sys.argv[1]), clock=SystemClock(), random=SystemRandom())
    await server.start()
    print(server.port, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""
OBJECTS, EACH = 600, 60_000
PATH = "/api/v1/namespaces/default/configmaps?watch=true&resourceVersion=0"


def resident(process: psutil.Process) -> float:
    """Megabytes."""
    return process.memory_info().rss / 1e6


async def measure(folder: Path, port: int, process: psutil.Process, watchers: int, seconds: float) -> None:
    api = HttpApi(load(folder / "kubeconfig"), clock=SystemClock(), random=SystemRandom())
    context = trusting(folder)
    async with api:
        for index in range(OBJECTS):
            body = {"metadata": {"name": f"big-{index}"}, "data": {"filling": chr(97 + index % 26) * EACH}}
            await api.create(CONFIGMAPS, body, namespace="default")
        await asyncio.sleep(1)
        click.echo(f"before: {resident(process):.0f} MB")
        connections = [await Stalled.open(port, context, PATH, token_of(folder)) for _ in range(watchers)]
        most, slowest, began = 0.0, 0.0, time.monotonic()
        cpu = process.cpu_times().user
        for second in range(int(seconds)):
            asked = time.monotonic()
            await api.get(CONFIGMAPS, "big-0", namespace="default")
            slowest = max(slowest, time.monotonic() - asked)
            most = max(most, resident(process))
            if second in (2, 10, int(seconds) - 1):
                open_ = len(process.net_connections())
                click.echo(f"  after {time.monotonic() - began:.0f} s: {resident(process):.0f} MB, {open_} connections")
            await asyncio.sleep(1)
        busy = (process.cpu_times().user - cpu) / (time.monotonic() - began)
        click.echo(f"with {watchers} watchers: at most {most:.0f} MB, {busy:.0%} of a CPU, slowest GET {slowest:.3f} s")
        for connection in connections:
            connection.abort()
        for wait in (1, 10, 30):
            await asyncio.sleep(wait)
            click.echo(f"closed, {wait} s later: {resident(process):.0f} MB")


@click.command()
@click.option("--watchers", default=30, show_default=True)
@click.option("--seconds", default=40.0, show_default=True, help="How long the watchers stay.")
def main(watchers: int, seconds: float) -> None:
    """Measure."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        child = subprocess.Popen([sys.executable, "-c", PROGRAM, str(folder)], stdout=subprocess.PIPE, text=True)
        try:
            assert child.stdout is not None
            port = int(child.stdout.readline())
            asyncio.run(measure(folder, port, psutil.Process(child.pid), watchers, seconds))
        finally:
            child.kill()
            child.wait()


if __name__ == "__main__":
    main()
