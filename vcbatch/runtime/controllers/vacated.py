"""Names of deleted pods that must not be reused too soon.

A generated name is not reused for as long as users may refer to the pod that had it: two pods of one name share their
events, and a deleted pod would seem to be back.

A fixed name is only left unused for a moment. A client that waits for a deletion by name may read twice and see two
different pods: `kubectl delete` reads the object, lists it by name, and then waits until no object has that name
(kubectl `pkg/cmd/delete` and `cmd/wait/delete.go`: the UID is compared in the first read only). A successor that
appears between the two reads makes it wait until that one is deleted. In local mode a pod ends and is replaced within a
few milliseconds, so this happens.
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
"""Several times the interval between the two reads."""
CHOSEN_NAME_RESTS_SECONDS: Final = 3600.0
"""As long as events are kept."""
_MOST: Final = 20_000
"""The number of remembered names, some 3 MB."""


class VacatedNames:
    """Names that must stay unused for `rests` seconds after the deletion of their pod. They don't survive a restart."""

    def __init__(self, *, rests: float, clock: Clock) -> None:
        self._rests = rests
        self._clock = clock
        self._gone: OrderedDict[str, float] = OrderedDict()  # namespace/name -> when the pod was found deleted

    def add(self, key: str) -> None:
        """Record that the pod with this `namespace/name` was deleted."""
        self._gone[key] = self._clock.monotonic()
        self._gone.move_to_end(key)
        self._forget()

    def __contains__(self, key: str) -> bool:
        """Whether that name must still stay unused."""
        self._forget()
        return key in self._gone

    def free_at(self, key: str, *, now: datetime) -> datetime | None:
        """When that name may be used again; None where it may be used now."""
        if key not in self:
            return None
        return now + timedelta(seconds=max(self._gone[key] + self._rests - self._clock.monotonic(), 0.0))

    def hold(self, decision: Decision, *, now: datetime) -> Decision:
        """The decision without the creations whose names must still stay unused, and with a requeue for the first of
        them."""
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
