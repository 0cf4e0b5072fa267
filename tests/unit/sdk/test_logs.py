"""The log of a gang: every line once, in the order of its container, whatever happens to pods and connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.logs import Cut, GangApi
from tests.support.virtual_time import SeededRandom, VirtualClock, run
from vcbatch.api.resources import JOBS
from vcbatch.interfaces.api import ApiError
from vcbatch.sdk import logs
from vcbatch.sdk.logs import LogLine, follow_job


def reported(api: GangApi, **options: Any) -> AsyncIterator[LogLine]:
    return follow_job(api, namespace="default", name="train", clock=VirtualClock(), random=SeededRandom(1), **options)


async def read(api: GangApi, story: Any = None, **options: Any) -> list[LogLine]:
    """All lines, while `story` happens to the gang: a step a second, or so many seconds of nothing."""

    async def happen() -> None:
        for step in story or ():
            await asyncio.sleep(1.0)
            if callable(step):
                step()
            else:
                await asyncio.sleep(step)

    happening = asyncio.create_task(happen())
    lines = [line async for line in reported(api, **options)]
    await happening
    return lines


def texts(lines: list[LogLine], pod: str = "") -> list[str]:
    return [line.text for line in lines if not pod or line.pod == pod]


def test_lines_of_all_pods_come_until_the_job_has_finished():
    async def main() -> None:
        api = GangApi()
        first, second = api.pod(0), api.pod(1)
        lines = await read(
            api,
            [
                lambda: api.start(first),
                lambda: api.print(first, "a", "b", seconds=1),
                lambda: api.start(second),
                lambda: api.print(second, "c", seconds=1),
                lambda: api.exit(first, phase="Succeeded"),
                lambda: api.exit(second, phase="Succeeded"),
                lambda: api.phase("Completed"),
            ],
        )
        assert texts(lines) == ["a", "b", "c"]
        assert [(line.task, line.index, line.container, line.restart) for line in lines] == [
            ("worker", 0, "main", 0),
            ("worker", 0, "main", 0),
            ("worker", 1, "main", 0),
        ]
        assert lines[2].time is not None and lines[2].time - lines[0].time == timedelta(seconds=1)  # type: ignore[operator]

    run(main())


def test_a_job_that_has_finished_before_is_read_to_its_end():
    async def main() -> None:
        api = GangApi()
        pod = api.pod(0)
        api.start(pod)
        api.print(pod, "a", "b")
        api.exit(pod, phase="Succeeded")
        api.phase("Completed")
        assert texts(await read(api)) == ["a", "b"]

    run(main())


def test_the_restart_of_a_container_is_followed():
    async def main() -> None:
        api = GangApi()
        pod = api.pod(0)
        lines = await read(
            api,
            [
                lambda: api.start(pod),
                lambda: api.print(pod, "first"),
                lambda: api.exit(pod),
                lambda: api.start(pod),
                lambda: api.print(pod, "second"),  # in the same microsecond, of another run
                lambda: api.exit(pod, phase="Succeeded"),
                lambda: api.phase("Completed"),
            ],
        )
        assert [(line.text, line.restart) for line in lines] == [("first", 0), ("second", 1)]

    run(main())


def test_a_run_that_is_over_before_it_was_seen_is_read_as_the_previous_one():
    async def main() -> None:
        api = GangApi()
        pod = api.pod(0)

        def two_runs() -> None:
            api.start(pod)
            api.print(pod, "first")
            api.exit(pod, reported=False)
            api.start(pod)
            api.print(pod, "second")

        lines = await read(api, [two_runs, lambda: api.exit(pod, phase="Failed"), lambda: api.phase("Failed")])
        assert [(line.text, line.restart) for line in lines] == [("first", 0), ("second", 1)]

    run(main())


def test_the_pod_that_follows_in_the_same_name_is_another():
    async def main() -> None:
        api = GangApi()
        pod = api.pod(0)

        def again() -> None:
            api.vanish(pod)
            api.pod(0, retry=1)
            api.start(pod)
            api.print(pod, "after")

        lines = await read(
            api,
            [
                lambda: api.start(pod),
                lambda: api.print(pod, "before"),
                again,
                lambda: api.exit(pod, phase="Succeeded"),
                lambda: api.phase("Completed"),
            ],
        )
        assert [(line.text, line.restart) for line in lines] == [("before", 0), ("after", 1)]

    run(main())


def test_a_job_that_is_deleted_ends_the_log():
    async def main() -> None:
        api = GangApi()
        pod = api.pod(0)
        api.start(pod)
        api.print(pod, "a")

        def delete() -> None:
            api.remove(JOBS, "train", "default")
            api.vanish(pod)

        assert texts(await read(api, [delete])) == ["a"]

    run(main())


def test_a_suspended_job_goes_on_when_it_is_resumed():
    async def main() -> None:
        api = GangApi()
        pod = api.pod(0)
        api.start(pod)
        api.print(pod, "before")

        def resumed() -> None:
            api.pod(0, retry=1)
            api.start(pod)
            api.print(pod, "after")

        lines = await read(
            api,
            [
                lambda: api.vanish(pod),
                lambda: api.phase("Aborted"),
                resumed,
                lambda: api.exit(pod, phase="Succeeded"),
                lambda: api.phase("Completed"),
            ],
        )
        assert texts(lines) == ["before", "after"]

    run(main())


def test_a_pod_that_never_starts_holds_up_nothing():
    async def main() -> None:
        api = GangApi()
        api.pod(0)
        assert await read(api, [lambda: api.phase("Terminated")]) == []

    run(main())


@pytest.mark.parametrize("cut", list(Cut))
def test_a_connection_that_fails_is_taken_up_where_it_was(cut: Cut):
    async def main() -> None:
        api = GangApi([(3, cut), (1, cut)])
        pod = api.pod(0)
        lines = await read(
            api,
            [
                lambda: api.start(pod),
                lambda: api.print(pod, "1", "2", "3", "4", "5"),  # all at the same time
                lambda: api.print(pod, "6", "7", seconds=0.1),
                lambda: api.exit(pod, phase="Succeeded"),
                lambda: api.phase("Completed"),
            ],
        )
        assert texts(lines) == list("1234567")

    run(main())


@given(
    cuts=st.lists(st.none() | st.tuples(st.integers(0, 4), st.sampled_from(Cut)), max_size=5),
    bursts=st.lists(st.tuples(st.integers(0, 5), st.sampled_from((0.0, 0.2, 1.5))), max_size=6),
    restarts=st.lists(st.booleans(), max_size=6),
)
def test_no_line_is_lost_or_told_twice(
    cuts: list[tuple[int, Cut] | None], bursts: list[tuple[int, float]], restarts: list[bool]
):
    async def main() -> None:
        api = GangApi(cuts)
        pod = api.pod(0)
        wanted: list[str] = []
        story: list[Any] = [lambda: api.start(pod)]
        for number, (count, seconds) in enumerate(bursts):
            words = [f"{number}.{line}" for line in range(count)]
            wanted += words
            story.append(lambda words=words, seconds=seconds: api.print(pod, *words, seconds=seconds))
            if number < len(restarts) and restarts[number]:
                # A server keeps no more than the run before the present one, so each has to be read in time.
                story += [lambda: api.exit(pod), 1000.0, lambda: api.start(pod)]
        story += [lambda: api.exit(pod, phase="Succeeded"), lambda: api.phase("Completed")]
        assert texts(await read(api, story)) == wanted
        assert api.open == 0

    run(main())


def test_what_was_printed_before_can_be_limited():
    async def main() -> None:
        api = GangApi()
        pod = api.pod(0)
        api.start(pod)
        api.print(pod, "1", "2", "3")
        story = [lambda: api.print(pod, "4"), lambda: api.exit(pod, phase="Failed"), lambda: api.phase("Failed")]
        assert texts(await read(api, story, tail=1)) == ["3", "4"]
        assert texts(await read(api, tail=2)) == ["3", "4"]
        api.print(pod, "5", seconds=0.3)
        assert texts(await read(api, since=api.time)) == ["5"]

    run(main())


def test_tasks_and_containers_can_be_chosen():
    async def main() -> None:
        api = GangApi()
        worker, master = api.pod(0, containers=("main", "side")), api.pod(0, task="master")
        for pod, container in ((worker, "main"), (worker, "side"), (master, "main")):
            api.start(pod, container)
            api.print(pod, f"{pod}/{container}", container=container)
            api.exit(pod, container, phase="Succeeded")
        api.phase("Completed")
        assert texts(await read(api, tasks=["master"])) == ["train-master-0/main"]
        assert texts(await read(api, containers=["side"])) == ["train-worker-0/side"]
        assert len(await read(api)) == 3

    run(main())


def test_without_following_what_is_there_comes_pod_by_pod():
    async def main() -> None:
        api = GangApi()
        second, first, waiting = api.pod(10), api.pod(9), api.pod(11)
        for pod in (second, first):
            api.start(pod)
            api.print(pod, pod)
        assert waiting
        assert texts(await read(api, follow=False)) == [first, second]

    run(main())


def test_only_so_many_streams_are_open_at_a_time(monkeypatch: pytest.MonkeyPatch):
    async def main() -> None:
        api = GangApi()
        pods = [api.pod(index) for index in range(6)]
        for pod in pods:
            api.start(pod)
            api.print(pod, pod)
        story = [lambda pod=pod: api.exit(pod, phase="Succeeded") for pod in pods] + [lambda: api.phase("Completed")]
        assert sorted(texts(await read(api, story))) == pods
        assert api.most_open == 2

    monkeypatch.setattr(logs, "MAX_STREAMS", 2)
    run(main())


def test_a_slow_reader_slows_the_gang_down_instead_of_filling_the_memory(monkeypatch: pytest.MonkeyPatch):
    async def main() -> None:
        api = GangApi()
        pod = api.pod(0)
        api.start(pod)
        api.print(pod, *("x" * 1000 for _ in range(1000)))
        api.exit(pod, phase="Succeeded")
        api.phase("Completed")
        count = 0
        held: list[int] = []
        put = logs._Funnel.put

        async def observed(self: Any, line: LogLine) -> None:
            await put(self, line)
            held.append(self._held)

        monkeypatch.setattr(logs._Funnel, "put", observed)
        async with aclosing(reported(api)) as lines:  # type: ignore[type-var]
            async for _ in lines:
                await asyncio.sleep(1.0)
                count += 1
        assert count == 1000
        assert max(held) <= 12_000

    monkeypatch.setattr(logs, "_HELD_BYTES", 10_000)
    run(main())


def test_broken_watches_and_forgotten_history_change_nothing():
    async def main() -> None:
        api = GangApi()
        pod = api.pod(0)
        lines = await read(
            api,
            [
                api.break_watches,
                lambda: api.start(pod),
                lambda: (api.print(pod, "a"), api.forget_history(), api.break_watches()),
                lambda: api.exit(pod, phase="Succeeded"),
                lambda: (api.phase("Completed"), api.forget_history(), api.break_watches()),
            ],
        )
        assert texts(lines) == ["a"]

    run(main())


def test_a_job_that_is_not_there_is_an_error():
    async def main() -> None:
        api = GangApi()
        with pytest.raises(ApiError) as caught:
            async for _ in follow_job(api, namespace="default", name="other"):
                pass
        assert caught.value.not_found

    run(main())


def test_logs_that_may_not_be_read_are_an_error():
    class Closed(GangApi):
        async def log_lines(self, name: str, **_: Any) -> AsyncIterator[bytes]:
            raise ApiError(403, "Forbidden", "pods/log is forbidden")
            yield b""

    async def main() -> None:
        api = Closed()
        api.start(api.pod(0))
        with pytest.raises(ApiError) as caught:
            await read(api)
        assert caught.value.code == 403

    run(main())


def test_a_log_that_its_server_never_gives_ends_with_the_job():
    class NoKubelet(GangApi):
        async def log_lines(self, name: str, **_: Any) -> AsyncIterator[bytes]:
            raise ApiError(503, "ServiceUnavailable", "no kubelet")
            yield b""

    async def main() -> None:
        api = NoKubelet()
        pod = api.pod(0)
        story = [lambda: api.start(pod), lambda: api.exit(pod, phase="Succeeded"), lambda: api.phase("Completed")]
        assert await read(api, story) == []

    run(main())


@pytest.mark.parametrize("follow", [True, False])
def test_pods_that_only_pretend_to_run_are_told_of_once_and_not_asked_again(follow: bool):
    class Pretended(GangApi):
        async def log_lines(self, name: str, **_: Any) -> AsyncIterator[bytes]:
            self.connections += 1
            raise ApiError(405, "MethodNotAllowed", f"{name} only pretends")
            yield b""

    async def main() -> None:
        api = Pretended()
        pods = [api.pod(index) for index in range(3)]
        for pod in pods:
            api.start(pod)
        reported_of: list[str] = []
        story = [
            60.0,
            *(lambda pod=pod: api.exit(pod, phase="Succeeded") for pod in pods),
            lambda: api.phase("Completed"),
        ]
        assert await read(api, story, follow=follow, on_silence=reported_of.append) == []
        assert reported_of == ["pods of train on simulated nodes print nothing"]
        assert api.connections == 3

    run(main())


def test_a_pod_that_is_deleted_before_its_log_is_read_is_told_of():
    async def main() -> None:
        api = GangApi()
        first = api.pod(0)
        reported_of: list[str] = []

        def fails_at_once() -> None:
            api.start(first)
            api.print(first, "unread")
            api.exit(first, phase="Failed")
            api.vanish(first)

        def again(retry: int) -> None:
            api.pod(0, retry=retry)
            api.start(first)

        story = [
            fails_at_once,
            lambda: again(1),  # and prints nothing
            lambda: api.vanish(first),
            lambda: again(2),
            lambda: api.print(first, "read"),
            lambda: api.vanish(first),
            lambda: (api.pod(0, retry=3), fails_at_once()),
            lambda: api.pod(0, retry=4),
            lambda: api.vanish(first),  # and never started
            lambda: api.phase("Failed"),
        ]
        assert texts(await read(api, story, on_silence=reported_of.append)) == ["read"]
        said = "is lost: its pod was deleted before its log could be read"
        assert reported_of == [f"what worker/0 printed {said}", f"what worker/0 printed in restart 3 {said}"]

    run(main())


def test_streams_are_closed_with_the_iterator():
    async def main() -> None:
        api = GangApi()
        pod = api.pod(0)
        api.start(pod)
        api.print(pod, "a")
        async with aclosing(reported(api)) as lines:  # type: ignore[type-var]
            async for _ in lines:
                break
        assert api.open == 0
        assert len(asyncio.all_tasks()) == 1

    run(main())
