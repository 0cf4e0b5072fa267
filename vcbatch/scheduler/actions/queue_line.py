"""The queues that have gangs to place, in the order in which they are served."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Any

from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.objects import Queue

Key = tuple[Any, ...]


class QueueLine:
    """The best queue first, as `session.queue_key` says.

    Serving a queue only ever moves queues back. Kin (`Plugin.queue_kin`) move back together, so that among them only
    those that were served change places: they stand in a line of their own, and one look at the first of it is one at
    them all.
    """

    def __init__(self, session: Session, queues: Iterable[Queue]) -> None:
        self._key = session.queue_key
        self._moving = session.queues_share_places
        self._lines: dict[object, list[tuple[Key, Queue]]] = {}
        self._kin: dict[str, tuple[object, int | None]] = {}
        self._served: object = None
        """Whose line isn't among the heads."""
        for queue in queues:
            kin = session.queue_kin(queue)
            line, alike = self._kin[queue.name] = (queue.name, None) if kin is None else kin
            self._lines.setdefault(line, []).append((self._own(queue, alike), queue))
        for line in self._lines.values():
            heapq.heapify(line)
        self._heads = [(self._key(line[0][1]), kin) for kin, line in self._lines.items()]
        heapq.heapify(self._heads)

    def take(self) -> Queue | None:
        """The queue that is next, out of the line; None where there is none."""
        heads = self._heads
        last = self._rejoin()
        if not heads:
            return None
        _, kin = heapq.heappop(heads)
        queue = self._lines[kin][0][1] if kin == last else self._first(kin)
        while self._moving and heads and kin != last:  # the one that rejoined stands where it belongs
            now = self._key(queue)
            if now <= heads[0][0]:
                break
            _, kin = heapq.heapreplace(heads, (now, kin))
            queue = self._first(kin)
        self._served = kin
        heapq.heappop(self._lines[kin])
        return queue

    def put_back(self, queue: Queue) -> None:
        """It was served and has gangs left."""
        kin, alike = self._kin[queue.name]
        heapq.heappush(self._lines[kin], (self._own(queue, alike), queue))

    def _rejoin(self) -> object:
        """Let the kin of the queue that was served stand in line again. Returns them; None where there are none."""
        kin, self._served = self._served, None
        if kin is None or not self._lines[kin]:
            return None
        heapq.heappush(self._heads, (self._key(self._first(kin)), kin))
        return kin

    def _first(self, kin: object) -> Queue:
        """The best of these kin. One that was served meanwhile without being taken is put where it belongs."""
        line = self._lines[kin]
        while len(line) > 1:
            known, queue = line[0]
            now = self._own(queue, self._kin[queue.name][1])
            if now == known:
                break
            heapq.heapreplace(line, (now, queue))
        return line[0][1]

    def _own(self, queue: Queue, alike: int | None) -> Key:
        """What tells the queue from its kin; they are `alike` in so many numbers of the plugin's key."""
        if alike is None:
            return ()
        decided, *rest = self._key(queue)
        return (decided[alike:], *rest)
