"""`vcbatch status`: running and pending jobs, with reasons, on one screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from vcbatch.api.phases import JobPhase
from vcbatch.api.resources import JOBS, NODES, PODS, QUEUES
from vcbatch.cli.base.access import Access
from vcbatch.cli.base.fields import name_of, namespace_of, number, since, text
from vcbatch.cli.base.follow_up import with_options
from vcbatch.cli.base.lost_state import lost_state_warnings
from vcbatch.cli.base.options import state_dir_option
from vcbatch.cli.base.output import CliError, say
from vcbatch.cli.base.state import Server, StateDir, default_state_dir
from vcbatch.cli.base.table import Row, table
from vcbatch.cli.base.terminal import Terminal, Tone, terminal_of
from vcbatch.cli.resources.kinds import job_phase, job_pods, job_queue, job_why, queue_state, toned
from vcbatch.cli.resources.nodes_table import loads_of, nodes_table
from vcbatch.interfaces.api import Api

Json = dict[str, Any]

_JOBS_SHOWN = 20
_NODES_SHOWN = 10
_PATIENCE = timedelta(seconds=10)


@click.command("status")
@state_dir_option
@click.option("--all", "-a", "show_all", is_flag=True, help="Also show finished jobs, and all nodes.")
def command(state_dir: Path, show_all: bool) -> int:
    """Show the local server with its nodes, queues and jobs. Exits 1 if no server is running."""
    state = StateDir(state_dir)
    server = state.running()
    if server is None:
        raise CliError(f"vcbatch is not running on {state.path}", hint="Start it with `vcbatch up`.")
    say(_screen(state, server, show_all=show_all))
    return 0


def _screen(state: StateDir, server: Server, *, show_all: bool) -> str:
    access = Access(kubeconfig=state.kubeconfig, request_timeout=_PATIENCE)

    async def fetch(api: Api) -> list[Sequence[Json]]:
        return [(await api.list(resource)).items for resource in (NODES, QUEUES, JOBS, PODS)]

    try:
        nodes, queues, jobs, pods = access.once(fetch)
    except CliError as error:
        raise CliError(
            f"vcbatch (pid {server.pid}) is running but not responding: {error}", hint=f"Log: {state.log}"
        ) from error
    terminal, now = terminal_of(), datetime.now(UTC)
    warnings = lost_state_warnings(state, known={text(pod, "metadata", "uid") for pod in pods})
    most = None if show_all else _NODES_SHOWN
    sections = [
        f"vcbatch is running at {access.connection().server} (pid {server.pid}); kubeconfig {state.kubeconfig}",
        *(terminal.paint(f"warning: {warning}", Tone.BAD) for warning in warnings),
        nodes_table(nodes, loads_of(pods), most=most, terminal=terminal),
        _queues(queues, jobs, terminal),
        _jobs(jobs, terminal, now, show_all=show_all) or _none(state),
    ]
    return "\n\n".join(sections)


def _none(state: StateDir) -> str:
    chosen = state.kubeconfig if state.path != default_state_dir() else None
    return with_options("No jobs. Submit one with `vcbatch run` or `kubectl apply -f FILE`.", kubeconfig=chosen)


def _queues(queues: Sequence[Json], jobs: Sequence[Json], terminal: Terminal) -> str:
    rows: list[Row] = [("QUEUE", "STATE", "WEIGHT", "RUNNING", "PENDING")]
    phases = Counter((job_queue(job), job_phase(job)) for job in jobs)
    for queue in queues:
        name = name_of(queue)
        running, waiting = phases[name, JobPhase.RUNNING], phases[name, JobPhase.PENDING]
        waiting += phases[name, JobPhase.RESTARTING]
        weight = str(number(queue, "spec", "weight") or 1)
        rows.append((name, toned(queue_state(queue)), weight, str(running), str(waiting)))
    return table(rows, terminal=terminal)


def _jobs(jobs: Sequence[Json], terminal: Terminal, now: datetime, *, show_all: bool) -> str:
    if not jobs:
        return ""
    live = [job for job in jobs if show_all or job_phase(job) not in (JobPhase.COMPLETED, JobPhase.TERMINATED)]
    live.sort(key=lambda job: text(job, "metadata", "creationTimestamp"), reverse=True)
    shown = live if show_all else live[:_JOBS_SHOWN]
    lines: list[str] = []
    if shown:
        rows: list[Row] = [("JOB", "PHASE", "PODS", "AGE", "REASON"), *(_job_row(job, now) for job in shown)]
        lines.append(table(rows, terminal=terminal, flexible=(4,)))
    rest = len(jobs) - len(shown)
    if rest:
        lines.append(f"... and {rest} more (--all)" if shown else f"{rest} finished (--all)")
    return "\n".join(lines)


def _job_row(job: Json, now: datetime) -> Row:
    created = since(job, "metadata", "creationTimestamp", now=now)
    name = f"{namespace_of(job)}/{name_of(job)}"
    return (name, toned(job_phase(job)), job_pods(job), created, job_why(job))
