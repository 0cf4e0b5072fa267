"""The line of queues: whoever is served, the next is the one with the smallest key."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, cast

import pytest

from vcbatch.api.meta import ObjectMeta
from vcbatch.api.scheduling import QueueSpecView, QueueView
from vcbatch.scheduler.actions.queue_line import QueueLine
from vcbatch.scheduler.framework.session import Session
from vcbatch.scheduler.model.objects import Queue


@dataclass
class _Order:
    """Stands in for a session: queues `a/b` below departments `a`, by what the department holds and then themselves."""

    held: dict[str, int]
    kin: bool
    queues_share_places: bool = True

    def queue_key(self, queue: Queue) -> tuple[Any, ...]:
        department = queue.name.partition("/")[0]
        return (self.held[department], department, self.held[queue.name]), queue.name

    def queue_kin(self, queue: Queue) -> tuple[object, int] | None:
        return (queue.name.partition("/")[0], 2) if self.kin else None

    def serve(self, queue: Queue, amount: int) -> None:
        for name in (queue.name.partition("/")[0], queue.name):
            self.held[name] += amount


def _queues() -> list[Queue]:
    names = [f"{d}/{q}" for d in "abc" for q in "uvwxyz"]
    return [
        Queue(QueueView(metadata=ObjectMeta(name=name, uid=name), spec=QueueSpecView()), row)
        for row, name in enumerate(names)
    ]


@pytest.mark.parametrize("kin", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_the_next_is_always_the_best(seed: int, kin: bool) -> None:
    chance, queues = random.Random(seed), _queues()
    order = _Order({name: 0 for q in queues for name in (q.name, q.name[0])}, kin=kin)
    line, waiting = QueueLine(cast(Session, order), queues), {q.name: q for q in queues}
    while waiting:
        queue = line.take()
        assert queue is not None
        assert queue is min(waiting.values(), key=order.queue_key)
        order.serve(queue, chance.choice([0, 1, 3]))
        if chance.random() < 0.1:
            order.serve(chance.choice(queues), 2)  # served for the sake of another queue
        if chance.random() < 0.2:
            del waiting[queue.name]
        else:
            line.put_back(queue)
    assert line.take() is None


def test_an_empty_line_has_nobody() -> None:
    assert QueueLine(cast(Session, _Order({}, kin=True)), []).take() is None
