"""`vcbatch queue describe`: limit, usage and pending jobs of a queue, with the sources of the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

import click

from vcbatch.api.names import ALLOWED_NAMESPACES, CLOSED_BY_PARENT
from vcbatch.api.phases import PodGroupPhase
from vcbatch.api.quantity import ZERO
from vcbatch.api.resources import PODGROUPS, QUEUES
from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.fields import NONE, dig, moment, name_of, number, text, words
from vcbatch.cli.base.names import queue_names
from vcbatch.cli.base.output import say
from vcbatch.cli.base.table import Cell, Row, table
from vcbatch.cli.base.terminal import Terminal, terminal_of
from vcbatch.cli.resources.gangs import gangs_table
from vcbatch.cli.resources.job.order import Order, order_of
from vcbatch.cli.resources.job.positions import BY_PRIORITY, queue_facts, whose
from vcbatch.cli.resources.kinds import queue_state, toned
from vcbatch.cli.resources.queue.tree import shown
from vcbatch.cli.resources.queue.usage import QueueUsage, usage_of
from vcbatch.cli.resources.reading import events_of, priorities_in_reach, within_reach
from vcbatch.cli.resources.sections import document, events_text, facts, labels_text, moment_text, section
from vcbatch.cli.whatif.scheduler_setup import SetupOptions, setup_options
from vcbatch.core.waiting import Gang, gang_of, turn
from vcbatch.interfaces.api import Api

Json = dict[str, Any]

_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueScreen:
    """A queue, all queues, and the gangs in it."""

    queue: Json
    usage: QueueUsage
    gangs: Sequence[Gang] = ()
    events: Sequence[Json] = ()
    order: Order = Order()  # noqa: RUF009 - frozen

    @property
    def waiting(self) -> Sequence[Gang]:
        """The pending gangs, the next one first: those of the scheduler whose policy is known in its order, then the
        others by priority and age."""
        places = self.order.places
        waiting = [gang for gang in self.gangs if gang.phase in (PodGroupPhase.PENDING, PodGroupPhase.INQUEUE)]
        waiting.sort(key=turn)
        return sorted(waiting, key=lambda gang: places.get(gang.uid, len(places)))


@click.command("describe")
@click.argument("name", shell_complete=queue_names)
@setup_options
@access_options
def command(name: str, access: Access, setup: SetupOptions) -> int:
    """Show details of a queue: resources, running and pending jobs, events.

    Pending jobs are listed in scheduling order, as in `vcbatch job explain`, if the scheduler configuration is known;
    otherwise by priority, then age.
    """

    async def fetch(api: Api) -> QueueScreen:
        queue = await api.get(QUEUES, name)
        groups = await within_reach(api, PODGROUPS)
        priorities = await priorities_in_reach(api)
        gangs = [gang for group in groups if (gang := gang_of(group, priorities)).queue == name]
        usage = usage_of(await within_reach(api, QUEUES), groups)
        screen = QueueScreen(queue=queue, usage=usage, gangs=gangs, events=await events_of(api, queue))
        if not screen.waiting:
            return screen
        return replace(screen, order=await order_of(api, access, setup))

    say(described(access.once(fetch), terminal_of(), now=access.now()))
    return 0


def described(screen: QueueScreen, terminal: Terminal, *, now: datetime) -> str:
    """The text of the screen."""
    running = sorted((gang for gang in screen.gangs if gang.holds), key=lambda gang: (gang.created or now, gang.key))
    gangs = partial(gangs_table, terminal=terminal, queue=name_of(screen.queue), now=now, most=_SHOWN)
    return document(
        [
            facts(_facts(screen, now), terminal),
            section("Resources", _resources(screen, terminal), terminal),
            section("Running", gangs(running), terminal),
            section("Pending (in scheduling order)", gangs(screen.waiting), terminal),
            section("Events", events_text(screen.events, terminal, now=now), terminal),
        ]
    )


def _facts(screen: QueueScreen, now: datetime) -> Iterator[tuple[str, str | Cell]]:
    queue = screen.queue
    annotations = words(queue, "metadata", "annotations")
    yield "Name", name_of(queue)
    state = toned(queue_state(queue))
    closed = " with its parent" if annotations.get(CLOSED_BY_PARENT) == "true" else ""
    yield "State", state._replace(text=state.text + closed)
    yield "Parent", text(queue, "spec", "parent")
    entry = screen.usage.entries.get(name_of(queue))
    yield "Children", ", ".join(entry.children) if entry is not None else ""
    yield "Weight", str(number(queue, "spec", "weight") or 1)
    yield "Priority", text(queue, "spec", "priority")
    yield "Strategy", text(queue, "spec", "dequeueStrategy")
    yield "Reclaimable", "no" if dig(queue, "spec", "reclaimable") is False else "yes"
    yield "Namespaces", annotations.get(ALLOWED_NAMESPACES, "")
    yield "PodGroups", _counts(queue)
    yield from _order_facts(screen)
    yield "Created", moment_text(moment(queue, "metadata", "creationTimestamp"), now)
    yield "Labels", labels_text(words(queue, "metadata", "labels"))


def _order_facts(screen: QueueScreen) -> Iterator[tuple[str, str]]:
    """The order of the pending jobs, and the scheduler configuration that it comes from."""
    order, waiting = screen.order, screen.waiting
    if not waiting:
        return
    if not order.policy:
        yield "Order", f"{BY_PRIORITY}{f' ({order.unknown})' if order.unknown else ''}"
        return
    yield from queue_facts(name_of(screen.queue), order)
    others = any(gang.uid not in order.places for gang in waiting)
    last = "; jobs of other schedulers last" if others else ""
    yield "Policy", f"{whose(order)}{last}"


def _counts(queue: Json) -> str:
    states = ("running", "inqueue", "pending", "unknown", "completed")
    found = [f"{count} {state}" for state in states if (count := number(queue, "status", state))]
    return ", ".join(found) or "none"


def _resources(screen: QueueScreen, terminal: Terminal) -> str:
    entry = screen.usage.entries.get(name_of(screen.queue))
    if entry is None or not entry.resources():
        return ""
    header = ("RESOURCE", "LIMIT", "GUARANTEED", "DESERVED", "USED", "BORROWED", "ADMITTED", "PENDING")
    rows: list[Row] = [header]
    inherited = False
    for resource in entry.resources():
        most = entry.capability.get(resource)
        above = resource in entry.inherited
        inherited = inherited or above
        cells = (
            f"{shown(most, resource)}{'*' if above else ''}" if most is not None else NONE,
            *(
                shown(each[resource], resource) if resource in each else NONE
                for each in (entry.guarantee, entry.deserved)
            ),
            shown(entry.allocated.get(resource, ZERO), resource),
            shown(entry.borrowed(resource), resource),
            shown(entry.admitted.get(resource, ZERO), resource),
            shown(entry.pending.get(resource, ZERO), resource),
        )
        rows.append((resource, *cells))
    lines = table(_dense(rows), indent="  ", terminal=terminal, right=range(1, 8))
    return f"{lines}\n  * inherited from an ancestor queue" if inherited else lines


def _dense(rows: Sequence[Row]) -> list[Row]:
    """The rows without optional columns that are empty."""
    optional = {2, 3, 5, 6, 7}
    empty = {at for at in optional if all(row[at] in (NONE, "0") for row in rows[1:])}
    kept = [at for at in range(len(rows[0])) if at not in empty]
    return [[row[at] for at in kept] for row in rows]
