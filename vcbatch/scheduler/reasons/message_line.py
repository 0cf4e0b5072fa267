"""Who may have the numbers in its message written again: so many a second in the whole cluster, in turn.

A message's numbers move whenever anything in the cluster does, for every gang that waits, and tell a reader little that
is new. Few gangs are told every half a minute; ten thousand share the same few writes, the one first that was told
longest ago.
"""

from __future__ import annotations

import heapq
from datetime import datetime, timedelta

MESSAGES_PER_SECOND = 5
"""How many gangs are told new numbers in a second, on average."""
MESSAGES_AT_ONCE = 100
"""How many after a pause."""
_ALTOGETHER = timedelta(seconds=1)
"""How long turns are waited for, so that one cycle serves several."""


class MessageLine:
    """Gangs by the UIDs of their PodGroups, in the order in which they are due."""

    def __init__(self) -> None:
        self._line: list[tuple[datetime, str]] = []
        self._waiting: set[str] = set()
        self._called: set[str] = set()
        self._left = float(MESSAGES_AT_ONCE)
        self._filled: datetime | None = None

    def call(self, now: datetime) -> list[str]:
        """Those whose turn it is: look at them, since `take` lets them through. Called once at the start of a report;
        whoever has nothing to say any more loses its turn, and its place."""
        passed = timedelta(0) if self._filled is None else max(now - self._filled, timedelta(0))
        self._left = min(self._left + passed.total_seconds() * MESSAGES_PER_SECOND, MESSAGES_AT_ONCE)
        self._filled = now
        called: list[str] = []
        while self._line and self._line[0][0] <= now and len(called) < int(self._left):
            _, uid = heapq.heappop(self._line)
            if uid in self._waiting:
                self._waiting.discard(uid)
                called.append(uid)
        self._called = set(called)
        return called

    def take(self, uid: str, now: datetime, *, due: datetime) -> bool:
        """Whether its new numbers may be written now; else it is in line, from `due` on."""
        in_turn = uid in self._called
        if in_turn or (due <= now and not self._overdue(now) and self._left - len(self._called) >= 1):
            self._called.discard(uid)
            self._left -= 1
            return True
        if uid not in self._waiting:
            self._waiting.add(uid)
            heapq.heappush(self._line, (due, uid))
        return False

    def forget(self, uid: str) -> None:
        """It is gone, or was told already."""
        self._waiting.discard(uid)

    def again(self, now: datetime) -> datetime | None:
        """When the next turn comes; None where nobody waits."""
        while self._line and self._line[0][1] not in self._waiting:
            heapq.heappop(self._line)
        if not self._line:
            return None
        due = self._line[0][0]
        return due if due > now else now + _ALTOGETHER

    def _overdue(self, now: datetime) -> bool:
        return bool(self._line) and self._line[0][0] <= now
