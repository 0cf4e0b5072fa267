"""`vcbatch jobflow describe`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import click

from vcbatch.api.resources import JOBFLOWS, JOBS
from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.fields import moment, name_of, namespace_of, text, uid_of, words
from vcbatch.cli.base.names import flow_names
from vcbatch.cli.base.output import say
from vcbatch.cli.base.table import Cell
from vcbatch.cli.base.terminal import Terminal, terminal_of
from vcbatch.cli.resources.flow.graph import graph
from vcbatch.cli.resources.job_columns import JOB
from vcbatch.cli.resources.kinds import flow_phase, toned
from vcbatch.cli.resources.reading import events_of, owned_by, within_reach
from vcbatch.cli.resources.sections import (
    document,
    events_text,
    facts,
    labels_text,
    moment_text,
    objects_table,
    section,
)
from vcbatch.interfaces.api import Api

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowScreen:
    """A flow with the jobs that it created."""

    flow: Json
    jobs: Sequence[Json] = ()
    events: Sequence[Json] = ()


@click.command("describe")
@click.argument("name", shell_complete=flow_names)
@access_options
def command(name: str, access: Access) -> int:
    """Show details of a job flow: graph, jobs, why it is blocked or failed, and events."""

    async def fetch(api: Api) -> FlowScreen:
        flow = await api.get(JOBFLOWS, name, namespace=access.namespace)
        jobs = owned_by(await within_reach(api, JOBS, namespace=access.namespace), uid_of(flow))
        return FlowScreen(flow=flow, jobs=jobs, events=await events_of(api, flow))

    say(described(access.once(fetch), terminal_of(), now=access.now()))
    return 0


def described(screen: FlowScreen, terminal: Terminal, *, now: datetime) -> str:
    """The text of the screen."""
    return document(
        [
            facts(_facts(screen.flow, now), terminal),
            section("Graph", graph(screen.flow, terminal).partition("\n")[2], terminal),
            section("Jobs", objects_table(JOB.columns, screen.jobs, terminal, now=now), terminal),
            section("Events", events_text(screen.events, terminal, now=now), terminal),
        ]
    )


def _facts(flow: Json, now: datetime) -> Iterator[tuple[str, str | Cell]]:
    yield "Name", f"{namespace_of(flow)}/{name_of(flow)}"
    yield "Phase", toned(flow_phase(flow))
    yield "Retain policy", text(flow, "spec", "jobRetainPolicy") or "retain"
    yield "Created", moment_text(moment(flow, "metadata", "creationTimestamp"), now)
    yield "Labels", labels_text(words(flow, "metadata", "labels"))
