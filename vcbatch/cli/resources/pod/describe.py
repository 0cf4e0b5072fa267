"""`vcbatch pod describe`: one pod of a job, its containers and their exit status."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import click

from vcbatch.api import names
from vcbatch.api.loose import part
from vcbatch.api.resources import PODS
from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.fields import NONE, moment, name_of, namespace_of, number, objects, text, words
from vcbatch.cli.base.names import pod_names
from vcbatch.cli.base.output import age, say
from vcbatch.cli.base.table import Cell, Row, table
from vcbatch.cli.base.terminal import Terminal, Tone, terminal_of
from vcbatch.cli.resources.job.describe import pod_asks
from vcbatch.cli.resources.kinds import pod_status
from vcbatch.cli.resources.reading import events_of
from vcbatch.cli.resources.sections import document, events_text, facts, labels_text, moment_text, section
from vcbatch.interfaces.api import Api

Json = dict[str, Any]


@click.command("describe")
@click.argument("name", shell_complete=pod_names)
@access_options
def command(name: str, access: Access) -> int:
    """Show details of a pod: job, node, containers and how they ended, events."""

    async def fetch(api: Api) -> tuple[Json, Sequence[Json]]:
        pod: Json = await api.get(PODS, name, namespace=access.namespace)
        return pod, await events_of(api, pod)

    pod, events = access.once(fetch)
    say(described(pod, events, terminal_of(), now=access.now()))
    return 0


def described(pod: Json, events: Sequence[Json], terminal: Terminal, *, now: datetime) -> str:
    """The text of the screen."""
    return document(
        [
            facts(_facts(pod, now), terminal),
            section("Containers", _containers(pod, terminal, now), terminal),
            section("Events", events_text(events, terminal, now=now), terminal),
        ]
    )


def _facts(pod: Json, now: datetime) -> Iterator[tuple[str, str | Cell]]:
    labels = words(pod, "metadata", "labels")
    yield "Name", f"{namespace_of(pod)}/{name_of(pod)}"
    yield "Status", pod_status(pod)
    yield "Reason", text(pod, "status", "message") or _waits_for(pod)
    task, index = labels.get(names.TASK_SPEC, ""), labels.get(names.TASK_INDEX, "")
    yield "Job", labels.get(names.JOB_NAME, "")
    yield "Task", f"{task}, index {index}" if task and index else task
    yield "Queue", labels.get(names.QUEUE_NAME, "")
    yield "Node", text(pod, "spec", "nodeName")
    yield "IP", text(pod, "status", "podIP")
    yield "Requests", pod_asks(part(pod, "spec"))
    yield "Created", moment_text(moment(pod, "metadata", "creationTimestamp"), now)
    yield "Deleted", moment_text(moment(pod, "metadata", "deletionTimestamp"), now)
    yield "Labels", labels_text(labels)


def _waits_for(pod: Json) -> str:
    """Why it has no node yet, as its scheduler reports it."""
    return next(
        (
            text(one, "message")
            for one in objects(pod, "status", "conditions")
            if text(one, "type") == "PodScheduled" and text(one, "status") == "False"
        ),
        "",
    )


def _containers(pod: Json, terminal: Terminal, now: datetime) -> str:
    rows: list[Row] = [("NAME", "STATE", "RESTARTS", "LAST STATE", "IMAGE")]
    for kind, statuses in (("initContainers", "initContainerStatuses"), ("containers", "containerStatuses")):
        known = {text(one, "name"): one for one in objects(pod, "status", statuses)}
        for container in objects(pod, "spec", kind):
            status = known.get(text(container, "name"), {})
            rows.append(
                (
                    text(container, "name") + (" (init)" if kind == "initContainers" else ""),
                    _state(part(status, "state"), now),
                    str(number(status, "restartCount")),
                    _state(part(status, "lastState"), now),
                    text(container, "image"),
                )
            )
    return table(rows, indent="  ", terminal=terminal, right=(2,), flexible=(4,))


def _state(state: Json, now: datetime) -> Cell:
    if ended := part(state, "terminated"):
        code, signal = number(ended, "exitCode"), number(ended, "signal")
        how = f"signal {signal}" if signal and not code else f"exit code {code}"
        reason = text(ended, "reason")
        extra = f" ({reason})" if reason not in ("", "Error", "Completed") else ""
        when = moment(ended, "finishedAt")
        ago = f", {age(when, now)} ago" if when is not None else ""
        return Cell(f"{how}{extra}{ago}", Tone.BAD if code or signal else Tone.GOOD)
    if running := part(state, "running"):
        since = moment(running, "startedAt")
        return Cell(f"running for {age(since, now)}" if since is not None else "running", Tone.GOOD)
    if waiting := part(state, "waiting"):
        return Cell(text(waiting, "reason") or "waiting", Tone.WAITING)
    return Cell(NONE)
