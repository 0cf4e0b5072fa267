"""What would let a queue hold more."""

from __future__ import annotations

from collections.abc import Sequence

from vcbatch.api.remedies import Remedy, RemedyAction
from vcbatch.scheduler.model.resources import Vector
from vcbatch.scheduler.model.result import Shortage
from vcbatch.scheduler.snapshot.snapshot import Snapshot


def raise_limit(state: Snapshot, name: str, short: Sequence[Shortage]) -> list[Remedy]:
    """How the queue of this name may hold more: by its capability where that is its limit, else as others are
    guaranteed less. Where its share is less by what others ask for, it has to wait."""
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
    """What queues other than this one are guaranteed."""
    kept = [(other, state.queues[other].guarantee) for other in sorted(state.queues) if other != name]
    return [(other, state.dims.padded(guarantee)) for other, guarantee in kept if guarantee is not None]
