"""Remedies for a queue that has reached its limit."""

from __future__ import annotations

from collections.abc import Sequence

from vcbatch.api.remedies import Remedy, RemedyAction
from vcbatch.scheduler.model.resources import Vector
from vcbatch.scheduler.model.result import Shortage
from vcbatch.scheduler.snapshot.snapshot import Snapshot


def raise_limit(state: Snapshot, name: str, short: Sequence[Shortage]) -> list[Remedy]:
    """How the queue of this name may use more: by raising its capability where that is the limit, else by lowering the
    guarantees of other queues. Where neither applies, its share is limited by the requests of others, and it has to
    wait."""
    queues, dims = state.queues, state.dims
    queue = queues.get(name)
    found: list[Remedy] = []
    for s in short:
        r = dims.column(s.resource)
        named = queue is not None and s.resource in (queue.view.spec.capability or {})
        missing = 0.0 if r is None else dims.amount(s.resource, s.short_by)
        guarantees = [] if named else _guarantees(state, name)
        lent = [(other, float(kept[r])) for other, kept in guarantees if r is not None and kept[r] > 0]
        if named:
            found.append(Remedy(RemedyAction.RAISE, f"queue/{name}", s.resource, s.short_by))
            continue
        for other, most in lent:
            amount = min(most, missing)
            if amount > 0 and r is not None:
                found.append(Remedy(RemedyAction.LOWER, f"queue/{other}", s.resource, dims.format(r, amount)))
                missing -= amount
        if not lent:
            found.append(Remedy(RemedyAction.WAIT, f"queue/{name}"))
    return list(dict.fromkeys(found))


def _guarantees(state: Snapshot, name: str) -> list[tuple[str, Vector]]:
    """The guarantees of the queues other than this one."""
    kept = [(other, state.queues[other].guarantee) for other in sorted(state.queues) if other != name]
    return [(other, state.dims.padded(guarantee)) for other, guarantee in kept if guarantee is not None]
