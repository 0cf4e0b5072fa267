"""`vcbatch job explain -o json`: the explanation as data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from math import isfinite
from typing import TYPE_CHECKING, Any

from vcbatch.api.remedies import remedy_json
from vcbatch.api.timestamps import format_time
from vcbatch.cli.base.fields import name_of, namespace_of
from vcbatch.cli.resources.job.order import Order
from vcbatch.cli.resources.job.positions import reasons
from vcbatch.cli.resources.job.remedies import remedies
from vcbatch.core.waiting import Amounts, Gang, Limit, Waiting

if TYPE_CHECKING:
    from vcbatch.scheduler.reasons.standing import GangStanding, OrderNumber, QueueStanding

Json = dict[str, Any]


def explanation_json(job: Json, waiting: Waiting, order: Order, *, complete: Callable[[str], str] = str) -> Json:
    """Unknown or inapplicable fields are omitted; amounts are canonical quantities, times RFC 3339. `complete`
    completes the commands in the advice."""
    why = reasons(waiting, order)
    answer: Json = {
        "namespace": namespace_of(job),
        "name": name_of(job),
        "phase": waiting.phase.value,
        "reason": waiting.reason.value if waiting.reason is not None else None,
        "message": waiting.message,
        "since": _time(waiting.since),
        "queue": waiting.queue,
        "needs": _needs(waiting.gang),
        "position": waiting.position,
        "ahead": [_gang(gang) | ({"because": why[gang.uid]} if gang.uid in why else {}) for gang in waiting.ahead],
        "heldUpBy": waiting.held_up_by.key if waiting.held_up_by is not None else None,
        "holdsUp": [gang.key for gang in waiting.holds_up],
        "holders": [_gang(gang) for gang in waiting.holders],
        "limit": _limit(waiting.limit),
        "startsOnceEnded": [gang.key for gang in waiting.enough],
        "expectedStart": _time(waiting.expected_start),
        "evictableFrom": _time(waiting.evictable_from),
        "wouldStartIf": [remedy_json(remedy) for remedy in waiting.would_start_if],
        "order": _order(waiting, order),
        "missing": [{"kind": kind, "name": name} for kind, name in waiting.missing],
        "advice": list(map(complete, remedies(job, waiting))),
    }
    return {name: value for name, value in answer.items() if value}


def _order(waiting: Waiting, order: Order) -> Json:
    if not waiting.position:
        return {}
    if not waiting.by_policy or order.standings is None:
        unknown = order.unknown or order.foreign
        return {"by": "priority and age", **({"policyUnknown": unknown} if unknown else {})}
    queues = order.standings.queues
    found: Json = {"by": "policy", "policy": order.policy}
    found |= {name: value for name, value in (("lease", order.lease), ("doubt", order.doubt)) if value}
    found["queues"] = [_queue(one) for one in queues]
    own = order.queue(waiting.queue)
    found["gangs"] = [] if own is None else [_stands(gang) for gang in own.gangs]
    return found | ({"remembering": list(order.standings.remembering)} if order.standings.remembering else {})


def _queue(queue: QueueStanding) -> Json:
    found: Json = {"name": queue.name, "waiting": len(queue.gangs), "numbers": _numbers(queue.numbers)}
    if queue.share is not None:
        found["share"] = queue.share
        found["deserved"] = {part.resource: part.deserved for part in queue.parts}
        found["held"] = {part.resource: part.held for part in queue.parts}
    return found | ({"closed": queue.closed} if queue.closed else {})


def _stands(gang: GangStanding) -> Json:
    return {"podGroup": f"{gang.namespace}/{gang.name}", "numbers": _numbers(gang.numbers)}


def _numbers(numbers: Sequence[OrderNumber]) -> list[Json]:
    """The ordering keys, most significant first; the smaller key is ahead. JSON has no infinite numbers: they
    are null."""
    return [
        {
            "plugin": number.plugin,
            **({"what": number.term.word} if number.term is not None else {}),
            **({"of": number.term.of} if number.term is not None and number.term.of else {}),
            "key": number.value + 0.0 if isfinite(number.value) else None,
        }
        for number in numbers
    ]


def _gang(gang: Gang) -> Json:
    found: Json = {
        "namespace": gang.namespace,
        "name": gang.name,
        "queue": gang.queue,
        "phase": gang.phase,
        "priority": gang.priority,
        "pods": gang.pods,
        "asks": _quantities(gang.asks),
        "created": _time(gang.created),
    }
    return found | ({"reason": gang.reason.value} if gang.reason is not None else {})


def _needs(gang: Gang | None) -> Json:
    return {} if gang is None or gang.holds else {"pods": gang.pods, "asks": _quantities(gang.asks)}


def _limit(limit: Limit | None) -> Json:
    if limit is None:
        return {}
    return {"queue": limit.queue, "shortBy": _quantities(limit.short_by), "ever": limit.ever}


def _quantities(quantities: Amounts) -> dict[str, str]:
    return {resource: quantity.format() for resource, quantity in sorted(quantities.items())}


def _time(when: datetime | None) -> str | None:
    return None if when is None else format_time(when)
