"""The reflector: whatever becomes of its watches, the cache ends up equal to the server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.api import FakeApi, StreamingFakeApi
from tests.fakes.faults import Fault, FaultyApi, by_chance
from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.api.resources import PODS
from vcbatch.interfaces.api import ApiError, WatchEvent
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.caches.watch import ASKED, Reflector

_ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["create", "patch", "delete", "break", "forget", "wait"]), st.integers(0, 4), st.floats(0, 20)
    ),
    max_size=40,
)


@given(actions=_ACTIONS, seed=st.integers(0, 2**16), share=st.floats(0, 0.6), streams=st.booleans())
@settings(max_examples=80)
def test_the_cache_becomes_the_truth_under_any_loss(actions, seed, share, streams):
    async def main() -> None:
        server, clock = StreamingFakeApi() if streams else FakeApi(), VirtualClock()
        errors = by_chance(seed, share, (Fault.REFUSED, Fault.BUSY, Fault.BROKEN, Fault.LOST))
        faulty = {"on": True}

        def plan():
            while True:
                yield next(errors) if faulty["on"] else Fault.NONE

        cache: Cache[dict] = Cache()
        api = FaultyApi(server, plan(), verbs=("list", "watch", "watch_list"))
        reflector = Reflector(api, PODS, cache, clock=clock, random=SeededRandom(seed))  # type: ignore[arg-type]
        task = asyncio.ensure_future(reflector.run())
        for action, number, pause in actions:
            name = f"pod-{number}"
            exists = (PODS, "ns", name) in server.objects
            if action == "create" and not exists:
                server.seed(PODS, {"metadata": {"name": name, "namespace": "ns"}})
            elif action == "patch" and exists:
                await server.patch(PODS, name, {"spec": {"nodeName": str(pause)}}, namespace="ns")
            elif action == "delete" and exists:
                server.remove(PODS, name, "ns")
            elif action == "break":
                server.break_watches()
            elif action == "forget":
                server.forget_history()
            await clock.sleep(pause)
        faulty["on"] = False
        await clock.sleep(120)
        key = lambda item: item["metadata"]["name"]  # noqa: E731
        assert sorted(cache, key=key) == sorted(server.all(PODS), key=key)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(main())


def test_a_watch_that_ends_goes_on_where_it_was_without_a_list():
    async def main() -> None:
        server, clock = FakeApi(), VirtualClock()
        cache: Cache[dict] = Cache()
        reflector = Reflector(server, PODS, cache, clock=clock, random=SeededRandom(1))
        task = asyncio.ensure_future(reflector.run())
        await reflector.synced.wait()
        for number in range(5):
            server.break_watches()
            server.seed(PODS, {"metadata": {"name": f"p{number}", "namespace": "ns"}})
            await clock.sleep(60)
        assert server.lists == 1
        assert len(cache) == 5
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(main())


def test_deletions_that_happened_during_an_outage_are_told():
    async def main() -> None:
        server, clock = FakeApi(), VirtualClock()
        cache: Cache[dict] = Cache()
        relists: list[int] = []
        gone: list[str] = []
        server.seed(PODS, {"metadata": {"name": "p", "namespace": "ns"}})
        cache.listen(lambda change: gone.append(change.current["metadata"]["name"]) if change.new is None else None)
        reflector = Reflector(
            server, PODS, cache, clock=clock, random=SeededRandom(1), on_relist=lambda count: relists.append(count)
        )
        task = asyncio.ensure_future(reflector.run())
        await reflector.synced.wait()
        server.remove(PODS, "p", "ns")
        server.forget_history()
        await clock.sleep(60)
        assert gone == ["p"]
        assert relists == [1]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(main())


def test_a_server_that_comes_back_without_its_history_is_listed_at_once():
    async def main() -> None:
        server, clock = FakeApi(), VirtualClock()
        reported: list[tuple[str, float]] = []

        class Away:
            down = False

            async def list(self, *args: Any, **options: Any) -> Any:
                reported.append(("list", clock.monotonic()))
                return await server.list(*args, **options)

            async def watch(self, *_: object, **__: object) -> AsyncIterator[Any]:
                await clock.sleep(2)
                if self.down:
                    raise ApiError(0, "ConnectionLost", "connection refused")
                reported.append(("expired", clock.monotonic()))
                raise ApiError(410, "Expired", "too old resource version")
                yield

        away = Away()
        away.down = True
        reflector = Reflector(away, PODS, Cache(), clock=clock, random=SeededRandom(1))  # type: ignore[arg-type]
        task = asyncio.ensure_future(reflector.run())
        await clock.sleep(120)
        away.down = False
        await clock.sleep(3600)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        expired, relisted = reported[1:3]
        assert (expired[0], relisted[0]) == ("expired", "list")
        assert relisted[1] == expired[1]
        # A server that lists and then never knows its own list isn't asked without a pause for ever.
        assert len(reported) < 1000

    run(main())


def test_a_server_that_is_down_is_asked_less_and_less_often():
    async def main() -> None:
        server, clock = FakeApi(), VirtualClock()
        calls: list[float] = []

        class Down:
            async def list(self, *_: object, **__: object) -> None:
                calls.append(clock.monotonic())
                raise ApiError(0, "ConnectionLost", "connection refused")

            watch = server.watch

        reflector = Reflector(Down(), PODS, Cache(), clock=clock, random=SeededRandom(1))  # type: ignore[arg-type]
        task = asyncio.ensure_future(reflector.run())
        await clock.sleep(600)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert calls[1] - calls[0] < 0.1
        assert len(calls) < 150

    run(main())


async def _following(server: FakeApi, cache: Cache[dict], clock: VirtualClock, *, seconds: float) -> None:
    reflector = Reflector(server, PODS, cache, clock=clock, random=SeededRandom(1))
    task = asyncio.ensure_future(reflector.run())
    await reflector.synced.wait()
    await clock.sleep(seconds)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_a_server_that_streams_what_exists_is_never_listed():
    async def main() -> None:
        server, clock = StreamingFakeApi(), VirtualClock()
        for number in range(3):
            server.seed(PODS, {"metadata": {"name": f"p{number}", "namespace": "ns"}})
        cache: Cache[dict] = Cache()
        following = asyncio.ensure_future(_following(server, cache, clock, seconds=60))
        await clock.sleep(10)
        server.remove(PODS, "p0", "ns")
        server.forget_history()
        server.break_watches()
        await following
        assert sorted(pod["metadata"]["name"] for pod in cache) == ["p1", "p2"]
        assert (server.lists, server.streamed) == (0, 2)

    run(main())


@pytest.mark.parametrize("code", [400, 405, 422])
def test_a_server_that_cant_stream_is_asked_once_and_listed(code: int):
    class Refusing(StreamingFakeApi):
        async def watch_list(self, resource: Any, *, model: Any = dict) -> AsyncIterator[Any]:
            self.streamed += 1
            raise ApiError(code, "Invalid", "sendInitialEvents is forbidden for watch")
            yield

    async def main() -> None:
        server, clock = Refusing(), VirtualClock()
        server.seed(PODS, {"metadata": {"name": "p", "namespace": "ns"}})
        cache: Cache[dict] = Cache()
        following = asyncio.ensure_future(_following(server, cache, clock, seconds=60))
        await clock.sleep(10)
        server.seed(PODS, {"metadata": {"name": "q", "namespace": "ns"}})
        server.forget_history()
        server.break_watches()
        await following
        assert len(cache) == 2
        assert (server.lists, server.streamed) == (2, 1)

    run(main())


def test_a_stream_that_ends_in_the_middle_says_nothing_of_deletions():
    class Cut(StreamingFakeApi):
        async def watch_list(self, resource: Any, *, model: Any = dict) -> AsyncIterator[Any]:
            self.streamed += 1
            yield WatchEvent(type="ADDED", object=self.all(PODS)[0], resource_version="1")

    async def main() -> None:
        server, clock = Cut(), VirtualClock()
        for number in range(3):
            server.seed(PODS, {"metadata": {"name": f"p{number}", "namespace": "ns"}})
        cache: Cache[dict] = Cache()
        gone: list[object] = []
        cache.listen(lambda change: gone.append(change) if change.new is None else None)
        await _following(server, cache, clock, seconds=60)
        assert len(cache) == 3 and not gone
        assert (server.lists, server.streamed) == (1, 1)

    run(main())


def test_nothing_exists_of_a_kind_that_the_server_does_not_know_until_it_does():
    async def main() -> None:
        server, clock = FakeApi(), VirtualClock()
        cache: Cache[dict] = Cache()

        class Served:
            known = False

            async def list(self, *args: Any, **options: Any) -> Any:
                if not self.known:
                    raise ApiError(404, "NotFound", "the server could not find the requested resource")
                return await server.list(*args, **options)

            async def watch(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
                if not self.known:
                    raise ApiError(404, "NotFound", "the server could not find the requested resource")
                async for event in server.watch(*args, **options):
                    yield event

        served = Served()
        reflector = Reflector(
            served,  # type: ignore[arg-type]
            PODS,
            cache,
            clock=clock,
            random=SeededRandom(1),
            optional=True,
        )
        task = asyncio.ensure_future(reflector.run())
        await asyncio.wait_for(reflector.synced.wait(), 5)
        assert len(cache) == 0
        server.seed(PODS, {"metadata": {"name": "p", "namespace": "ns"}})
        served.known = True
        await clock.sleep(120)
        assert [pod["metadata"]["name"] for pod in cache] == ["p"]
        served.known = False
        server.break_watches()
        await clock.sleep(120)
        assert len(cache) == 0, "what was known of the kind went with it"
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(main())


class Answering(FakeApi):
    """Refuses lists and watches with `error`, where there is one."""

    error: ApiError | None = None

    async def list(self, resource: Any, **options: Any) -> Any:
        if self.error is not None:
            raise self.error
        return await super().list(resource, **options)

    async def watch(self, resource: Any, **options: Any) -> AsyncIterator[Any]:
        if self.error is not None:
            raise self.error
        async for event in super().watch(resource, **options):
            yield event


def test_a_cache_that_is_followed_has_no_fault_however_little_happens():
    async def main() -> None:
        server, clock = Answering(), VirtualClock()
        reflector = Reflector(server, PODS, Cache[dict](), clock=clock, random=SeededRandom(1))
        task = asyncio.ensure_future(reflector.run())
        for _ in range(40):
            assert reflector.error() == ""
            await clock.sleep(30)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(main())


@pytest.mark.parametrize("away", [1, 5, 15, 30, 60])
@pytest.mark.parametrize("refused", [False, True])
def test_those_whom_api_servers_ask_are_well_while_one_restarts_and_afterwards(away: int, refused: bool):
    """A server that starts forbids everything until it knows the roles. Nobody would be asked in their place."""

    async def main() -> None:
        server, clock = Answering(), VirtualClock()
        reflector = Reflector(server, PODS, Cache[dict](), clock=clock, random=SeededRandom(1))
        task = asyncio.ensure_future(reflector.run())
        await clock.sleep(400)

        async def watch(seconds: int) -> None:
            for _ in range(4 * seconds):
                await clock.sleep(0.25)
                assert reflector.error(ASKED) == ""

        server.error = ApiError(0, "ConnectionLost", "refused")
        server.break_watches()
        await watch(away)
        if refused:
            server.error = ApiError(403, "Forbidden", 'User "x" cannot watch')
            await watch(15)
        server.error = None
        await watch(90)
        server.error = ApiError(403, "Forbidden", 'User "x" cannot watch')
        server.break_watches()
        await clock.sleep(45)
        assert reflector.error(ASKED) == "pods: the server forbids it (403)"
        server.error = ApiError(0, "ConnectionLost", "refused")
        await clock.sleep(120)
        assert reflector.error(ASKED).startswith("pods: not followed for")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(main())


@pytest.mark.parametrize(
    ("error", "seconds", "message"),
    [
        (ApiError(403, "Forbidden", 'User "x" cannot watch'), 1, "pods: the server forbids it (403)"),
        (ApiError(401, "Unauthorized", "bad token"), 1, "pods: the server refuses the credentials (401)"),
        (ApiError(0, "ConnectionLost", "refused"), 1, ""),
        (ApiError(0, "ConnectionLost", "refused"), 60, "pods: not followed for"),
        (ApiError(500, "InternalError", "no luck"), 60, "pods: not followed for"),
    ],
)
def test_a_cache_that_cant_be_followed_says_so_until_it_is(error: ApiError, seconds: float, message: str):
    async def main() -> None:
        server, clock = Answering(), VirtualClock()
        reflector = Reflector(server, PODS, Cache[dict](), clock=clock, random=SeededRandom(1))
        task = asyncio.ensure_future(reflector.run())
        await clock.sleep(400)
        server.error = error
        server.break_watches()
        await clock.sleep(seconds)
        assert reflector.error().startswith(message)
        assert bool(reflector.error()) is bool(message)
        server.error = None
        await clock.sleep(30)
        assert reflector.error() == ""
        # What was is over: a short trouble later isn't added to it.
        await clock.sleep(3600)
        server.error = ApiError(0, "ConnectionLost", "refused")
        server.break_watches()
        await clock.sleep(5)
        assert reflector.error() == ""
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(main())
