"""Parts of a program: started again, or the end of it; never silently gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.hosting.health import STEADY_SECONDS, Health
from vcbatch.hosting.supervise import Background, Part, PartFailedError, Supervisor, never


def supervisor() -> Supervisor:
    return Supervisor(clock=VirtualClock(), random=SeededRandom(1))


def test_a_part_that_fails_is_started_again():
    starts: list[int] = []

    async def main() -> None:
        async def shaky() -> None:
            starts.append(1)
            if len(starts) < 4:
                raise RuntimeError("not yet")
            await never()

        task = asyncio.ensure_future(supervisor().run(Part(name="shaky", run=shaky)))
        await asyncio.sleep(60)
        assert not task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(main())
    assert len(starts) == 4


@pytest.mark.parametrize("ends", [True, False])
def test_a_part_that_keeps_failing_ends_the_program_by_name(ends: bool):
    cancelled: list[int] = []

    async def main() -> None:
        async def broken() -> None:
            if not ends:
                raise RuntimeError("out of order")

        async def other() -> None:
            try:
                await never()
            finally:
                cancelled.append(1)

        with pytest.raises(PartFailedError, match="broken failed for good"):
            await supervisor().run(Part(name="broken", run=broken), Part(name="other", run=other))

    run(main())
    assert cancelled


def test_a_part_that_must_not_be_restarted_ends_the_program_at_once():
    async def main() -> None:
        async def broken() -> None:
            raise RuntimeError("out of order")

        with pytest.raises(PartFailedError, match="RuntimeError: out of order"):
            await supervisor().run(Part(name="broken", run=broken, restart=False))

    run(main())


def test_failures_far_apart_dont_add_up():
    starts: list[int] = []

    async def main() -> None:
        async def rarely() -> None:
            starts.append(1)
            await asyncio.sleep(600)
            raise RuntimeError("now and then")

        task = asyncio.ensure_future(supervisor().run(Part(name="rarely", run=rarely)))
        await asyncio.sleep(6000)
        assert not task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(main())
    assert len(starts) >= 9


def in_background(check: Callable[[Background], Any]) -> None:
    async def main() -> None:
        clock = VirtualClock()
        background = Background(clock=clock, random=SeededRandom(1), health=Health(clock))
        try:
            await check(background)
        finally:
            await background.close()
        assert background.health.tasks() == []

    run(main())


def test_a_kept_task_is_restarted_for_as_long_as_it_takes_and_is_unhealthy_meanwhile(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failures = 20

    async def check(background: Background) -> None:
        starts: list[int] = []

        async def shaky() -> None:
            starts.append(1)
            if len(starts) <= failures:
                raise RuntimeError("no luck")
            await never()

        background.keep("shaky", shaky)
        while len(starts) <= failures:
            await asyncio.sleep(0.1)
            if len(starts) <= failures:
                assert background.health.error() == "shaky: RuntimeError: no luck"
        await asyncio.sleep(STEADY_SECONDS)
        assert background.health.error() == ""

    in_background(check)
    assert caplog.text.count("shaky failed, restarting") == failures


def test_a_kept_task_that_ends_is_started_again() -> None:
    async def check(background: Background) -> None:
        starts: list[int] = []

        async def short() -> None:
            starts.append(1)

        background.keep("short", short)
        await asyncio.sleep(60)
        assert len(starts) > 1
        assert background.health.error() == "short: it ended"

    in_background(check)


def test_a_task_that_finishes_is_repeated_only_where_it_failed() -> None:
    async def check(background: Background) -> None:
        starts: list[int] = []

        async def work() -> None:
            starts.append(1)
            if len(starts) == 1:
                raise RuntimeError("no luck")

        task = background.finish("work", work, about="pod/a")
        await asyncio.sleep(0.01)
        assert background.health.errors() == {"work of pod/a": "RuntimeError: no luck"}
        await task
        assert len(starts) == 2
        assert background.health.errors() == {}

    in_background(check)


def test_what_is_done_once_is_logged_where_it_fails(caplog: pytest.LogCaptureFixture) -> None:
    async def check(background: Background) -> None:
        async def work() -> None:
            raise RuntimeError("no luck")

        await background.once("a request", work, about="pod/a")
        assert background.health.errors() == {}

    in_background(check)
    assert "a request of pod/a failed" in caplog.text
    assert "no luck" in caplog.text


def test_failures_are_counted_by_kind_and_not_by_object() -> None:
    async def check(background: Background) -> None:
        counted: list[str] = []
        background.health.on_failure = counted.append

        async def work() -> None:
            raise RuntimeError("no luck")

        background.finish("work", work, about="pod/a")
        await asyncio.sleep(0.01)
        assert counted == ["work"]

    in_background(check)


def test_a_task_that_crashes_in_a_loop_never_looks_healthy() -> None:
    async def check(background: Background) -> None:
        async def work() -> None:
            await asyncio.sleep(STEADY_SECONDS / 2)
            raise RuntimeError("again")

        background.keep("work", work)
        await asyncio.sleep(STEADY_SECONDS)
        for _ in range(1000):
            await asyncio.sleep(0.1)
            assert background.health.error()

    in_background(check)


def test_a_part_that_failed_is_unhealthy_until_it_ran_for_a_while() -> None:
    async def main() -> None:
        starts: list[int] = []
        watched = supervisor()

        async def shaky() -> None:
            starts.append(1)
            if len(starts) == 1:
                raise ExceptionGroup("a group", [ExceptionGroup("inside", [RuntimeError("the first")])])
            await never()

        task = asyncio.ensure_future(watched.run(Part(name="shaky", run=shaky)))
        await asyncio.sleep(1)
        assert watched.health.errors() == {"shaky": "RuntimeError: the first"}
        await asyncio.sleep(STEADY_SECONDS)
        assert watched.health.errors() == {}
        assert watched.health.tasks() == ["shaky"]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(main())
