"""Events: counted, combined, limited, short, and never a reason for anything else to fail."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from tests.fakes.api import FakeApi
from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.api.resources import EVENTS, JOBS, QUEUES, Resource
from vcbatch.core.machine import Emit, EventType, ObjectRef
from vcbatch.interfaces.api import ApiError
from vcbatch.runtime.events.recorder import Recorder


def make(server: object, **options: object) -> Recorder:
    return Recorder(server, clock=VirtualClock(), random=SeededRandom(1), component="test", **options)  # type: ignore[arg-type]


def about(reason: str, message: str, *, uid: str = "uid", namespace: str = "ns", resource: Resource = JOBS) -> Emit:
    ref = ObjectRef(resource=resource, namespace=namespace, name="thing", uid=uid)
    return Emit(ref=ref, type=EventType.WARNING, reason=reason, message=message)


def test_equal_events_are_one_object_with_a_count():
    async def main() -> list[dict]:
        server = FakeApi()
        recorder = make(server)
        for _ in range(5):
            recorder.emit(about("Failed", "no room"))
        await recorder.flush()
        return server.all(EVENTS)

    (event,) = run(main())
    assert (event["count"], event["reason"], event["message"]) == (5, "Failed", "no room")
    assert event["involvedObject"] == {
        "kind": "Job", "apiVersion": "batch.volcano.sh/v1alpha1", "name": "thing", "namespace": "ns", "uid": "uid",
    }  # fmt: skip


def test_an_old_event_isnt_counted_up_for_ever():
    async def main() -> list[dict]:
        server = FakeApi()
        recorder = make(server)
        recorder.emit(about("Failed", "no room"))
        await recorder.flush()
        await asyncio.sleep(3600)
        recorder.emit(about("Failed", "no room"))
        await recorder.flush()
        return server.all(EVENTS)

    assert [event["count"] for event in run(main())] == [1, 1]


def test_many_messages_of_one_reason_are_combined():
    async def main() -> list[dict]:
        server = FakeApi()
        recorder = make(server)
        for number in range(20):
            recorder.emit(about("Failed", f"pod {number} failed"))
        await recorder.flush()
        return server.all(EVENTS)

    events = run(main())
    assert len(events) == 11
    assert events[-1]["message"].startswith("(combined from similar events)")
    assert events[-1]["count"] == 10


def test_one_noisy_object_takes_nothing_from_the_others():
    dropped: list[int] = []

    async def main() -> list[dict]:
        server = FakeApi()
        recorder = make(server, on_drop=dropped.append)
        for number in range(100):
            recorder.emit(about(f"Reason{number}", "noise", uid="noisy"))
        recorder.emit(about("Failed", "quiet", uid="quiet"))
        await recorder.flush()
        return server.all(EVENTS)

    events = run(main())
    assert len([event for event in events if event["involvedObject"]["uid"] == "noisy"]) == 25
    assert len([event for event in events if event["involvedObject"]["uid"] == "quiet"]) == 1
    assert sum(dropped) == 75


def test_an_event_that_expired_on_the_server_is_made_anew():
    async def main() -> list[dict]:
        server = FakeApi()
        recorder = make(server)
        recorder.emit(about("Failed", "no room"))
        await recorder.flush()
        server.remove(EVENTS, server.all(EVENTS)[0]["metadata"]["name"], "ns")
        recorder.emit(about("Failed", "no room"))
        await recorder.flush()
        return server.all(EVENTS)

    assert [event["count"] for event in run(main())] == [1]


def test_messages_stay_under_a_kibibyte_and_names_under_the_limit():
    async def main() -> dict:
        server = FakeApi()
        recorder = make(server)
        recorder.emit(about("Failed", "ä" * 5000))
        await recorder.flush()
        return server.all(EVENTS)[0]

    event = run(main())
    assert len(event["message"].encode()) <= 1024
    assert len(event["metadata"]["name"]) <= 253


def test_events_of_cluster_scoped_objects_are_in_default():
    async def main() -> dict:
        server = FakeApi()
        recorder = make(server)
        recorder.emit(about("Closed", "bye", namespace="", resource=QUEUES))
        await recorder.flush()
        return server.all(EVENTS)[0]

    event = run(main())
    assert event["metadata"]["namespace"] == "default"
    assert "namespace" not in event["involvedObject"]


@pytest.mark.parametrize("code", [403, 500])
def test_a_server_that_refuses_events_stops_nothing(code: int):
    class Refusing:
        async def create(self, *_: object, **__: object) -> None:
            raise ApiError(code, "", "no events here")

    dropped: list[int] = []

    async def main() -> None:
        recorder = make(Refusing(), on_drop=dropped.append)
        task = asyncio.ensure_future(recorder.run())
        recorder.emit(about("A", "a"))
        recorder.emit(about("B", "b"))
        await asyncio.sleep(1)
        assert not task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(main())
    assert sum(dropped) == 2


class Away(FakeApi):
    """Doesn't answer the next so many writes; `late`: it carries them out all the same."""

    def __init__(self, times: int, *, late: bool = False) -> None:
        super().__init__()
        self.left = times
        self._late = late

    async def create(self, *what: Any, **more: Any) -> Any:
        return await self._answer(super().create(*what, **more))

    async def patch(self, *what: Any, **more: Any) -> Any:
        return await self._answer(super().patch(*what, **more))

    async def _answer(self, write: Coroutine[Any, Any, Any]) -> Any:
        if not self.left:
            return await write
        self.left -= 1
        if self._late:
            await write
        else:
            write.close()
        raise ApiError(0, "", "connection lost")


@pytest.mark.parametrize("late", [False, True])
def test_a_server_that_comes_back_is_told_once(late: bool):
    dropped: list[int] = []

    async def main() -> list[dict]:
        server = Away(3, late=late)
        recorder = make(server, on_drop=dropped.append)
        recorder.emit(about("Failed", "no room"))
        recorder.emit(about("Other", "no room"))
        await recorder.flush()
        server.left = 3
        recorder.emit(about("Failed", "no room"))
        await recorder.flush()
        return server.all(EVENTS)

    assert [(event["reason"], event["count"]) for event in run(main())] == [("Failed", 2), ("Other", 1)]
    assert not dropped


def test_a_server_that_stays_away_is_given_up():
    dropped: list[int] = []

    async def main() -> list[dict]:
        server = Away(12)
        recorder = make(server, on_drop=dropped.append)
        recorder.emit(about("Failed", "no room"))
        recorder.emit(about("Other", "no room"))
        await recorder.flush()
        return server.all(EVENTS)

    assert [event["reason"] for event in run(main())] == ["Other"]
    assert sum(dropped) == 1


def test_a_flood_is_bounded_before_anything_is_sent():
    dropped: list[int] = []

    async def main() -> int:
        recorder = make(FakeApi(), on_drop=dropped.append)
        for number in range(20_000):
            recorder.emit(about("Failed", "no room", uid=f"uid-{number}"))
        await recorder.flush()
        return sum(dropped)

    assert run(main()) == 10_000
