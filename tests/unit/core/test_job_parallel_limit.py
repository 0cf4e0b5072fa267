"""How many pods of a job are alive at the same time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.job_world import World, job_object, task
from vcbatch.api.job import Job
from vcbatch.api.names import MAX_PARALLEL_PODS
from vcbatch.api.resources import JOBS
from vcbatch.api.validate.job import parallel_limit_errors
from vcbatch.api.validate.job_update import job_update_errors


def submitted(limit: object, *sizes: int, command: str = "sleep 30", **spec: object) -> World:
    tasks = [task(f"t{number}", size, command, minAvailable=0) for number, size in enumerate(sizes)]
    job = job_object(tasks=tasks, **{"minAvailable": 1, **spec})
    job["metadata"]["annotations"] = {MAX_PARALLEL_PODS: str(limit)}
    world = World()
    world.submit(job)
    return world


def alive(world: World) -> int:
    return sum(pod.get("status", {}).get("phase") not in ("Succeeded", "Failed") for pod in world.pods().values())


@given(
    limit=st.integers(1, 6),
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    command=st.sampled_from(["exit 0", "exit 3", "sleep 5"]),
)
def test_never_more_are_alive_and_all_have_their_turn(limit: int, sizes: list[int], command: str) -> None:
    world = submitted(limit, *sizes, command=command, minSuccess=sum(sizes))
    most = 0

    def over() -> bool:
        nonlocal most
        most = max(most, alive(world))
        return world.phase() in ("Completed", "Failed")

    world.run(until=over)
    assert len(world.created) == sum(sizes)
    assert most == min(limit, sum(sizes))
    assert world.phase() == ("Failed" if command == "exit 3" else "Completed")


def test_the_lowest_index_comes_next() -> None:
    world = submitted(2, 4)
    world.run(until=lambda: world.phase() == "Running")
    assert sorted(world.pods()) == ["j-t0-0", "j-t0-1"]
    world.end_pod("j-t0-1", 0)
    world.settle()
    assert sorted(world.pods()) == ["j-t0-0", "j-t0-1", "j-t0-2"]


def test_the_limit_may_change_while_the_job_runs() -> None:
    world = submitted(1, 4)
    world.run(until=lambda: world.phase() == "Running")
    world.change(JOBS, "j", lambda job: job["metadata"].update(annotations={MAX_PARALLEL_PODS: "3"}))
    world.settle()
    assert alive(world) == 3
    world.change(JOBS, "j", lambda job: job["metadata"].update(annotations={}))
    world.settle()
    assert alive(world) == 4


def test_a_limit_below_the_gang_counts_as_the_gang() -> None:
    """Stored before admission refused it: a gang that can't be whole would wait for ever."""
    world = submitted(1, 4, minAvailable=3)
    world.run(until=lambda: world.phase() == "Running")
    assert alive(world) == 3


@pytest.mark.parametrize(
    ("text", "minimum", "error"),
    [
        ("2", 2, ""),
        ("1", 2, "needs 2 pods at the same time"),
        ("0", 0, "is '0', want a number of pods"),
        ("-1", 1, "is '-1', want a number of pods"),
        ("٣", 1, "want a number of pods"),
        ("9" * 10, 1, "want a number of pods"),
    ],
)
def test_what_is_no_limit_is_refused(text: str, minimum: int, error: str) -> None:
    job = job_object(tasks=[task("w", 4)], minAvailable=minimum)
    job["metadata"]["annotations"] = {MAX_PARALLEL_PODS: text}
    reported = [str(one) for one in parallel_limit_errors(Job.parse(job))]
    assert len(reported) == bool(error)
    assert all(error in one for one in reported)


def test_a_job_that_was_stored_with_a_bad_limit_stays_editable() -> None:
    old = job_object(tasks=[task("w", 4)], minAvailable=3)
    old["metadata"]["annotations"] = {MAX_PARALLEL_PODS: "2"}
    labelled = {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}
    assert job_update_errors(Job.parse(labelled), Job.parse(old)) == []
    larger = {**old, "spec": {**old["spec"], "minAvailable": 4}}
    assert "needs 4 pods" in str(job_update_errors(Job.parse(larger), Job.parse(old))[0])
