"""Names of pods that are gone, and must not be taken again too soon.

A name that can be any is left alone for as long as people speak of the pod that had it: two pods of one name share
their events, and one that somebody deleted would seem to be back.

Where the name is given, it is only left for a moment. Whoever waits for a deletion by name may look twice and see two
different pods: `kubectl delete` reads the object, lists it by name, and then waits until that name is gone, whoever has
it by then (kubectl `pkg/cmd/delete` and `cmd/wait/delete.go`: the UID is compared in the first read only). A successor
that appears between the two looks makes it wait until that one goes. On one machine a pod ends and is replaced within a
few milliseconds, so it happens.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from vcbatch.api.resources import PODS
from vcbatch.core.machine import Create, Decision
from vcbatch.interfaces.clock import Clock

GIVEN_NAME_RESTS_SECONDS: Final = 0.25
"""Several times what lies between the two looks."""
CHOSEN_NAME_RESTS_SECONDS: Final = 3600.0
"""As long as events are kept."""
_MOST: Final = 20_000
"""Names that are remembered, some 3 MB."""


class VacatedNames:
    """Which names have to rest for `rests` seconds from when they were vacated. A restart forgets them."""

    def __init__(self, *, rests: float, clock: Clock) -> None:
        self._rests = rests
        self._clock = clock
        self._gone: OrderedDict[str, float] = OrderedDict()  # namespace/name -> when it was seen to be gone

    def add(self, key: str) -> None:
        """The pod with this `namespace/name` is gone."""
        self._gone[key] = self._clock.monotonic()
        self._gone.move_to_end(key)
        self._forget()

    def __contains__(self, key: str) -> bool:
        """Whether that name has to rest yet."""
        self._forget()
        return key in self._gone

    def free_at(self, key: str, *, now: datetime) -> datetime | None:
        """When that name will have rested; None where it has."""
        if key not in self:
            return None
        return now + timedelta(seconds=max(self._gone[key] + self._rests - self._clock.monotonic(), 0.0))

    def hold(self, decision: Decision, *, now: datetime) -> Decision:
        """The decision without the creations that come too early, and with a look at the time of the first of them."""
        self._forget()
        if not self._gone:
            return decision
        early = [when for each in decision.creates if (when := self.free_at(_key(each), now=now)) is not None]
        if not early:
            return decision
        creates = [create for create in decision.creates if _key(create) not in self]
        return replace(decision, creates=creates, requeue_at=min([*early, decision.requeue_at or early[0]]))

    def _forget(self) -> None:
        oldest = self._clock.monotonic() - self._rests
        while self._gone and (len(self._gone) > _MOST or next(iter(self._gone.values())) <= oldest):
            self._gone.popitem(last=False)


def _key(create: Create) -> str:
    if create.resource != PODS:
        return ""
    metadata = create.body["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"
