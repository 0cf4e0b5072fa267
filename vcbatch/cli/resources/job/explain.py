"""`vcbatch job explain`: why a job is pending, which jobs are ahead, and how to unblock it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import click

from vcbatch.api.messages import behind_first
from vcbatch.api.names import DEFAULT_SCHEDULER
from vcbatch.api.phases import JobPhase
from vcbatch.api.reasons import WaitReason
from vcbatch.api.remedies import sentence_of
from vcbatch.api.resources import JOBS
from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.fields import name_of, text
from vcbatch.cli.base.names import job_names
from vcbatch.cli.base.output import age, say
from vcbatch.cli.base.table import Cell
from vcbatch.cli.base.terminal import Terminal, Tone, terminal_of, wrap
from vcbatch.cli.resources.gangs import gangs_table
from vcbatch.cli.resources.job.explain_json import explanation_json
from vcbatch.cli.resources.job.order import Order, order_of
from vcbatch.cli.resources.job.positions import order_facts, queues_table, reasons
from vcbatch.cli.resources.job.remedies import remedies
from vcbatch.cli.resources.kinds import job_pods, toned
from vcbatch.cli.resources.reading import pod_groups_in_reach, priorities_in_reach, queues_in_reach
from vcbatch.cli.resources.sections import document, facts, moment_text, quantities_text, section, width_of
from vcbatch.cli.whatif.scheduler_setup import SetupOptions, setup_options
from vcbatch.core.waiting import Gang, Surroundings, Waiting, phase_of, waiting_of
from vcbatch.interfaces.api import Api
from vcbatch.runtime.named_by_pods import missing_of

Json = dict[str, Any]

_SHOWN = 5


@click.command("explain")
@click.argument("name", shell_complete=job_names)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@setup_options
@access_options
def command(name: str, output: str, access: Access, setup: SetupOptions) -> int:
    """Explain why a job is pending, which jobs are ahead of it, and how to unblock it.

    The reason and its numbers are those of the scheduler. The order of queues and jobs is computed with the scheduler's
    code from the objects on the server, if you may read the scheduler configuration or pass one; this reads all nodes
    and pods. Otherwise, jobs are ordered by priority and then age.
    """

    async def fetch(api: Api) -> tuple[Json, Waiting, Order]:
        job = await api.get(JOBS, name, namespace=access.namespace)
        missing, tasks = await missing_of(api, job)
        around = Surroundings(
            pod_groups=await pod_groups_in_reach(api, access.namespace),
            queues=await queues_in_reach(api),
            priorities=await priorities_in_reach(api),
            missing=missing,
            missing_for=tasks,
        )
        waiting = waiting_of(job, around)
        if not waiting.position:
            return job, waiting, Order()
        order = await order_of(api, access, setup, text(job, "spec", "schedulerName") or DEFAULT_SCHEDULER)
        return job, waiting_of(job, replace(around, places=order.places)), order

    job, waiting, order = access.once(fetch)
    if output == "json":
        say(json.dumps(explanation_json(job, waiting, order, complete=access.repeat), indent=4, ensure_ascii=False))
    else:
        say(explained(job, waiting, terminal_of(), now=access.now(), order=order, complete=access.repeat))
    return 0


def explained(
    job: Json,
    waiting: Waiting,
    terminal: Terminal,
    *,
    now: datetime,
    order: Order = Order(),  # noqa: B008 - frozen
    complete: Callable[[str], str] = str,
) -> str:
    """The text of the screen. `complete` completes the commands in its advice."""
    holding = waiting.limit.queue if waiting.limit is not None else waiting.queue
    ahead = [gang for gang in waiting.ahead if gang not in waiting.holders]
    gangs = partial(gangs_table, terminal=terminal, now=now, most=_SHOWN)
    return document(
        [
            "\n".join(_headline(job, waiting, terminal, now=now)),
            facts(_facts(waiting, order, now), terminal),
            section("Queues ahead", queues_table(waiting, order, terminal), terminal),
            section("Jobs ahead", gangs(ahead, queue=waiting.queue, last=True, why=_why(waiting, order)), terminal),
            section(f"Jobs using queue {holding}", gangs(waiting.holders, queue=holding), terminal),
            section("Would start if", "\n".join(_would_start(waiting, terminal)), terminal),
            section("What to do", "\n".join(_advice(job, waiting, terminal, complete)), terminal),
        ]
    )


def _headline(job: Json, waiting: Waiting, terminal: Terminal, *, now: datetime) -> Iterator[str]:
    phase = toned(phase_of(job))
    since = f" for {age(waiting.since, now)}" if waiting.since is not None else ""
    why = f": {terminal.paint(waiting.reason, Tone.STRONG)}" if waiting.reason is not None else ""
    yield f"{name_of(job)} is {terminal.paint(phase.text, phase.tone)}{since}{why}"
    if phase_of(job) in (JobPhase.RUNNING, JobPhase.COMPLETED):
        yield f"  {job_pods(job)} pods running or succeeded"
    yield from wrap(waiting.message, width_of(terminal), indent="  ", hang="  ")


def _facts(waiting: Waiting, order: Order, now: datetime) -> Iterator[tuple[str, str | Cell]]:
    gang = waiting.gang
    if gang is None or gang.holds:
        return
    pods = "1 pod" if gang.pods == 1 else f"{gang.pods} pods at once"
    yield "Needs", f"{pods}{f': {quantities_text(gang.asks)}' if quantities_text(gang.asks) else ''}"
    yield "Queue", _place(waiting)
    yield from order_facts(waiting, order)
    first = waiting.held_up_by
    if first is not None:
        yield "Behind", behind_first(queue=waiting.queue, first=first.key, expected=first.expected_start)
    if waiting.holds_up:
        yield "Blocks", f"{_and([one.key for one in waiting.holds_up])}: queue {waiting.queue} is first in, first out"
    limit = waiting.limit
    if limit is not None:
        title, how = ("Short by", "below") if limit.ever else ("Too large", "above")
        yield title, f"{quantities_text(limit.short_by)}, {how} the capability of queue {limit.queue}"
    if waiting.expected_start is not None:
        yield "Starts", f"by {moment_text(waiting.expected_start, now)}"
    elif waiting.evictable_from is not None:
        yield "Starts", f"from {moment_text(waiting.evictable_from, now)}, when other pods may be evicted"
    elif waiting.missing:
        yield "Starts", Cell(f"after {'those are' if len(waiting.missing) > 1 else 'that is'} created", Tone.BAD)
    elif waiting.enough:
        others = any(gang not in waiting.holders for gang in waiting.ahead)
        turn = ", after the jobs ahead" if others else ""
        yield "Starts", f"when {_and([gang.key for gang in waiting.enough])} {_end(waiting.enough)}{turn}"
    elif waiting.reason is WaitReason.IMPOSSIBLE or (limit is not None and not limit.ever):
        yield "Starts", Cell("never on this cluster", Tone.BAD)
    elif first is not None and first.expected_start is None:
        yield "Starts", f"after {first.key} has started"
    elif waiting.position > 1:
        yield "Starts", "unknown: it is estimated only for the first job of a queue"
    else:
        yield "Starts", "unknown: an estimate needs time limits on the running jobs"


def _why(waiting: Waiting, order: Order) -> Mapping[str, str]:
    """By UID of a gang ahead: why it is ahead, and whether it blocks the job."""
    why = dict(reasons(waiting, order))
    first = waiting.held_up_by
    if first is not None:
        why[first.uid] = "; ".join(filter(None, (why.get(first.uid), "blocks it")))
    return why


def _place(waiting: Waiting) -> str:
    if not waiting.position:
        return waiting.queue
    return f"{waiting.queue} (position {waiting.position})"


def _end(gangs: Sequence[Gang]) -> str:
    return "has finished" if len(gangs) == 1 else "have finished"


def _and(words: Sequence[str]) -> str:
    if len(words) > _SHOWN:
        words = [*words[:_SHOWN], f"{len(words) - _SHOWN} more"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _would_start(waiting: Waiting, terminal: Terminal) -> Iterator[str]:
    for remedy in waiting.would_start_if:
        yield from wrap(sentence_of(remedy), width_of(terminal), indent="  ", hang="    ")


def _advice(job: Json, waiting: Waiting, terminal: Terminal, complete: Callable[[str], str]) -> Iterator[str]:
    for sentence in map(complete, remedies(job, waiting)):
        lines = wrap(sentence, width_of(terminal), indent="  ", hang="    ")
        words, _, command = sentence.rpartition(": ")
        if len(lines) > 1 and command.startswith(("vcbatch ", "kubectl ")):
            # The command is on one line, so that it can be copied.
            lines = [*wrap(f"{words}:", width_of(terminal), indent="  ", hang="    "), f"    {command}"]
        yield from lines
