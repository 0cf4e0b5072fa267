"""`make bench`: what vcbatch costs on this machine, each figure beside its aim.

Absolute times say as much about the machine as about the program, so two yardsticks are measured in the same run: how
long Python takes to start, and how many HTTPS requests a minimal server of the same kind answers. Ratios to these can
be compared between machines and between days.
"""

from __future__ import annotations

import asyncio
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from tests.perf import (
    bench_apiserver,
    bench_cli,
    bench_cronjobs,
    bench_jobflows,
    bench_jobs,
    bench_logs,
    bench_queue_counts,
    bench_queues,
    bench_relief,
    bench_retention,
    bench_scheduler,
    bench_topology,
    bench_webhooks,
)
from vcbatch.api.resources import JOBS, NAMESPACES, PODS
from vcbatch.runtime.client import HttpApi
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.kubeconfig import load
from vcbatch.runtime.random import SystemRandom
from vcbatch.seams import Api

console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured value. `more_is_better` decides which way the ratio to the aim is read."""

    what: str
    value: float
    unit: str
    aim: float | None = None
    more_is_better: bool = False
    yardstick: str = ""

    def row(self) -> tuple[str, str, str, str, str]:
        aim = "" if self.aim is None else f"{self.aim:,.6g} {self.unit}"
        ratio = "" if self.aim is None else f"{self.value / self.aim:.2f}"
        met = "" if self.aim is None else ("yes" if (self.value >= self.aim) == self.more_is_better else "no")
        return self.what, f"{self.value:,.4g} {self.unit}", aim, f"{ratio} {met}".strip(), self.yardstick


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


def placement() -> list[Figure]:
    """One cycle over everything, and one in which nothing has changed."""
    alike = bench_scheduler.run()
    mixed = bench_scheduler.run(kinds=4)
    share = alike["idle_cycle_s"] / alike["cycle_s"]
    what = f"{alike['gangs']:,} gangs of {alike['pods'] // alike['gangs']} pods on {alike['nodes']:,} nodes"
    return [
        Figure(
            what=f"placement of {what}",
            value=alike["pods_per_s"],
            unit="pods/s",
            aim=100_000,
            more_is_better=True,
            yardstick=f"all {alike['placed']:,} placed; a cycle without news costs {share:.1%} of it",
        ),
        Figure(what="the same with four kinds of pods", value=mixed["pods_per_s"], unit="pods/s"),
    ]


def queues() -> list[Figure]:
    """A tree of 200 queues with quotas."""
    placing, admitting = bench_queues.placing(), bench_queues.admitting()
    return [
        Figure(
            what=f"placement of {placing['placed']:,} pods of {placing['queues']} queues in a tree",
            value=placing["pods_per_s"],
            unit="pods/s",
            more_is_better=True,
        ),
        Figure(what="a cycle in which nothing changed", value=placing["idle_cycle_s"] * 1000, unit="ms", aim=5),
        Figure(what="a cycle with one more gang", value=placing["one_more_gang_s"] * 1000, unit="ms", aim=20),
        Figure(
            what=f"admission of {admitting['gangs']:,} gangs, {admitting['admitted']:,} of them admitted",
            value=admitting["gangs"] / admitting["first_cycle_s"],
            unit="gangs/s",
            more_is_better=True,
            yardstick="each is told why it waits",
        ),
        Figure(what="one more of them", value=admitting["one_more_gang_s"] * 1000, unit="ms", aim=100),
    ]


def relief() -> list[Figure]:
    """One gang of 64 for which others are evicted, 5,000 full nodes, 140,000 bound pods."""
    measured = [bench_scheduler.relieve(action, request=request) for action, request in bench_relief.ACTIONS.items()]
    return [
        Figure(
            what=f"{each['action']} for a gang of {each['promised']}, the whole cycle",
            value=each["cycle_s"] * 1000,
            unit="ms",
            aim=100,
            yardstick=f"{each['evicted']} of {each['bound']:,} pods evicted",
        )
        for each in measured
    ]


def topology() -> list[Figure]:
    """Gangs of 64 that must each be within a rack, 5,000 nodes in 313 racks, in CPU time of one core."""
    free = bench_topology.run(aware=False)
    racked = bench_topology.run(topology={"mode": "hard", "highestTierAllowed": 1})
    return [
        Figure(
            what=f"placement of {racked['gangs']} gangs of {racked['size']}, each within a rack",
            value=racked["pods_per_s"],
            unit="pods/s",
            more_is_better=True,
            yardstick=f"{free['pods_per_s']:,} anywhere",
        ),
        Figure(what="the tree of racks made again", value=racked["tree_made_again_s"] * 1000, unit="ms"),
    ]


def jobs() -> list[Figure]:
    """What jobs cost their controller, in CPU time of one core."""
    measured = bench_jobs.run()
    machine, large, many = measured["decisions"], measured["large"], measured["many"]
    passes = {name: f"{large[name] / large['bare_pass_s']:,.2g} bare passes" for name in ("changed_s", "unchanged_s")}
    return [
        *(
            Figure(
                what=f"the job machine, {machine['pods']:,.0f} pods, {what}",
                value=machine[key],
                unit="decisions/s",
                more_is_better=True,
                yardstick=f"each {1 / machine[key] / machine['bare_pass_s']:,.0f} bare passes over the pods",
            )
            for key, what in (
                ("quiet_per_s", "nothing to do"),
                ("restart_per_s", "a pod failed, RestartJob"),
                ("start_per_s", "all to be created"),
            )
        ),
        Figure(
            what=f"a look at an unchanged job of {large['pods']:,.0f} pods ({large['writes']:.0f} API writes)",
            value=large["unchanged_s"] * 1000,
            unit="ms",
            aim=5.0,
            yardstick=passes["unchanged_s"],
        ),
        Figure(
            what="the same after one pod changed",
            value=large["changed_s"] * 1000,
            unit="ms",
            yardstick=passes["changed_s"],
        ),
        Figure(
            what=f"memory of a resident job of {many['pods'] / many['jobs']:.0f} pods, of {many['jobs']:,.0f}",
            value=many["bytes"] / 1024,
            unit="KiB",
        ),
        Figure(
            what=f"a look at each after a restart ({many['writes']:.0f} API writes)", value=many["all_s"], unit="s CPU"
        ),
    ]


def cron_jobs(count: int = 5000) -> list[Figure]:
    """What CronJobs cost that are due in the same minute."""
    rush = bench_cronjobs.rush(count)
    return [
        Figure(
            what=f"{count:,} CronJobs due at once: the last job is made",
            value=rush.seconds,
            unit="s",
            aim=30.0,
            yardstick=f"virtual time, {bench_cronjobs.LATENCY_SECONDS * 1000:.0f} ms a write; {rush.twice} made twice",
        ),
        Figure(what=f"each of them ({rush.writes:.2g} API writes)", value=rush.cpu * 1000, unit="ms CPU"),
    ]


def job_flows(count: int = 10_000) -> list[Figure]:
    """What so many jobs of flows cost, in flows of ten and in large ones."""
    figures: list[Figure] = []
    for nodes, jobs in ((10, count), (100, count // 10)):
        cost = bench_jobflows.flows(jobs // nodes, nodes=nodes)
        figures.append(
            Figure(
                what=f"each of {jobs:,} jobs in flows of {nodes} ({cost.writes:.2g} API writes)",
                value=cost.cpu * 1000,
                unit="ms CPU",
                yardstick=f"{cost.cpu / cost.baseline:.0f} times making and changing it; {cost.twice} made twice",
            )
        )
    held = bench_jobflows.memory(10, nodes=100)
    return [*figures, Figure(what="memory of each beside the stored objects", value=held / 1024, unit="KiB")]


def queue_counts(queues: int = 1000, pod_groups: int = 20_000) -> list[Figure]:
    """What it costs to count the PodGroups of a tree of queues."""
    cost = bench_queue_counts.counted(queues, pod_groups=pod_groups)
    writes = f"{cost.writes:,} writes in all, {cost.later_writes:,} when {cost.few} change later"
    return [
        Figure(
            what=f"each of {pod_groups:,} PodGroups that start in {queues:,} queues", value=cost.cpu * 1e6,
            unit="µs CPU", yardstick=writes,
        ),
        Figure(what="the counts are true after", value=cost.seconds, unit="s", yardstick="virtual time"),
        Figure(
            what="memory for each queue", value=bench_queue_counts.memory(queues // 10, pod_groups=pod_groups // 10),
            unit="B",
        ),
    ]  # fmt: skip


def retention(jobs: int = 10_000) -> list[Figure]:
    """What it costs to delete finished jobs whose time is over at the same moment."""
    cost = bench_retention.retention(jobs)
    return [
        Figure(
            what=f"each of {jobs:,} finished jobs that go at once ({cost.writes:.2g} API writes)", value=cost.cpu * 1e3,
            unit="ms CPU", yardstick=f"the last one {cost.late:.1f} s late in virtual time, {cost.early} too early",
        ),
        Figure(what="memory for each that waits for it", value=bench_retention.memory(jobs // 10), unit="B"),
    ]  # fmt: skip


def commands(jobs: int = 10_000) -> list[Figure]:
    """What `vcctl job list` costs who types it, and the SDK who imports it."""
    start, long, imported = bench_cli.start_up(), bench_cli.long_list(jobs), bench_cli.sdk_import()
    return [
        Figure(
            what="`vcctl job list`", value=start.seconds * 1000, unit="ms", aim=150.0,
            yardstick=f"{start.cpu * 1000:.0f} ms CPU, {start.memory / 1e6:.0f} MB",
        ),
        Figure(
            what=f"`vcctl job list` of {jobs:,} jobs", value=long.seconds, unit="s", aim=1.5,
            yardstick=f"{long.cpu:.2f} s CPU",
        ),
        Figure(what="its memory", value=long.memory / 1e6, unit="MB", aim=300.0),
        Figure(
            what="`from vcbatch import Client, task` and Python", value=imported.cpu * 1000, unit="ms CPU", aim=200.0,
            yardstick=f"{imported.seconds * 1000:.0f} ms, {imported.memory / 1e6:.0f} MB",
        ),
    ]  # fmt: skip


def followed_log(pods: int = 100, per_second: int = 10_000) -> list[Figure]:
    """What `vcbatch job logs -f` of a large gang costs, and that nothing of it is lost."""
    following = bench_logs.follow(pods=pods, per_second=per_second)
    return [
        Figure(
            what=f"`job logs -f` of {pods} pods that print {per_second:,} lines/s", value=following.rate,
            unit="lines/s", yardstick=f"{following.cpu:.3f} s CPU for 1,000 lines",
        ),
        Figure(
            what="lines lost, doubled or misplaced", value=following.lost, unit="", yardstick=f"of {following.lines:,}"
        ),
        Figure(
            what="its memory from the first third on", value=following.growth / 1e6, unit="MB more", aim=5.0,
            yardstick=f"{following.memory / 1e6:.0f} MB before",
        ),
    ]  # fmt: skip


def main() -> None:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = psutil.virtual_memory().total / 2**30
    console.print(
        f"{platform.system()} {platform.machine()}, {cores} cores, {memory:.0f} GiB, Python {platform.python_version()}"
    )
    start = python_start()
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="vcbatch-bench-") as folder:
        state = Path(folder) / "state"
        with running(state):
            pass
        with running(state) as ready:
            figures.append(
                Figure(
                    what="`vcbatch up` to ready",
                    value=ready,
                    unit="s",
                    aim=2.0,
                    yardstick=f"{ready / start:.1f} Python starts of {start * 1000:.0f} ms",
                )
            )
            idle, resident = footprint(state, over=20.0)
            figures.append(Figure(what="idle CPU", value=idle * 100, unit="%", aim=1.0))
            figures.append(Figure(what="idle memory", value=resident / 1e6, unit="MB", aim=200.0))
            figures += asyncio.run(on_a_running_server(state, bench_apiserver.yardstick()))
            figures += admission(state, start)
    figures += placement()
    figures += queues()
    figures += relief()
    figures += topology()
    figures += jobs()
    figures += cron_jobs()
    figures += job_flows()
    figures += queue_counts()
    figures += retention()
    figures += commands()
    figures += followed_log()

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("figure", "measured", "aim", "of aim", "in the same run"):
        table.add_column(column)
    for figure in figures:
        table.add_row(*figure.row())
    console.print(table)


if __name__ == "__main__":
    main()
