"""The order in which queues and gangs are served, with the plugins' numbers that decide it: for users, before a cycle.

Queues and gangs are sorted by the keys that actions use. Each time one is served its numbers change, so this is the
order at the beginning of a cycle, not the order in which everything is placed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from vcbatch.scheduler.framework.combining import has_opinion
from vcbatch.scheduler.framework.plugin import OrderTerm, Plugin
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.framework.switches import Switch
from vcbatch.scheduler.model.figures import Amount
from vcbatch.scheduler.model.objects import Job, Queue, TaskStatus
from vcbatch.scheduler.model.resources import EPS, PODS, Dimensions, Vector
from vcbatch.scheduler.queues.tree import QueueTree

_DIGITS: Final = (2, 3, 4, 6, 9, 17)


class OrderNumber(NamedTuple):
    """One number of a sort key, the smaller first; `term` describes it, None if its plugin doesn't."""

    plugin: str
    value: float
    term: OrderTerm | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GangStanding:
    """A gang that waits for placement or admission. `numbers` decide its position in its queue, then its age."""

    namespace: str
    name: str
    uid: str
    creation: str
    numbers: Sequence[OrderNumber] = ()


class Part(NamedTuple):
    """The usage and the deserved share of a queue of one resource, as canonical quantities."""

    resource: str
    held: str
    deserved: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStanding:
    """A queue with pending gangs.

    Attributes:
        numbers: decide its position, then its age.
        gangs: its pending gangs, the first to be served first.
        share: the largest ratio of used to deserved; None if no plugin computes deserved shares.
        parts: the usage of resources that it deserves, the largest ratio first.
        closed: why no more is allocated to it now; empty if it may be.
    """

    name: str
    uid: str
    creation: str
    numbers: Sequence[OrderNumber] = ()
    gangs: Sequence[GangStanding] = ()
    share: float | None = None
    parts: Sequence[Part] = ()
    closed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standings:
    """The queues with pending gangs, the first to be served first.

    Attributes:
        remembering: the plugins whose order depends on earlier cycles, which only the running scheduler knows.
    """

    queues: Sequence[QueueStanding]
    remembering: Sequence[str] = ()


class StandingsError(Exception):
    """A custom plugin failed when it was called; says where."""


def standings(session: Session) -> Standings:
    """The order of a session in which nothing has been decided yet. Plugins that order queues are closed afterwards,
    because they record deserved shares only then."""
    options = [option for tier in session.policy.tiers for option in tier.plugins]
    named = list(zip(options, session.plugins, strict=True))
    by_queue = [(o.name, p) for o, p in named if o.enabled(Switch.QUEUE_ORDER) and has_opinion(p, "queue_key")]
    by_gang = [(o.name, p) for o, p in named if o.enabled(Switch.JOB_ORDER) and has_opinion(p, "job_key")]
    waiting: dict[str, list[Job]] = {}
    for job in session.state.waiting.values():
        if job.group is not None and job.queue is not None:
            waiting.setdefault(job.queue.name, []).append(job)
    queues = sorted(map(session.state.queues.__getitem__, waiting), key=session.queue_key)
    found = [
        QueueStanding(
            name=queue.name,
            uid=queue.view.metadata.uid,
            creation=queue.view.metadata.creation_timestamp or "",
            numbers=[number for name, plugin in by_queue for number in _of_queue(name, plugin, queue)],
            gangs=[_gang(job, by_gang) for job in sorted(waiting[queue.name], key=session.job_key)],
            closed=_closed(session, queue, waiting[queue.name]),
        )
        for queue in queues
    ]
    remembering = sorted({name for name, plugin in (*by_queue, *by_gang) if type(plugin).REMEMBERS_ORDER})
    for plugin in {id(plugin): plugin for _, plugin in by_queue}.values():
        plugin.close(session)
    return Standings(queues=_with_shares(session, found), remembering=remembering)


