"""`vcbatch jobtemplate describe`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import click

from vcbatch.api.resources import JOBFLOWS, JOBTEMPLATES
from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.fields import moment, name_of, namespace_of, number, objects, text, words
from vcbatch.cli.base.names import template_names
from vcbatch.cli.base.output import say
from vcbatch.cli.base.table import Cell
from vcbatch.cli.base.terminal import Terminal, terminal_of
from vcbatch.cli.resources.job.describe import gang_text, policies_text, tasks_text
from vcbatch.cli.resources.kinds import job_queue, job_size
from vcbatch.cli.resources.reading import within_reach
from vcbatch.cli.resources.sections import document, facts, labels_text, moment_text, section
from vcbatch.interfaces.api import Api

Json = dict[str, Any]


@click.command("describe")
@click.argument("name", shell_complete=template_names)
@access_options
def command(name: str, access: Access) -> int:
    """Show details of a job template: tasks, policies, and the job flows that use it."""

    async def fetch(api: Api) -> tuple[Json, Sequence[Json]]:
        template = await api.get(JOBTEMPLATES, name, namespace=access.namespace)
        return template, await within_reach(api, JOBFLOWS, namespace=access.namespace)

    template, flows = access.once(fetch)
    say(described(template, flows, terminal_of(), now=access.now()))
    return 0


def described(template: Json, flows: Sequence[Json], terminal: Terminal, *, now: datetime) -> str:
    """The text of the screen."""
    return document(
        [
            facts(_facts(template, flows, now), terminal),
            section("Tasks", tasks_text(template, terminal), terminal),
            section("Policies", policies_text(template), terminal),
        ]
    )


def _facts(template: Json, flows: Sequence[Json], now: datetime) -> Iterator[tuple[str, str | Cell]]:
    name = name_of(template)
    yield "Name", f"{namespace_of(template)}/{name}"
    yield "Queue", job_queue(template)
    yield "Gang", gang_text(number(template, "spec", "minAvailable") or job_size(template), job_size(template))
    users = [
        name_of(flow) for flow in flows if any(text(one, "name") == name for one in objects(flow, "spec", "flows"))
    ]
    yield "Used by", ", ".join(sorted(users))
    yield "Created", moment_text(moment(template, "metadata", "creationTimestamp"), now)
    yield "Labels", labels_text(words(template, "metadata", "labels"))
