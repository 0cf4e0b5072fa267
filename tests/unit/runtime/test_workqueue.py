"""The work queue: serial per key, no duplicates, later when asked, again after a failure."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.hosting.backoff import Backoff
from vcbatch.runtime.pacing.workqueue import WorkQueue


def make_queue(**options: object) -> WorkQueue[str]:
    return WorkQueue(clock=VirtualClock(), random=SeededRandom(1), **options)  # type: ignore[arg-type]


async def drain(queue: WorkQueue[str], reconcile, *, workers: int, seconds: float) -> None:
    task = asyncio.ensure_future(queue.run(reconcile, workers=workers))
    await asyncio.sleep(seconds)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


_KEYS = st.sampled_from(["a", "b", "c"])
_STEPS = st.lists(st.tuples(_KEYS, st.floats(0, 3), st.sampled_from(["add", "after"])), max_size=30)


@given(steps=_STEPS, workers=st.integers(1, 5), outcomes=st.lists(st.sampled_from(["ok", "no", "raise"]), max_size=40))
@settings(max_examples=80)
def test_a_key_is_never_worked_on_twice_at_once_and_every_add_is_followed_by_a_look(steps, workers, outcomes):
    added: dict[str, float] = {}
    begun: dict[str, list[float]] = defaultdict(list)
    active: set[str] = set()
    plan = iter(outcomes)

    async def main() -> None:
        clock = VirtualClock()
        queue = make_queue()

        async def reconcile(key: str) -> bool:
            assert key not in active
            active.add(key)
            begun[key].append(clock.monotonic())
            await clock.sleep(0.3)
            active.discard(key)
            outcome = next(plan, "ok")
            if outcome == "raise":
                raise RuntimeError("a look failed")
            return outcome == "ok"

        async def feed() -> None:
            for key, pause, how in steps:
                await clock.sleep(pause)
                added[key] = clock.monotonic()
                if how == "add":
                    queue.add(key)
                else:  # an earlier wish for the same key may serve this one too
                    queue.add_after(key, pause)
            await clock.sleep(1000)

        task = asyncio.ensure_future(queue.run(reconcile, workers=workers))
        await feed()
        assert len(queue) == 0 and not active
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(main())
    for key, wanted in added.items():
        # 1e-9: a delay is due the very instant that its timer was set for, give or take a rounding.
        assert begun[key], f"{key} was never looked at"
        assert max(begun[key]) >= wanted - 1e-9


def test_a_burst_of_adds_is_one_look():
    reconciles: list[str] = []

    async def main() -> None:
        queue = make_queue()

        async def reconcile(key: str) -> bool:
            reconciles.append(key)
            return True

        for _ in range(100):
            queue.add("a")
        await drain(queue, reconcile, workers=4, seconds=1)

    run(main())
    assert reconciles == ["a"]


def test_an_add_during_a_look_is_another_look_after_it():
    reconciles: list[str] = []

    async def main() -> None:
        queue = make_queue()

        async def reconcile(key: str) -> bool:
            reconciles.append(key)
            if len(reconciles) == 1:
                queue.add(key)
                queue.add(key)
            return True

        queue.add("a")
        await drain(queue, reconcile, workers=3, seconds=1)

    run(main())
    assert reconciles == ["a", "a"]


def test_failures_wait_longer_each_time_and_success_ends_the_row():
    times: list[float] = []
    failing = {"left": 6}

    async def main() -> None:
        clock = VirtualClock()
        queue = make_queue(retry=Backoff(initial=1.0, limit=8.0, jitter=0.0))

        async def reconcile(key: str) -> bool:
            times.append(clock.monotonic())
            failing["left"] -= 1
            return failing["left"] < 0

        queue.add("a")
        await drain(queue, reconcile, workers=1, seconds=100)
        assert queue.failures("a") == 0

    run(main())
    assert [round(after - before) for before, after in pairwise(times)] == [1, 2, 4, 8, 8, 8]


def test_of_several_delays_the_earliest_counts_and_counts_once():
    times: list[float] = []

    async def main() -> None:
        clock = VirtualClock()
        queue = make_queue()

        async def reconcile(key: str) -> bool:
            times.append(clock.monotonic())
            return True

        queue.add_after("a", 30)
        queue.add_after("a", 5)
        queue.add_after("a", 10)
        await drain(queue, reconcile, workers=1, seconds=100)

    run(main())
    assert [round(moment) for moment in times] == [5]


def test_a_forgotten_key_isnt_looked_at_when_its_delay_is_over():
    reconciles: list[str] = []

    async def main() -> None:
        queue = make_queue()

        async def reconcile(key: str) -> bool:
            reconciles.append(key)
            return True

        queue.add_after("a", 5)
        queue.forget("a")
        await drain(queue, reconcile, workers=1, seconds=100)

    run(main())
    assert reconciles == []


def test_a_key_that_yields_lets_the_others_go_first_but_not_for_ever():
    reconciles: list[str] = []

    async def main() -> None:
        queue = make_queue(yields=str.isupper)

        async def reconcile(key: str) -> bool:
            reconciles.append(key)
            return True

        for key in "AB":
            queue.add(key)
        for key in "abcdefghijklmnopq":
            queue.add(key)
        assert len(queue) == 19
        await drain(queue, reconcile, workers=1, seconds=1)

    run(main())
    assert "".join(reconciles) == "abcdefgAhijklmnBopq"


def test_without_others_keys_that_yield_are_looked_at_in_their_order():
    reconciles: list[str] = []

    async def main() -> None:
        queue = make_queue(yields=str.isupper)

        async def reconcile(key: str) -> bool:
            reconciles.append(key)
            if key == "A":
                queue.add("a")
            return True

        for key in "ABC":
            queue.add(key)
        await drain(queue, reconcile, workers=1, seconds=1)

    run(main())
    assert reconciles == ["A", "a", "B", "C"]


def test_a_queue_says_for_how_long_nothing_was_taken_from_it():
    async def main() -> None:
        clock = VirtualClock()
        queue: WorkQueue[str] = WorkQueue(clock=clock, random=SeededRandom(1))
        await clock.sleep(1000)
        assert queue.waiting_for() == 0
        queue.add("a")
        queue.add("b")
        await clock.sleep(50)
        assert queue.waiting_for() == 50
        await queue.get()
        assert queue.waiting_for() == 0
        await clock.sleep(20)
        assert queue.waiting_for() == 20
        await queue.get()
        await clock.sleep(20)
        assert queue.waiting_for() == 0

    run(main())


def test_a_key_wakes_one_of_the_workers_that_wait() -> None:
    async def main() -> None:
        queue = make_queue()
        waiting = [asyncio.ensure_future(queue.get()) for _ in range(3)]
        await asyncio.sleep(0)
        queue.add("a")
        await asyncio.sleep(1)
        assert [task.done() for task in waiting] == [True, False, False]
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    run(main())


def test_a_key_whose_worker_is_cancelled_goes_to_the_next_one() -> None:
    async def main() -> None:
        queue = make_queue()
        first, gone, last = (asyncio.ensure_future(queue.get()) for _ in range(3))
        await asyncio.sleep(0)
        gone.cancel()
        queue.add("a")
        first.cancel()
        assert await asyncio.wait_for(last, timeout=1) == "a"
        await asyncio.gather(first, gone, return_exceptions=True)

    run(main())
