"""The order of queues and of the gangs in a queue, as lines on a screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from vcbatch.cli.resources.fields import NONE
from vcbatch.cli.resources.job.order import Order
from vcbatch.cli.table import Row, table
from vcbatch.cli.terminal import Terminal
from vcbatch.core.waiting import Waiting

if TYPE_CHECKING:
    from vcbatch.scheduler.reasons.standing import QueueStanding

_SHOWN: Final = 5


def order_facts(waiting: Waiting, order: Order) -> Iterator[tuple[str, str]]:
    """What the queue holds of what it deserves, whose turn it is, and by whose policy."""
    if not waiting.position:
        return
    if not waiting.by_policy:
        why = order.unknown or order.foreign or ("none of its pods waits for a place" if order.policy else "")
        yield "Order", f"by priority and then age{f'; {why}' if why else ''}"
        return
    yield from queue_facts(waiting.queue, order)
    yield "Order", whose(order)


def queue_facts(name: str, order: Order) -> Iterator[tuple[str, str]]:
    """What the queue holds of what it deserves, and whose turn it is, where that is known."""
    own = order.queue(name)
    if own is not None:
        yield "Share", _share(own)
        yield "Turn", _turn(own, order)
        yield "Held up", own.closed


def whose(order: Order) -> str:
    """By which policy the order is that is known, and what may be otherwise."""
    remembering = () if order.standings is None else order.standings.remembering
    doubts = [order.doubt] if order.doubt else []
    if remembering:
        verb = "remembers" if len(remembering) == 1 else "remember"
        doubts.append(f"what {' and '.join(remembering)} {verb} of before isn't known")
    return "; ".join((f"by {order.policy}{f', as Lease {order.lease} says' if order.lease else ''}", *doubts))


def reasons(waiting: Waiting, order: Order) -> Mapping[str, str]:
    """By UID of a gang that is ahead why it is; empty where the policy isn't known."""
    own = order.gang(waiting.gang.uid) if waiting.gang is not None and waiting.by_policy else None
    if own is None:
        return {}
    from vcbatch.scheduler.reasons.standing import why_before

    found = ((gang.uid, order.gang(gang.uid)) for gang in waiting.ahead)
    return {uid: why_before(gang, own) for uid, gang in found if gang is not None}


def queues_table(waiting: Waiting, order: Order, terminal: Terminal) -> str:
    """The queues in which gangs wait before the one of the job, the nearest last. Empty where there are none, or the
    policy isn't known."""
    own = order.queue(waiting.queue) if waiting.by_policy else None
    before = _before(own, order)
    if own is None or not before:
        return ""
    from vcbatch.scheduler.reasons.standing import why_before

    header = ("QUEUE", "SHARE", "HOLDS", "WAITING", "BEFORE IT, AS")
    rows: list[Row] = [header]
    first = max(len(before) - _SHOWN, 0)
    for queue in before[first:]:
        share = f"{queue.share:.2f}" if queue.share is not None else NONE
        part = queue.parts[0] if queue.parts else None
        holds = NONE if part is None else f"{part.resource} {part.held} of {part.deserved}"
        why = why_before(queue, own) + ("; gets nothing now" if queue.closed else "")
        rows.append((queue.name, share, holds, str(len(queue.gangs)), why))
    shares = any(queue.share is not None for queue in before)
    kept = [at for at, title in enumerate(header) if shares or title not in ("SHARE", "HOLDS")]
    right = [at for at, column in enumerate(kept) if header[column] in ("SHARE", "WAITING")]
    text = table(
        [[row[at] for at in kept] for row in rows],
        indent="  ",
        terminal=terminal,
        right=right,
        flexible=[len(kept) - 1],
    )
    return f"{text}\n  ... and {first} more" if first else text


def _before(own: QueueStanding | None, order: Order) -> Sequence[QueueStanding]:
    queues = order.standings.queues if order.standings is not None else ()
    return queues[: queues.index(own)] if own is not None else ()


def _share(own: QueueStanding) -> str:
    if own.share is None or not own.parts:
        return ""
    parts = ", ".join(f"{part.resource} {part.held} of {part.deserved}" for part in own.parts)
    return f"{own.share:.2f}: queue {own.name} holds {parts} that it deserves"


def _turn(own: QueueStanding, order: Order) -> str:
    place = len(_before(own, order)) + 1
    others = len(order.standings.queues) - 1 if order.standings is not None else 0
    if not others:
        return f"nobody waits in another queue than {own.name}"
    rank = "the first" if place == 1 else f"number {place}"
    return f"queue {own.name} is {rank} of {others + 1} in which somebody waits"
