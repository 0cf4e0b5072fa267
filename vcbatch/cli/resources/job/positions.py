"""The order of queues and of the gangs in a queue, as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from vcbatch.cli.base.fields import NONE
from vcbatch.cli.base.table import Row, table
from vcbatch.cli.base.terminal import Terminal
from vcbatch.cli.resources.job.order import Order
from vcbatch.core.waiting import Waiting

if TYPE_CHECKING:
    from vcbatch.scheduler.reasons.standing import QueueStanding

_SHOWN: Final = 5
BY_PRIORITY: Final = "priority, then age"
"""The order where the scheduler configuration isn't known."""


def order_facts(waiting: Waiting, order: Order) -> Iterator[tuple[str, str]]:
    """The share and the position of the queue, and the scheduler configuration that they come from."""
    if not waiting.position:
        return
    if not waiting.by_policy:
        why = order.unknown or order.foreign or ("no pending pods" if order.policy else "")
        yield "Order", f"{BY_PRIORITY}{f' ({why})' if why else ''}"
        return
    yield from queue_facts(waiting.queue, order)
    yield "Policy", whose(order)


def queue_facts(name: str, order: Order) -> Iterator[tuple[str, str]]:
    """The share and the position of the queue, where they are known."""
    own = order.queue(name)
    if own is not None:
        yield "Share", _share(own)
        yield "Position", _position(own, order)
        yield "Blocked", own.closed


def whose(order: Order) -> str:
    """The scheduler configuration of the order, and the doubts about it."""
    remembering = () if order.standings is None else order.standings.remembering
    doubts = [order.doubt] if order.doubt else []
    if remembering:
        doubts.append(f"without the usage history of {' and '.join(remembering)}")
    return "; ".join((f"{order.policy}{f' (Lease {order.lease})' if order.lease else ''}", *doubts))


def reasons(waiting: Waiting, order: Order) -> Mapping[str, str]:
    """By UID of a gang ahead: why it is ahead; empty where the policy isn't known."""
    own = order.gang(waiting.gang.uid) if waiting.gang is not None and waiting.by_policy else None
    if own is None:
        return {}
    from vcbatch.scheduler.reasons.standing import why_before

    found = ((gang.uid, order.gang(gang.uid)) for gang in waiting.ahead)
    return {uid: why_before(gang, own) for uid, gang in found if gang is not None}


def queues_table(waiting: Waiting, order: Order, terminal: Terminal) -> str:
    """The queues with pending gangs ahead of the job's queue, the nearest last. Empty where there are none, or the
    policy isn't known."""
    own = order.queue(waiting.queue) if waiting.by_policy else None
    before = _before(own, order)
    if own is None or not before:
        return ""
    from vcbatch.scheduler.reasons.standing import why_before

    header = ("QUEUE", "SHARE", "USED", "PENDING", "REASON")
    rows: list[Row] = [header]
    first = max(len(before) - _SHOWN, 0)
    for queue in before[first:]:
        share = f"{queue.share:.2f}" if queue.share is not None else NONE
        part = queue.parts[0] if queue.parts else None
        holds = NONE if part is None else f"{part.resource} {part.held} of {part.deserved}"
        why = why_before(queue, own) + ("; blocked" if queue.closed else "")
        rows.append((queue.name, share, holds, str(len(queue.gangs)), why))
    shares = any(queue.share is not None for queue in before)
    kept = [at for at, title in enumerate(header) if shares or title not in ("SHARE", "USED")]
    right = [at for at, column in enumerate(kept) if header[column] in ("SHARE", "PENDING")]
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
    return f"{own.share:.2f} (uses {parts} deserved)"


def _position(own: QueueStanding, order: Order) -> str:
    place = len(_before(own, order)) + 1
    others = len(order.standings.queues) - 1 if order.standings is not None else 0
    if not others:
        return "no pending jobs in other queues"
    return f"queue {place} of {others + 1} with pending jobs"
