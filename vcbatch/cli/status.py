"""`vcbatch status`: what runs, and what waits and why, on one screen."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from vcbatch.api.names import GPU_RESOURCE
from vcbatch.api.quantity import parse_quantity
from vcbatch.api.queue import DEFAULT
from vcbatch.api.reasons import origin_of
from vcbatch.api.resources import JOBS, NODES, PODS, QUEUES
from vcbatch.api.timestamps import parse_time
from vcbatch.cli.options import state_dir_option
from vcbatch.cli.output import CliError, age, say
from vcbatch.cli.state import Server, StateDir
from vcbatch.cli.table import table
from vcbatch.seams.api import Api, ApiError

Json = dict[str, Any]

_JOBS_SHOWN = 20
_NODES_SHOWN = 10
_REASON_WIDTH = 120
_WAITING = ("Pending", "Aborted", "Failed", "Restarting")


@click.command("status")
@state_dir_option
@click.option("--all", "-a", "show_all", is_flag=True, help="Also finished jobs, and every node.")
def command(state_dir: Path, show_all: bool) -> int:
    """Show the local server, its nodes, queues and jobs. Exit code 1 where nothing runs."""
    state = StateDir(state_dir)
    server = state.running()
    if server is None:
        raise CliError(f"vcbatch isn't running on {state.path}", hint="Start it with `vcbatch up`.")
    say(asyncio.run(_screen(state, server, show_all=show_all)))
    return 0


async def _screen(state: StateDir, server: Server, *, show_all: bool) -> str:
    from vcbatch.runtime.client import ClientLimits, HttpApi
    from vcbatch.runtime.clock import SystemClock
    from vcbatch.runtime.kubeconfig import KubeconfigError, load
    from vcbatch.runtime.random import SystemRandom

    try:
        connection = load(state.kubeconfig)
        limits = ClientLimits(request_timeout=10.0, connect_timeout=3.0, retries=1)
        async with HttpApi(connection, clock=SystemClock(), random=SystemRandom(), limits=limits) as api:
            nodes, queues, jobs = await asyncio.gather(_all(api, NODES), _all(api, QUEUES), _all(api, JOBS))
            pods = await _all(api, PODS)
    except (ApiError, KubeconfigError) as error:
        raise CliError(
            f"vcbatch (pid {server.pid}) runs but doesn't answer: {error}", hint=f"Its log: {state.log}"
        ) from error
    now = datetime.now(UTC)
    sections = [
        f"vcbatch runs at {connection.server} (pid {server.pid}); kubeconfig {state.kubeconfig}",
        _nodes(nodes, pods, show_all=show_all),
        _queues(queues, jobs),
        _jobs(jobs, now, show_all=show_all),
    ]
    return "\n\n".join(sections)


async def _all(api: Api, resource: Any) -> Sequence[Json]:
    return (await api.list(resource)).items


def _nodes(nodes: Sequence[Json], pods: Sequence[Json], *, show_all: bool) -> str:
    used = _requests_by_node(pods)
    rows: list[tuple[str, ...]] = [("NODE", "STATUS", "CPU", "MEMORY", "GPU", "PODS")]
    for node in nodes if show_all else nodes[:_NODES_SHOWN]:
        name, allocatable = node["metadata"]["name"], node.get("status", {}).get("allocatable", {})
        cpu, memory, gpus, count = used.get(name, (0, 0, 0, 0))
        total_memory = _number(allocatable, "memory") / 2**30
        rows.append(
            (
                name,
                _ready(node),
                f"{cpu / 1000:g}/{_number(allocatable, 'cpu')}",
                f"{memory / 2**30:.1f}/{total_memory:.1f} GiB",
                f"{gpus}/{_number(allocatable, GPU_RESOURCE)}",
                f"{count}/{_number(allocatable, 'pods')}",
            )
        )
    if all(row[4] in ("GPU", "0/0") for row in rows):
        rows = [(*row[:4], row[5]) for row in rows]
    text = table(rows)
    hidden = len(nodes) - len(rows) + 1
    return f"{text}\n... and {hidden} more, see --all" if hidden else text


def _requests_by_node(pods: Sequence[Json]) -> dict[str, tuple[int, int, int, int]]:
    """Milli-cores, bytes, GPUs and number of the pods that have not ended, by node."""
    used: dict[str, tuple[int, int, int, int]] = {}
    for pod in pods:
        node = pod["spec"].get("nodeName")
        if not node or pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
            continue
        cpu, memory, gpus, count = used.get(node, (0, 0, 0, 0))
        for container in pod["spec"].get("containers") or ():
            requests = (container.get("resources") or {}).get("requests") or {}
            cpu += parse_quantity(requests.get("cpu", 0)).milli()
            memory += parse_quantity(requests.get("memory", 0)).value()
            gpus += parse_quantity(requests.get(GPU_RESOURCE, 0)).value()
        used[node] = (cpu, memory, gpus, count + 1)
    return used


def _number(quantities: Json, key: str) -> int:
    return parse_quantity(quantities.get(key, 0)).value()


def _ready(node: Json) -> str:
    conditions = node.get("status", {}).get("conditions") or ()
    ready = any(item.get("type") == "Ready" and item.get("status") == "True" for item in conditions)
    return ("Ready" if ready else "NotReady") + (",cordoned" if node.get("spec", {}).get("unschedulable") else "")


def _queues(queues: Sequence[Json], jobs: Sequence[Json]) -> str:
    rows: list[tuple[str, ...]] = [("QUEUE", "STATE", "WEIGHT", "RUNNING", "WAITING")]
    for queue in queues:
        name = queue["metadata"]["name"]
        phases = [_phase(job) for job in jobs if (job.get("spec", {}).get("queue") or DEFAULT) == name]
        rows.append(
            (
                name,
                queue.get("status", {}).get("state") or "Unknown",
                str(queue.get("spec", {}).get("weight", 1)),
                str(phases.count("Running")),
                str(phases.count("Pending") + phases.count("Restarting")),
            )
        )
    return table(rows)


def _jobs(jobs: Sequence[Json], now: datetime, *, show_all: bool) -> str:
    if not jobs:
        return "No jobs. Submit one with `kubectl apply -f`."
    live = [job for job in jobs if show_all or _phase(job) not in ("Completed", "Terminated")]
    live.sort(key=lambda job: job["metadata"].get("creationTimestamp", ""), reverse=True)
    shown = live if show_all else live[:_JOBS_SHOWN]
    lines: list[str] = []
    if shown:
        rows: list[tuple[str, ...]] = [("JOB", "PHASE", "PODS", "AGE", "WHY"), *(_job_row(job, now) for job in shown)]
        lines.append(table(rows))
    rest = len(jobs) - len(shown)
    if rest:
        lines.append(f"... and {rest} more, see --all" if shown else f"{rest} finished, see --all")
    return "\n".join(lines)


def _job_row(job: Json, now: datetime) -> tuple[str, ...]:
    metadata, status = job["metadata"], job.get("status") or {}
    wanted = sum(int(task.get("replicas", 0)) for task in job.get("spec", {}).get("tasks") or ())
    up = int(status.get("running") or 0) + int(status.get("succeeded") or 0)
    created = metadata.get("creationTimestamp")
    return (
        f"{metadata['namespace']}/{metadata['name']}",
        _phase(job),
        f"{up}/{wanted}",
        age(parse_time(created), now) if created else "",
        _why(status),
    )


def _phase(job: Json) -> str:
    return ((job.get("status") or {}).get("state") or {}).get("phase") or "Pending"


def _why(status: Json) -> str:
    state = status.get("state") or {}
    if state.get("phase", "Pending") not in _WAITING:
        return ""
    text = origin_of(" ".join(str(state.get("message") or state.get("reason") or "").split()))
    return text if len(text) <= _REASON_WIDTH else f"{text[: _REASON_WIDTH - 3]}..."
