"""A second implementation of deserved shares by weight: one queue, one resource, one round after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

Amounts = dict[str, float]
EPS = 0.1
UNCOUNTED = "pods"
"""A resource that isn't part of a queue's share: a remainder of it doesn't continue the rounds."""


@dataclass(frozen=True, slots=True)
class Claimant:
    """A queue with its request, its limit and its guarantee."""

    weight: float
    request: Amounts
    most: Amounts
    guarantee: Amounts = field(default_factory=dict[str, float])


@dataclass(frozen=True, slots=True)
class Round:
    """The state after a round: the deserved share of each queue so far, and the remainder for the next round."""

    deserved: Sequence[Amounts]
    remaining: Amounts


def rounds(total: Amounts, claimants: Sequence[Claimant], *, most: int = 1000) -> Iterator[Round]:
    """In each round the remainder is divided by weight among the queues that aren't met. A queue is met once its share
    covers its request of every resource, or a round added nothing to it."""
    names = sorted(total)
    deserved: list[Amounts] = [dict.fromkeys(names, 0.0) for _ in claimants]
    unmet = list(range(len(claimants)))
    remaining = dict(total)
    for _ in range(most):
        weight = sum(claimants[q].weight for q in unmet)
        if not weight:
            return
        given = dict.fromkeys(names, 0.0)
        still: list[int] = []
        for q in unmet:
            one, before = claimants[q], deserved[q]
            now = {n: _offered(one, n, before[n] + remaining[n] * (one.weight / weight)) for n in names}
            for n in names:
                given[n] += now[n] - before[n]
            met = all(_at_most(one.request.get(n, 0.0), now[n]) for n in names)
            if not met and now != before:
                still.append(q)
            deserved[q] = now
        unmet = still
        rest = {n: max(remaining[n] - given[n], 0.0) for n in names}
        yield Round([dict(one) for one in deserved], rest)
        if rest == remaining or all(v < EPS for n, v in rest.items() if n != UNCOUNTED):
            return
        remaining = rest


def deserved(total: Amounts, claimants: Sequence[Claimant]) -> Sequence[Amounts]:
    """The deserved share of each queue after the last round."""
    last: Sequence[Amounts] = [dict.fromkeys(total, 0.0) for _ in claimants]
    for one in rounds(total, claimants):
        last = one.deserved
    return last


def _offered(one: Claimant, name: str, amount: float) -> float:
    amount = min(amount, one.most.get(name, 0.0), one.request.get(name, 0.0))
    return max(amount, one.guarantee.get(name, 0.0))


def _at_most(left: float, right: float) -> bool:
    return left < right or abs(left - right) < EPS
