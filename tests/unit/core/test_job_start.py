"""When a job may start: dependencies on other jobs, begin times; and deadlines."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support.job_world import START, Json, World, job_object, task
from vcbatch.api.job import Job, JobPhase
from vcbatch.api.names import AFTER, BEGIN_TIME, DEADLINE
from vcbatch.api.resources import JOBS, PODGROUPS, QUEUES
from vcbatch.api.start_conditions import MalformedDependencyError, parse_dependencies
from vcbatch.api.timestamps import format_time
from vcbatch.api.validate.job import start_errors
from vcbatch.api.validate.job_update import job_update_errors
from vcbatch.core.job import decide


def submit(world: World, name: str, command: str = "sleep 10", *, ttl: int | None = None, **annotations: str) -> None:
    spec: Json = {} if ttl is None else {"ttlSecondsAfterFinished": ttl}
    job = job_object(name, tasks=[task("w", 1, command)], **spec)
    keys = {"after": AFTER, "begin": BEGIN_TIME, "deadline": DEADLINE}
    if annotations:
        job["metadata"]["annotations"] = {keys[key]: value for key, value in annotations.items()}
    world.submit(job)
    world.settle(name)


def why(world: World, name: str) -> tuple[str, str, str]:
    state = world.job(name)["status"]["state"]
    return state["phase"], state.get("reason", ""), state.get("message", "")


def run_to(world: World, name: str, phase: str) -> None:
    world.run(name, until=lambda: world.phase(name) == phase)


def has_group(world: World, name: str) -> bool:
    return any(group["metadata"]["name"].startswith(f"{name}-") for group in world.all(PODGROUPS))


def finish(world: World, name: str, *, failed: bool = False) -> None:
    """Submit a job that ends, and let it end."""
    submit(world, name, "exit 1" if failed else "exit 0")
    run_to(world, name, "Failed" if failed else "Completed")


def test_a_job_waits_without_a_podgroup_until_the_other_has_completed() -> None:
    world = World()
    submit(world, "prep")
    submit(world, "train", after="prep")
    assert why(world, "train") == ("Pending", "DependencyNotMet", "waits for job prep (Pending) to complete")
    assert not has_group(world, "train")
    run_to(world, "prep", "Completed")
    run_to(world, "train", "Running")
    assert why(world, "train")[1:] == ("", "")


@pytest.mark.parametrize(
    ("outcome", "failed", "starts"),
    [("ok", False, True), ("ok", True, False), ("any", False, True), ("any", True, True), ("fail", True, True),
     ("fail", False, False)],
)  # fmt: skip
def test_the_outcome_decides(outcome: str, failed: bool, starts: bool) -> None:
    world = World()
    finish(world, "prep", failed=failed)
    submit(world, "next", after=f"prep:{outcome}")
    assert has_group(world, "next") is starts
    assert (why(world, "next")[1] == "DependencyNeverSatisfied") is not starts


def test_a_cancelled_job_counts_as_failed() -> None:
    world = World()
    submit(world, "prep")
    submit(world, "clean", after="prep:fail")
    world.command("TerminateJob", target=world.job("prep"))
    run_to(world, "prep", "Terminated")
    run_to(world, "clean", "Running")


def test_what_can_never_be_met_stays_pending_and_is_reported_once() -> None:
    world = World()
    finish(world, "prep", failed=True)
    submit(world, "next", after="prep")
    sentence = "job prep is Failed, and this job starts after it completes"
    assert why(world, "next") == ("Pending", "DependencyNeverSatisfied", sentence)
    world.now += timedelta(days=1)
    world.settle("next")
    assert [event.message for event in world.events if event.reason == "DependencyNeverSatisfied"] == [sentence]


def test_a_user_releases_a_job_by_removing_the_annotation() -> None:
    world = World()
    finish(world, "prep", failed=True)
    submit(world, "next", after="prep")
    world.change(JOBS, "next", lambda job: job["metadata"].pop("annotations"))
    run_to(world, "next", "Running")


def test_all_jobs_are_waited_for_and_the_worst_is_reported() -> None:
    world = World()
    submit(world, "a", "sleep 5")
    submit(world, "b", "sleep 20")
    submit(world, "c", after="a,b:any")
    run_to(world, "a", "Completed")
    world.settle("c")
    assert why(world, "c") == ("Pending", "DependencyNotMet", "waits for job b (Pending) to end")
    submit(world, "d", after="b,nothing")
    assert why(world, "d") == (
        "Pending",
        "DependencyNotFound",
        "job nothing doesn't exist, and this job starts after it",
    )
    run_to(world, "b", "Completed")
    run_to(world, "c", "Running")
    finish(world, "nothing")
    run_to(world, "d", "Running")


def test_a_result_is_remembered_after_the_job_was_deleted() -> None:
    world = World()
    submit(world, "a", "exit 0")
    submit(world, "slow", "sleep 100")
    submit(world, "next", after="a,slow")
    run_to(world, "a", "Completed")
    world.settle("next")
    world.remove(JOBS, "a")
    assert why(world, "next")[1] == "DependencyNotMet"
    run_to(world, "slow", "Completed")
    run_to(world, "next", "Running")


def test_a_finished_job_is_not_deleted_after_its_ttl_before_its_end_is_recorded() -> None:
    world = World()
    submit(world, "prep", "exit 0", ttl=0)
    submit(world, "next", after="prep")
    run_to(world, "prep", "Completed")
    world.settle("prep")
    assert world.phase("prep") == "Completed"
    assert world.view("prep").awaited
    world.settle("next")
    world.settle("prep")
    assert (JOBS, "prep") not in world.objects
    run_to(world, "next", "Running")


def test_a_finished_job_is_not_kept_for_ever() -> None:
    world = World()
    submit(world, "prep", "exit 0", ttl=0)
    submit(world, "next", after="prep")
    run_to(world, "prep", "Completed")
    world.now += timedelta(minutes=11)
    world.settle("prep")
    assert (JOBS, "prep") not in world.objects


@pytest.mark.parametrize(("outcome", "starts"), [("ok", False), ("any", True), ("fail", False)])
def test_a_job_that_was_deleted_before_its_end_was_seen_meets_any_only(outcome: str, starts: bool) -> None:
    world = World()
    submit(world, "prep")
    submit(world, "next", after=f"prep:{outcome}")
    world.remove(JOBS, "prep")
    world.settle("next")
    assert has_group(world, "next") is starts
    if not starts:
        assert why(world, "next")[1] == "DependencyNeverSatisfied"
        assert "was deleted before its end was seen" in why(world, "next")[2]


def test_the_last_phase_of_a_deleted_job_counts_where_the_controller_saw_it() -> None:
    world = World()
    submit(world, "prep")
    submit(world, "next", after="prep")
    run_to(world, "prep", "Completed")
    world.last_phases[world.job("prep")["metadata"]["uid"]] = JobPhase.COMPLETED
    world.remove(JOBS, "prep")
    run_to(world, "next", "Running")


def test_another_job_of_the_same_name_is_another_job() -> None:
    world = World()
    submit(world, "prep")
    submit(world, "next", after="prep")
    world.remove(JOBS, "prep")
    finish(world, "prep")
    world.settle("next")
    assert why(world, "next")[1] == "DependencyNeverSatisfied"


def test_a_uid_names_one_job() -> None:
    world = World()
    finish(world, "prep")
    submit(world, "next", after=f"prep/{world.job('prep')['metadata']['uid']}:ok")
    assert has_group(world, "next")
    submit(world, "other", after="prep/another-uid:ok")
    assert why(world, "other")[1] == "DependencyNeverSatisfied"


def test_a_named_uid_that_was_never_seen_is_waited_for_for_a_while() -> None:
    world = World()
    submit(world, "next", after="prep/u:any")
    assert why(world, "next")[1] == "DependencyNotFound"
    assert world.reconcile("next").requeue_at == world.now + timedelta(seconds=30)
    world.now += timedelta(seconds=30)
    world.settle("next")
    assert has_group(world, "next")


def test_a_cycle_is_reported() -> None:
    world = World()
    submit(world, "a", after="c")
    submit(world, "b", after="a")
    submit(world, "c", after="b")
    for name, other in (("a", "c"), ("b", "a"), ("c", "b")):
        world.settle(name)
        assert why(world, name) == ("Pending", "DependencyNeverSatisfied", f"job {other} waits for this job")
    submit(world, "self", after="self")
    assert why(world, "self") == ("Pending", "DependencyNeverSatisfied", "the job depends on itself")


def test_a_job_behind_one_that_never_starts_says_so() -> None:
    world = World()
    finish(world, "a", failed=True)
    submit(world, "b", after="a")
    submit(world, "c", after="b")
    sentence = "waits for job b (Pending, DependencyNeverSatisfied) to complete"
    assert why(world, "c") == ("Pending", "DependencyNotMet", sentence)


def test_a_job_begins_at_its_time() -> None:
    world = World()
    submit(world, "night", begin="2026-11-20T22:00:00+02:00")
    assert why(world, "night") == ("Pending", "BeginTime", "starts at 2026-11-20T20:00:00Z at the earliest")
    assert world.reconcile("night").requeue_at == START + timedelta(hours=8)
    world.now = START + timedelta(hours=8) - timedelta(seconds=1)
    world.settle("night")
    assert not has_group(world, "night")
    world.now += timedelta(seconds=1)
    run_to(world, "night", "Running")


def test_what_started_is_not_held_again() -> None:
    world = World()
    submit(world, "job", begin=format_time(START))
    run_to(world, "job", "Running")
    world.now -= timedelta(hours=1)
    world.change(JOBS, "job", lambda job: job["metadata"]["annotations"].update({AFTER: "nothing"}))
    world.command("RestartJob", target=world.job("job"))
    run_to(world, "job", "Restarting")
    run_to(world, "job", "Running")


def test_a_held_job_of_no_pods_stays_pending() -> None:
    world = World()
    job = job_object(tasks=[task("w", 0)])
    job["metadata"]["annotations"] = {BEGIN_TIME: "2027-01-01T00:00:00Z"}
    world.submit(job)
    world.settle()
    assert why(world, "j")[:2] == ("Pending", "BeginTime")


def test_a_held_job_can_be_suspended_resumed_and_cancelled() -> None:
    world = World()
    submit(world, "prep")
    submit(world, "next", after="prep")
    world.command("AbortJob", target=world.job("next"))
    run_to(world, "next", "Aborted")
    run_to(world, "prep", "Completed")
    world.settle("next")
    world.remove(JOBS, "prep")
    world.command("ResumeJob", target=world.job("next"))
    run_to(world, "next", "Running")
    submit(world, "late", begin="2027-01-01T00:00:00Z")
    world.command("TerminateJob", target=world.job("late"))
    run_to(world, "late", "Terminated")


def test_a_missing_queue_comes_first() -> None:
    world = World()
    world.remove(QUEUES, "default")
    submit(world, "night", begin="2027-01-01T00:00:00Z")
    assert why(world, "night")[1] == "QueueNotFound"


@pytest.mark.parametrize("phase", ["Pending", "Running"])
def test_a_job_is_terminated_at_its_deadline(phase: str) -> None:
    world = World(lets_in=phase == "Running")
    end = START + timedelta(seconds=300)
    submit(world, "job", "sleep 10000", deadline=format_time(end))
    run_to(world, "job", phase)
    world.now = end - timedelta(seconds=1)
    assert world.reconcile("job").requeue_at == end
    assert world.phase("job") == phase
    world.now = end
    run_to(world, "job", "Terminated")
    sentence = "it had not finished at its deadline, 2026-11-20T12:05:00Z"
    assert why(world, "job")[1] == "DeadlinePassed"
    assert sentence in why(world, "job")[2]


def test_a_held_job_is_terminated_at_its_deadline() -> None:
    world = World()
    submit(world, "job", begin="2027-01-01T00:00:00Z", deadline="2026-12-01T00:00:00Z")
    world.now = START + timedelta(days=20)
    run_to(world, "job", "Terminated")
    assert why(world, "job")[1] == "DeadlinePassed"


def test_a_deadline_does_not_change_a_job_that_has_finished() -> None:
    world = World()
    submit(world, "job", "exit 0", deadline=format_time(START + timedelta(hours=1)))
    run_to(world, "job", "Completed")
    world.now += timedelta(days=1)
    world.settle("job")
    assert why(world, "job")[0] == "Completed"


def test_a_suspended_job_is_terminated_when_it_is_resumed_after_its_deadline() -> None:
    world = World()
    submit(world, "job", deadline=format_time(START + timedelta(hours=1)))
    world.command("AbortJob", target=world.job("job"))
    run_to(world, "job", "Aborted")
    world.now += timedelta(hours=2)
    world.settle("job")
    assert world.phase("job") == "Aborted"
    world.command("ResumeJob", target=world.job("job"))
    run_to(world, "job", "Terminated")


def test_the_same_view_gives_the_same_decision() -> None:
    world = World()
    submit(world, "prep")
    submit(world, "next", after="prep")
    assert decide(world.view("next"), now=world.now).nothing_to_do


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "want JOB"),
        ("a:maybe", "unknown outcome 'maybe'"),
        ("A", "no name of a job"),
        ("a,a:any", "job 'a' is named twice"),
        ("a;b", "no name of a job"),
        ("a:ok:ok", "want JOB[/UID][:ok|any|fail]"),
        (",".join(f"j{number}" for number in range(33)), "33 jobs, want at most 32"),
    ],
)
def test_malformed_dependencies_are_refused(text: str, error: str) -> None:
    with pytest.raises(MalformedDependencyError) as raised:
        parse_dependencies(text)
    assert error in str(raised.value)
    job = Job.parse({"metadata": {"name": "j", "annotations": {AFTER: text}}})
    found = list(start_errors(job))
    assert [one.field for one in found] == [f"metadata.annotations[{AFTER}]"]
    assert error in found[0].message


@pytest.mark.parametrize("name", [BEGIN_TIME, DEADLINE])
@pytest.mark.parametrize(
    "text", ["", "tomorrow", "2026-11-20T12:00:00", "2026-13-01T00:00:00Z", "0001-01-01T00:00:00+14:00"]
)
def test_malformed_times_are_refused(name: str, text: str) -> None:
    job = Job.parse({"metadata": {"name": "j", "annotations": {name: text}}})
    assert [one.field for one in start_errors(job)] == [f"metadata.annotations[{name}]"]
    assert not job_update_errors(job, job)
    assert job_update_errors(job, Job.parse({"metadata": {"name": "j"}}))


def test_malformed_conditions_that_admission_has_not_seen_hold_the_job() -> None:
    world = World()
    submit(world, "a", after="x:maybe")
    submit(world, "b", begin="soon")
    submit(world, "c", "exit 0", deadline="soon")
    assert why(world, "a")[:2] == ("Pending", "DependencyNeverSatisfied")
    assert why(world, "b")[:2] == ("Pending", "BeginTime")
    run_to(world, "c", "Completed")
