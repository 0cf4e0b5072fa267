"""Rate limit for updates of the numbers in messages: a number per second for the whole cluster, in a queue.

The numbers in messages change with almost every change of the cluster, for every pending gang, and tell readers little.
With few pending gangs each is updated every half minute; ten thousand share the same few writes, the one updated
longest ago first.
"""

from __future__ import annotations

import heapq
from datetime import datetime, timedelta

MESSAGES_PER_SECOND = 5
"""The average number of messages with new numbers per second."""
MESSAGES_AT_ONCE = 100
"""The most after a pause."""
_ALTOGETHER = timedelta(seconds=1)
"""How long overdue updates are collected, so that one cycle writes several."""


class MessageLine:
    """Gangs by the UIDs of their PodGroups, in the order in which their updates are due."""

    def __init__(self) -> None:
        self._line: list[tuple[datetime, str]] = []
        self._waiting: set[str] = set()
        self._called: set[str] = set()
        self._left = float(MESSAGES_AT_ONCE)
        self._filled: datetime | None = None

    def call(self, now: datetime) -> list[str]:
        """The gangs whose update is due: check these, because `take` permits them. Called once at the start of a
        report; a gang without changes loses its position."""
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
        """Whether the gang's new numbers may be written now; else it is queued with the time `due`."""
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
        """Remove a gang that was deleted or updated otherwise."""
        self._waiting.discard(uid)

    def again(self, now: datetime) -> datetime | None:
        """When the next update is due; None if none is queued."""
        while self._line and self._line[0][1] not in self._waiting:
            heapq.heappop(self._line)
        if not self._line:
            return None
        due = self._line[0][0]
        return due if due > now else now + _ALTOGETHER

    def _overdue(self, now: datetime) -> bool:
        return bool(self._line) and self._line[0][0] <= now
