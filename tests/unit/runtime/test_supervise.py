"""Parts of a program: started again, or the end of it; never silently gone."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.runtime.supervise import Part, PartFailedError, Supervisor, never


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