def why_before(first: QueueStanding | GangStanding, second: QueueStanding | GangStanding) -> str:
    """Why the first precedes the second: `share 0.25 below 1.00`, `priority 10 above 0`, `older`. Empty if it
    doesn't."""
    for ours, theirs in zip(first.numbers, second.numbers, strict=False):
        if ours.plugin != theirs.plugin:
            break
        if ours.value != theirs.value:
            return _decided(ours, theirs) if ours.value < theirs.value else ""
    if first.creation != second.creation:
        return "older" if first.creation < second.creation else ""
    return "same age; by its uid" if (first.uid, first.name) < (second.uid, second.name) else ""


def _decided(ours: OrderNumber, theirs: OrderNumber) -> str:
    term = ours.term or OrderTerm(f"the number of plugin {ours.plugin}")
    other = theirs.term or term
    of, than = (f" of {one.of}" if one.of else "" for one in (term, other))
    if term.sign == 0:
        return term.word
    mine, less = _reported_apart(ours.value * term.sign, theirs.value * term.sign, whole=term.sign < 0)
    return f"{term.word} {mine}{of} {'below' if term.sign > 0 else 'above'} {less}{than}"


def _reported_apart(one: float, other: float, *, whole: bool) -> tuple[str, str]:
    """Both numbers with as many digits as are needed to tell which is greater; `whole` ones without a fraction."""
    if whole and one.is_integer() and other.is_integer():
        return f"{int(one)}", f"{int(other)}"
    texts = ((f"{one:.{digits}f}", f"{other:.{digits}f}") for digits in _DIGITS)
    return next((pair for pair in texts if pair[0] != pair[1]), (repr(one), repr(other)))


def _of_queue(name: str, plugin: Plugin, queue: Queue) -> list[OrderNumber]:
    key, terms = plugin.queue_key(queue), plugin.queue_terms(queue)
    known: list[OrderTerm | None] = [*terms, *[None] * (len(key) - len(terms))]
    return [OrderNumber(name, float(value), term) for value, term in zip(key, known, strict=False)]


def _gang(job: Job, plugins: Sequence[tuple[str, Plugin]]) -> GangStanding:
    namespace, _, name = job.key.partition("/")
    numbers = [OrderNumber(title, float(plugin.job_key(job)), type(plugin).JOB_TERM) for title, plugin in plugins]
    return GangStanding(namespace=namespace, name=name, uid=job.uid, creation=job.creation, numbers=numbers)


def _closed(session: Session, queue: Queue, waiting: Sequence[Job]) -> str:
    if not queue.open:
        return f"queue {queue.name} is {queue.view.status.state}"
    error = session.queue_error(queue)
    if error:
        return error
    # A queue's deserved share depends on its requests: without pending pods the queue uses all of it.
    asks = any(job.counts[TaskStatus.PENDING] for job in waiting)
    return (session.overused(queue) or "") if asks else ""


def _with_shares(session: Session, found: Sequence[QueueStanding]) -> list[QueueStanding]:
    """The standings with usage and deserved shares of the queues, if a plugin computes them."""
    measured = session.measured
    if measured.shares is None or Amount.DESERVED not in measured.amounts:
        return list(found)
    names, shares, _ = measured.shares
    by_name, deserved = measured.amounts[Amount.DESERVED]
    rows = {name: row for row, name in enumerate(by_name)}
    hierarchical = any(plugin.hierarchical for plugin in session.plugins)
    tree = QueueTree(session.state.queues, hierarchical=hierarchical)
    held = tree.upwards(tree.by_index(session.state.demand.by_queue(tree.rows).allocated))
    at = {name: index for index, name in enumerate(tree.names)}
    share = dict(zip(names, shares.tolist(), strict=True))
    return [
        replace(
            queue,
            share=share.get(queue.name),
            parts=_parts(session.dims, held[at[queue.name]], deserved[rows[queue.name]]),
        )
        for queue in found
    ]


def _parts(dims: Dimensions, held: Vector, deserved: Vector) -> list[Part]:
    columns = [r for r in np.flatnonzero(np.isfinite(deserved) & (deserved >= EPS)).tolist() if r != PODS]
    columns.sort(key=lambda r: (-held[r] / deserved[r], dims.names[r]))
    # Deserved quantities are rarely integers: they are rounded down, as in the scheduler's messages.
    return [
        Part(dims.names[r], dims.format(r, float(held[r])), dims.format(r, math.floor(deserved[r]))) for r in columns
    ]
