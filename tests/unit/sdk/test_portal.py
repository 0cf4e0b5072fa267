"""Coroutines from threads that have no loop, or one that is busy."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncGenerator
from contextlib import suppress

import pytest

from vcbatch.sdk.errors import VcbatchError
from vcbatch.sdk.portal import Portal


class Ending:
    def __init__(self) -> None:
        self.times = 0

    async def __call__(self) -> None:
        self.times += 1


async def answer() -> int:
    await asyncio.sleep(0)
    return 42


async def fails() -> None:
    raise LookupError("here")


def test_results_and_errors_come_back():
    portal = Portal(Ending())
    assert portal.run(answer()) == 42
    with pytest.raises(LookupError, match="here"):
        portal.run(fails())
    portal.close()


async def test_it_works_while_another_loop_runs():
    portal = Portal(Ending())
    assert portal.run(answer()) == 42
    portal.close()


def test_the_end_comes_once_and_nothing_works_after_it():
    ending = Ending()
    portal = Portal(ending)
    portal.run(answer())
    portal.close()
    portal.close()
    assert ending.times == 1
    with pytest.raises(VcbatchError, match="closed"):
        portal.run(answer())


def test_one_that_nobody_has_any_more_ends_by_itself():
    ending = Ending()
    portal = Portal(ending)
    portal.run(answer())
    del portal
    gc.collect()
    assert ending.times == 1
    assert not [thread for thread in threading.enumerate() if thread.name == "vcbatch client" and thread.is_alive()]


def test_it_refuses_to_wait_for_itself():
    portal = Portal(Ending())

    async def inside() -> None:
        portal.run(answer())

    with pytest.raises(VcbatchError, match="AsyncClient"):
        portal.run(inside())
    portal.close()


class Numbers:
    def __init__(self, count: int, error: Exception | None = None) -> None:
        self.count, self.error = count, error
        self.made = 0
        self.closed = threading.Event()

    async def items(self) -> AsyncGenerator[int, None]:
        try:
            for number in range(self.count):
                self.made += 1
                yield number
                await asyncio.sleep(0)
            if self.error is not None:
                raise self.error
        finally:
            self.closed.set()


def test_items_come_in_order_and_an_error_after_them():
    portal = Portal(Ending())
    assert list(portal.iterate(Numbers(2500).items())) == list(range(2500))
    numbers, seen = Numbers(3, LookupError("after")), []
    with pytest.raises(LookupError):
        for number in portal.iterate(numbers.items()):
            seen.append(number)  # noqa: PERF402 - the error comes after them
    assert seen == [0, 1, 2]
    portal.close()


def test_an_iterator_that_is_left_is_closed_and_never_ran_far_ahead():
    portal = Portal(Ending())
    numbers = Numbers(1_000_000)
    items = portal.iterate(numbers.items())
    for _ in range(10):
        next(items)
    items.close()
    assert numbers.closed.is_set()
    assert numbers.made < 5000
    unused = Numbers(1)
    portal.iterate(unused.items()).close()
    with suppress(StopIteration):
        next(portal.iterate(Numbers(0).items()))
    portal.close()


def test_closing_ends_what_still_runs():
    portal = Portal(Ending())
    numbers = Numbers(1_000_000)
    items = portal.iterate(numbers.items())
    next(items)
    portal.close()
    assert numbers.closed.wait(10.0)
    items.close()
