"""Which logs are read of a job that has none running, and what follows a pod that was deleted too early."""

from __future__ import annotations

import msgspec
import pytest

from tests.fakes.logs import GangApi
from tests.support.virtual_time import run
from tests.unit.sdk.test_logs import read, texts
from vcbatch.api.meta import ObjectMeta
from vcbatch.api.resources import JOBS
from vcbatch.interfaces.api import ApiError
from vcbatch.runtime.client.kept_logs import KeptLogs, KeptRun
from vcbatch.sdk.log_sources import LogSource, NoSuchAttemptError, choose, latest_uid, sources_of
from vcbatch.sdk.pod_view import PodView


def kept(uid: str, *, retry: int = 0, version: int | None = None, index: int = 0, restarts: int = 0) -> KeptRun:
    return KeptRun(
        pod_uid=uid,
        pod=f"train-worker-{index}",
        attempt=retry + 1,
        job_version=retry if version is None else version,
        task="worker",
        index=index,
        container="main",
        run=restarts,
        restarts=restarts,
        pod_created=f"2026-01-0{retry + 1}",
    )


def pod(uid: str, *, retry: int = 0, version: int | None = None, index: int = 0, runs: int = 1) -> PodView:
    """A pod whose container was started so many times."""
    view = PodView(
        metadata=ObjectMeta(
            name=f"train-worker-{index}",
            uid=uid,
            labels={"volcano.sh/task-spec": "worker", "volcano.sh/task-index": str(index)},
            annotations={
                "volcano.sh/job-retry-count": str(retry),
                "volcano.sh/job-version": str(retry if version is None else version),
            },
            creation_timestamp=f"2026-01-0{retry + 1}",
        )
    )
    state = {"running": {}} if runs else {"waiting": {}}
    return msgspec.convert(
        {
            **msgspec.to_builtins(view),
            "spec": {"containers": [{"name": "main"}]},
            "status": {"containerStatuses": [{"name": "main", "restartCount": max(0, runs - 1), "state": state}]},
        },
        PodView,
    )


def uids(sources: list[LogSource]) -> list[str]:
    return [source.uid for source in sources]


def test_the_latest_attempt_with_a_log_is_the_default() -> None:
    sources = sources_of([pod("b0", retry=1)], [kept("a0"), kept("a1", index=1)])
    assert uids(choose(sources)) == ["b0"]
    waiting = sources_of([pod("b0", retry=1, runs=0)], [kept("a0"), kept("a1", index=1)])
    assert uids(choose(waiting)) == ["a0", "a1"]
    assert uids(choose(sources_of([pod("b0", runs=0)], []))) == ["b0"]
    assert choose([]) == []


def test_pods_of_a_gang_that_have_not_started_are_part_of_the_attempt() -> None:
    assert uids(choose(sources_of([pod("a0"), pod("a1", index=1, runs=0)], []))) == ["a0", "a1"]


def test_an_attempt_and_the_previous_one() -> None:
    sources = sources_of([pod("c0", retry=2)], [kept("a0"), kept("b0", retry=1)])
    assert uids(choose(sources, attempt=1)) == ["a0"]
    assert uids(choose(sources, attempt=3)) == ["c0"]
    assert uids(choose(sources, previous=True)) == ["b0"]
    with pytest.raises(NoSuchAttemptError) as error:
        choose(sources, attempt=4)
    assert error.value.known == [1, 2, 3]


def test_a_replaced_pod_leaves_the_others_in_the_attempt() -> None:
    """RestartTask and RestartPod count a retry and keep the version of the job."""
    sources = sources_of([pod("b0", retry=1, version=0), pod("a1", index=1)], [kept("a0")])
    assert uids(choose(sources)) == ["b0", "a1"]
    assert uids(choose(sources, previous=True)) == ["a0"]
    not_yet = sources_of([pod("b0", retry=1, version=0, runs=0), pod("a1", index=1)], [kept("a0")])
    assert uids(choose(not_yet)) == ["a0", "a1"]


def test_the_previous_run_of_a_container_that_restarted_in_its_pod() -> None:
    (found,) = choose(sources_of([pod("a0", runs=3)], []), previous=True)
    assert (found.uid, found.previous) == ("a0", True)
    with pytest.raises(NoSuchAttemptError):
        choose(sources_of([pod("a0")], []), previous=True)


def test_of_several_deleted_jobs_the_one_that_ended_last() -> None:
    runs = [KeptRun(job_uid="old", finished="2026-01-01"), KeptRun(job_uid="new", finished="2026-01-02")]
    assert latest_uid(KeptLogs(runs=list(reversed(runs)))) == "new"
    assert latest_uid(KeptLogs()) == ""


def test_the_end_of_a_log_comes_although_its_pod_was_deleted() -> None:
    async def main() -> None:
        api = GangApi()
        api.keeps = True
        name, said = api.pod(0), list[str]()

        def last_words() -> None:
            api.runs[name, "main"][-1].lines.append((api.time, "last words"))
            api.vanish(name)

        story = [
            lambda: api.start(name),
            lambda: api.print(name, "a", "b"),
            last_words,
            lambda: api.phase("Terminated"),
        ]
        lines = await read(api, story, on_silence=said.append)
        assert texts(lines) == ["a", "b", "last words"]
        assert said == []

    run(main())


def test_a_log_that_was_never_open_is_read_after_its_pod_was_deleted() -> None:
    async def main() -> None:
        api = GangApi()
        api.keeps = True
        name, said = api.pod(0), list[str]()

        def all_at_once() -> None:
            api.start(name)
            api.print(name, "quick")
            api.vanish(name)

        lines = await read(api, [all_at_once, lambda: api.phase("Failed")], on_silence=said.append)
        assert (texts(lines), said) == (["quick"], [])

    run(main())


def test_the_present_logs_are_those_of_pods_and_deleted_pods() -> None:
    async def main() -> None:
        api = GangApi()
        api.keeps = True
        first = api.pod(0)
        api.start(first)
        api.print(first, "kept")
        api.vanish(first)
        second = api.pod(0, retry=1)
        assert texts(await read(api, follow=False)) == ["kept"]
        api.start(second)
        api.print(second, "live")
        assert texts(await read(api, follow=False)) == ["live"]
        assert texts(await read(api, follow=False, attempt=1)) == ["kept"]
        (line,) = await read(api, follow=False, attempt=2)
        assert (line.text, line.restart) == ("live", 1)
        with pytest.raises(NoSuchAttemptError):
            await read(api, follow=False, attempt=3)

    run(main())


def test_the_log_of_a_deleted_job_is_found_by_its_name() -> None:
    async def main() -> None:
        api = GangApi()
        name = api.pod(0)
        api.start(name)
        api.print(name, "kept")
        api.vanish(name)
        api.remove(JOBS, "train", "default")
        with pytest.raises(ApiError) as error:
            await read(api, follow=False)
        assert error.value.not_found
        api.keeps = True
        assert texts(await read(api, follow=False)) == ["kept"]

    run(main())
