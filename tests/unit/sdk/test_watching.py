"""Following objects over everything that happens to watches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.fakes.api import FakeApi
from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.api.resources import JOBS
from vcbatch.interfaces.api import ApiError
from vcbatch.sdk.watching import changes


def job(name: str, *, uid: str = "", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", **({"uid": uid} if uid else {})}
    return {"metadata": metadata, "spec": spec}


class Report:
    """What `changes` told so far."""

    def __init__(self, api: FakeApi, **options: Any) -> None:
        self.batches: list[list[str]] = []
        self._options = {"clock": VirtualClock(), "random": SeededRandom(1), **options}
        self.task = asyncio.create_task(self._read(api))

    async def _read(self, api: FakeApi) -> None:
        async for batch in changes(api, JOBS, **self._options):
            self.batches.append(
                [f"{'-' if change.deleted else ''}{change.object['metadata']['uid']}" for change in batch]
            )


def test_what_exists_comes_first_even_when_it_is_nothing():
    async def main() -> None:
        api = FakeApi()
        reported = Report(api)
        await asyncio.sleep(1)
        api.seed(JOBS, job("a"))
        await asyncio.sleep(1)
        assert reported.batches == [[], ["uid-1"]]
        reported.task.cancel()

    run(main())


def test_a_forgotten_history_is_compared_deletions_first():
    async def main() -> None:
        api = FakeApi()
        api.seed(JOBS, job("a"))
        api.seed(JOBS, job("b"))
        reported = Report(api)
        await asyncio.sleep(1)
        api.break_watches()
        api.remove(JOBS, "a", "default")
        api.seed(JOBS, job("a"))
        api.forget_history()
        await asyncio.sleep(60)
        assert reported.batches == [["uid-1", "uid-2"], ["-uid-1", "uid-3"]]
        reported.task.cancel()

    run(main())


def test_a_broken_watch_goes_on_where_it_was():
    async def main() -> None:
        api = FakeApi()
        reported = Report(api)
        for number in range(3):
            await asyncio.sleep(60)
            api.break_watches()
            api.seed(JOBS, job(f"job-{number}"))
        await asyncio.sleep(60)
        assert reported.batches == [[], ["uid-1"], ["uid-2"], ["uid-3"]]
        assert api.lists == 1
        reported.task.cancel()

    run(main())


class Refusing(FakeApi):
    """Watches fail in one way."""

    def __init__(self, error: ApiError | None) -> None:
        super().__init__()
        self.error = error
        self.tries = 0

    async def watch(self, *_: Any, **__: Any) -> AsyncIterator[Any]:  # type: ignore[override]
        self.tries += 1
        if self.error is not None:
            raise self.error
        return
        yield


@pytest.mark.parametrize(
    "error",
    [ApiError(0, "ConnectionLost", "gone"), ApiError(503, "ServiceUnavailable", "later"), ApiError(410, "Expired", "")],
)
def test_a_server_that_stays_out_of_reach_is_an_error_in_the_end(error: ApiError):
    async def main() -> None:
        api = Refusing(error)
        reported = Report(api, patience=100.0)
        if error.expired:  # which is no sign that it is out of reach: each list works
            await asyncio.sleep(1000)
            assert not reported.task.done()
            reported.task.cancel()
        else:
            with pytest.raises(ApiError):
                await reported.task
        assert 10 < api.tries < 300  # it was tried again, with pauses

    run(main())


def test_watches_that_end_at_once_are_opened_with_pauses():
    async def main() -> None:
        api = Refusing(None)
        reported = Report(api)
        await asyncio.sleep(100)
        assert api.tries < 50
        reported.task.cancel()

    run(main())


def test_a_refusal_is_raised_at_once():
    async def main() -> None:
        reported = Report(Refusing(ApiError(403, "Forbidden", "no")))
        with pytest.raises(ApiError):
            await reported.task

    run(main())


def test_trouble_is_told_once_trying_again_did_not_help():
    async def main() -> None:
        api = FakeApi()
        heard: list[int] = []
        failures = 1

        async def list_(*_: Any, **__: Any) -> Any:
            nonlocal failures
            if failures:
                failures -= 1
                raise ApiError(503, "ServiceUnavailable", "not now")
            return await listing()

        async def listing() -> Any:
            return await FakeApi.list(api, JOBS)

        api.list = list_  # type: ignore[method-assign]
        one = Report(api, on_trouble=lambda error: heard.append(error.code))
        await asyncio.sleep(1)
        assert (one.batches, heard) == ([[]], [])
        failures = 3
        two = Report(api, on_trouble=lambda error: heard.append(error.code))
        await asyncio.sleep(60)
        assert (two.batches, heard) == ([[]], [503, 503])
        one.task.cancel()
        two.task.cancel()

    run(main())
