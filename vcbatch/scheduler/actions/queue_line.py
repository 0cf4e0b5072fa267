"""The order of the queues that have gangs to place."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Any

from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.objects import Queue

Key = tuple[Any, ...]


class QueueLine:
    """The queues in order, the first by `session.queue_key` at the head.

    Serving a queue only ever moves queues back. Kin (`Plugin.queue_kin`) move back together, so that among them only
    those that were served change positions: they have a heap of their own, and only its head is compared with other
    queues.
    """

    def __init__(self, session: Session, queues: Iterable[Queue]) -> None:
        self._key = session.queue_key
        self._moving = session.queues_share_places
        self._lines: dict[object, list[tuple[Key, Queue]]] = {}
        self._kin: dict[str, tuple[object, int | None]] = {}
        self._served: object = None
        """The kin whose heap has no entry among the heads."""
        for queue in queues:
            kin = session.queue_kin(queue)
            line, alike = self._kin[queue.name] = (queue.name, None) if kin is None else kin
            self._lines.setdefault(line, []).append((self._own(queue, alike), queue))
        for line in self._lines.values():
            heapq.heapify(line)
        self._heads = [(self._key(line[0][1]), kin) for kin, line in self._lines.items()]
        heapq.heapify(self._heads)

    def take(self) -> Queue | None:
        """Remove and return the next queue; None if there is none."""
        heads = self._heads
        last = self._rejoin()
        if not heads:
            return None
        _, kin = heapq.heappop(heads)
        queue = self._lines[kin][0][1] if kin == last else self._first(kin)
        while self._moving and heads and kin != last:  # the one that rejoined has an up-to-date key
            now = self._key(queue)
            if now <= heads[0][0]:
                break
            _, kin = heapq.heapreplace(heads, (now, kin))
            queue = self._first(kin)
        self._served = kin
        heapq.heappop(self._lines[kin])
        return queue

    def put_back(self, queue: Queue) -> None:
        """Insert a served queue that has gangs left."""
        kin, alike = self._kin[queue.name]
        heapq.heappush(self._lines[kin], (self._own(queue, alike), queue))

    def _rejoin(self) -> object:
        """Insert the kin of the served queue among the heads again. Returns the kin; None if there are none."""
        kin, self._served = self._served, None
        if kin is None or not self._lines[kin]:
            return None
        heapq.heappush(self._heads, (self._key(self._first(kin)), kin))
        return kin

    def _first(self, kin: object) -> Queue:
        """The first queue of these kin. One that was served without being taken gets its new position first."""
        line = self._lines[kin]
        while len(line) > 1:
            known, queue = line[0]
            now = self._own(queue, self._kin[queue.name][1])
            if now == known:
                break
            heapq.heapreplace(line, (now, queue))
        return line[0][1]

    def _own(self, queue: Queue, alike: int | None) -> Key:
        """The part of the queue's key that differs among its kin, which have the first `alike` numbers of the plugin's
        key in common."""
        if alike is None:
            return ()
        decided, *rest = self._key(queue)
        return (decided[alike:], *rest)
