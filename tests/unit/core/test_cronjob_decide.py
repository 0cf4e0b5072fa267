"""CronJobs: which slot starts a job, what happens to those that run, and what is kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.cron_world import START, TEMPLATE, Crash, CronWorld
from vcbatch.api.cronjob import ConcurrencyPolicy
from vcbatch.api.names import CRONJOB_SCHEDULED_TIMESTAMP
from vcbatch.core.cronjob.concurrency import TABLE, Verb, verb_for

MINUTE = timedelta(minutes=1)
FIRST = int(START.timestamp()) // 60 + 1
"""The slot after START, in minutes since 1970."""


def test_every_policy_has_its_verb() -> None:
    assert TABLE == {
        ConcurrencyPolicy.ALLOW: Verb.START,
        ConcurrencyPolicy.FORBID: Verb.WAIT,
        ConcurrencyPolicy.REPLACE: Verb.REPLACE,
    }
    assert all(verb_for(policy, busy=False) is Verb.START for policy in ["", *ConcurrencyPolicy])
    assert verb_for("", busy=True) is Verb.START


def test_a_slot_makes_a_job() -> None:
    metadata = {"labels": {"team": "a"}, "annotations": {"note": "x"}, "name": "ignored", "finalizers": ["ignored"]}
    world = CronWorld(timeZone="Asia/Tokyo", jobTemplate={**TEMPLATE, "metadata": metadata})
    assert world.reconcile().requeue_at == START + MINUTE
    assert not world.jobs
    world.now = START + MINUTE + timedelta(seconds=3)
    decision = world.reconcile()
    assert [create.body for create in decision.creates] == [
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {
                "name": f"c-{FIRST}",
                "namespace": "ns",
                "labels": {"team": "a"},
                "annotations": {"note": "x", CRONJOB_SCHEDULED_TIMESTAMP: "2026-11-21T21:01:00+09:00"},
                "ownerReferences": [
                    {
                        "apiVersion": "batch.volcano.sh/v1alpha1",
                        "kind": "CronJob",
                        "name": "c",
                        "uid": "cron-uid",
                        "controller": True,
                        "blockOwnerDeletion": True,
                    }
                ],
            },
            "spec": TEMPLATE["spec"],
        }
    ]
    assert decision.requeue_at == START + 2 * MINUTE
    assert world.reported("SuccessfulCreate") == [f"Created job c-{FIRST} for CronJob ns/c"]
    world.reconcile()
    job = world.jobs[f"c-{FIRST}"]["metadata"]
    assert world.status == {
        "active": [
            {
                "apiVersion": "batch.volcano.sh/v1alpha1",
                "kind": "Job",
                "namespace": "ns",
                "name": f"c-{FIRST}",
                "uid": job["uid"],
                "resourceVersion": job["resourceVersion"],
            }
        ],
        "lastScheduleTime": "2026-11-21T12:01:00Z",
    }
    assert not world.reconcile().creates


def test_a_completed_job_leaves_the_active_ones() -> None:
    world = CronWorld()
    world.pass_time(minutes=1)
    world.now += timedelta(seconds=5)
    world.finish(f"c-{FIRST}")
    world.settle()
    assert world.status == {"lastScheduleTime": "2026-11-21T12:01:00Z", "lastSuccessfulTime": "2026-11-21T12:01:05Z"}
    assert world.reported("SawCompletedJob") == [f"Saw completed job: c-{FIRST} in active, remove"]


def test_a_failed_job_is_no_success() -> None:
    world = CronWorld()
    world.pass_time(minutes=1)
    world.finish(f"c-{FIRST}", "Failed")
    world.settle()
    assert "lastSuccessfulTime" not in world.status
    assert len(world.reported("SawCompletedJob")) == 1


def test_the_success_outlives_its_job() -> None:
    world = CronWorld()
    world.pass_time(minutes=1)
    world.finish(f"c-{FIRST}")
    world.settle()
    before = world.status["lastSuccessfulTime"]
    world.vanish(f"c-{FIRST}")
    world.settle()
    assert world.status["lastSuccessfulTime"] == before
    assert not world.reported("StaleReference")


def test_allow_runs_side_by_side() -> None:
    world = CronWorld(concurrencyPolicy="Allow")
    world.pass_time(minutes=3)
    assert world.active == [f"c-{FIRST}", f"c-{FIRST + 1}", f"c-{FIRST + 2}"]


def test_forbid_waits_and_makes_up_for_the_last_slot() -> None:
    world = CronWorld(concurrencyPolicy="Forbid")
    world.pass_time(minutes=3)
    assert world.active == [f"c-{FIRST}"]
    assert world.status["lastScheduleTime"] == "2026-11-21T12:01:00Z"
    assert set(world.reported("ForbidConcurrent")) == {
        f"No job is started for 2026-11-21T12:0{minute}:00Z: c-{FIRST} is Pending, and concurrencyPolicy is Forbid"
        for minute in (2, 3)
    }
    world.finish(f"c-{FIRST}")
    world.settle()
    assert world.active == [f"c-{FIRST + 2}"]


def test_forbid_waits_for_a_job_that_is_being_deleted() -> None:
    world = CronWorld(concurrencyPolicy="Forbid")
    world.pass_time(minutes=1)
    world.jobs[f"c-{FIRST}"]["metadata"]["deletionTimestamp"] = "2026-11-21T12:01:30Z"
    world.pass_time(minutes=1)
    assert world.made == [f"c-{FIRST}"]
    assert "is being deleted" in world.reported("ForbidConcurrent")[0]
    world.vanish(f"c-{FIRST}")
    world.settle()
    assert world.made == [f"c-{FIRST}", f"c-{FIRST + 1}"]


@pytest.mark.parametrize("lingers", [False, True])
def test_replace_deletes_what_runs(lingers: bool) -> None:
    world = CronWorld(concurrencyPolicy="Replace")
    world.lingers = lingers
    world.pass_time(minutes=2)
    assert world.active == [f"c-{FIRST + 1}"]
    assert len(world.reported("ReplaceConcurrent")) == 1
    assert not world.reported("StaleReference")
    assert (f"c-{FIRST}" in world.jobs) is lingers
    world.pass_time(seconds=30)
    assert len(world.reported("ReplaceConcurrent")) == 1


def test_replace_that_dies_before_it_deletes() -> None:
    world = CronWorld(concurrencyPolicy="Replace")
    world.pass_time(minutes=1)
    world.now += MINUTE
    with pytest.raises(Crash):
        world.reconcile(writes=1)
    assert world.active == []
    world.settle()
    assert world.unfinished == world.active == [f"c-{FIRST + 1}"]


def test_jobs_of_ours_that_the_status_lacks_count() -> None:
    """The status may have been lost, or never written."""
    world = CronWorld(concurrencyPolicy="Forbid")
    world.add_job("c-by-hand", owner="cron-uid")
    world.pass_time(minutes=1)
    assert world.active == ["c-by-hand"]
    assert len(world.jobs) == 1


def test_what_another_cron_job_of_that_name_made_is_none_of_ours() -> None:
    world = CronWorld(concurrencyPolicy="Forbid")
    world.add_job("c-1", owner="older-uid", slot=START + timedelta(days=1))
    world.pass_time(minutes=1)
    assert world.active == [f"c-{FIRST}"]


def test_a_job_that_was_deleted_by_hand_is_missed() -> None:
    world = CronWorld()
    world.pass_time(minutes=1)
    world.vanish(f"c-{FIRST}")
    world.settle()
    assert world.active == []
    assert len(world.reported("StaleReference")) == 1
    assert world.made == [f"c-{FIRST}"]


def test_a_name_that_is_taken_costs_the_slot() -> None:
    world = CronWorld()
    world.add_job(f"c-{FIRST}")
    world.pass_time(minutes=2)
    assert len(world.reported("ForeignJob")) == 1
    assert world.made == [f"c-{FIRST + 1}"]


def test_a_name_that_is_about_to_be_free_is_waited_for() -> None:
    world = CronWorld()
    world.add_job(f"c-{FIRST}", owner="older-uid", deletionTimestamp="2026-11-21T12:00:30Z")
    world.pass_time(minutes=1)
    assert world.made == []
    world.vanish(f"c-{FIRST}")
    world.settle()
    assert world.made == [f"c-{FIRST}"]


def test_suspended_starts_nothing_and_keeps_its_books() -> None:
    world = CronWorld(successfulJobsHistoryLimit=0)
    world.pass_time(minutes=1)
    world.change(suspend=True)
    assert world.settle().requeue_at is None
    world.finish(f"c-{FIRST}")
    world.now += 5 * MINUTE
    world.settle()
    assert (world.jobs, world.active) == ({}, [])
    world.change(suspend=False)
    world.settle()
    assert world.made == [f"c-{FIRST}", f"c-{FIRST + 5}"]


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        ({"successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 1}, ["a2", "b2"]),
        ({"successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 5}, ["b0", "b1", "b2"]),
        ({"successfulJobsHistoryLimit": 2, "failedJobsHistoryLimit": 0}, ["a1", "a2"]),
        ({}, ["a0", "a1", "a2", "b0", "b1", "b2"]),
    ],
)
def test_history(limits: dict[str, int], kept: list[str]) -> None:
    world = CronWorld(schedule="@yearly", **limits)
    for number, (good, bad) in enumerate(
        [("Completed", "Failed"), ("Completed", "Terminated"), ("Completed", "Failed")]
    ):
        world.now += timedelta(seconds=1)
        for name, phase in ((f"a{number}", good), (f"b{number}", bad)):
            world.add_job(name, owner="cron-uid")
            world.finish(name, phase)
    world.settle()
    assert sorted(world.jobs) == kept
    assert len(world.reported("SuccessfulDelete")) == 6 - len(kept)


def test_an_aborted_job_may_be_resumed_and_isnt_history() -> None:
    world = CronWorld(successfulJobsHistoryLimit=0, failedJobsHistoryLimit=0, concurrencyPolicy="Forbid")
    world.pass_time(minutes=1)
    world.finish(f"c-{FIRST}", "Aborted")
    world.pass_time(minutes=1)
    assert world.active == [f"c-{FIRST}"]
    assert "is Aborted" in world.reported("ForbidConcurrent")[0]


def test_history_doesnt_hold_up_a_slot() -> None:
    world = CronWorld(successfulJobsHistoryLimit=0)
    world.pass_time(minutes=1)
    world.finish(f"c-{FIRST}")
    world.now += MINUTE
    decision = world.reconcile()
    assert decision.creates
    assert not decision.deletes
    world.settle()
    assert list(world.jobs) == [f"c-{FIRST + 1}"]


@pytest.mark.parametrize(("late", "starts"), [(29, True), (30, False), (45, False)])
def test_the_starting_deadline(late: int, starts: bool) -> None:
    world = CronWorld(schedule="0 * * * *", startingDeadlineSeconds=30)
    world.now = START + timedelta(hours=1, seconds=late)
    world.settle()
    assert bool(world.made) is starts
    assert bool(world.reported("MissSchedule")) is not starts


def test_a_deadline_leaves_intervals_where_they_are() -> None:
    world = CronWorld(schedule="@every 10m", startingDeadlineSeconds=30)
    world.pass_time(minutes=31)
    assert len(world.made) == 3


@pytest.mark.parametrize(("missed", "warned"), [(1, False), (100, False), (101, True), (500_000, True)])
def test_of_many_missed_slots_the_last_is_made_up_for(missed: int, warned: bool) -> None:
    world = CronWorld()
    world.now = START + missed * MINUTE + timedelta(seconds=20)
    world.settle()
    assert world.made == [f"c-{FIRST + missed - 1}"]
    assert bool(world.reported("TooManyMissedTimes")) is warned


def test_a_clock_that_goes_back_starts_nothing_again() -> None:
    world = CronWorld(schedule="0 * * * *")
    world.pass_time(hours=3)
    made = list(world.made)
    world.now -= timedelta(hours=2)
    world.pass_time(hours=2)
    assert world.made == made
    world.pass_time(hours=1)
    assert len(world.made) == len(made) + 1


def test_a_clock_that_was_far_ahead_is_told_of() -> None:
    world = CronWorld(schedule="0 * * * *")
    world.now += timedelta(days=3650)
    world.settle()
    world.now -= timedelta(days=3650)
    world.settle()
    assert "remove that field" in world.reported("ClockSkew")[0]


def test_a_new_schedule_counts_from_when_it_was_given() -> None:
    world = CronWorld(schedule="0 0 1 1 *")
    world.pass_time(hours=2, minutes=30)
    world.change(schedule="0 * * * *")
    world.settle()
    assert not world.made
    assert world.status == {"ledger": {"notBefore": "2026-11-21T14:30:00Z"}}
    world.rescheduled_at = None  # the controllers have been started again
    world.settle()
    assert not world.made
    world.pass_time(hours=1)
    assert len(world.made) == 1


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"schedule": "* * *"}, "UnParseableCronJobSchedule"),
        ({"timeZone": "Mars/Olympus"}, "InvalidTimeZone"),
        ({"schedule": "TZ=Mars/Olympus * * * * *"}, "InvalidTimeZone"),
        ({"schedule": "0 0 31 2 *"}, "InvalidSchedule"),
    ],
)
def test_what_cant_be_followed_is_told_and_left(spec: dict[str, Any], reason: str) -> None:
    world = CronWorld(**spec)
    world.add_job("c-1", owner="cron-uid")
    decision = world.reconcile()
    assert world.reported(reason)
    assert decision.requeue_at is None
    assert world.active == ["c-1"]  # the books are kept all the same


def test_a_zone_in_the_schedule_wins_with_a_word() -> None:
    world = CronWorld(schedule="CRON_TZ=America/New_York 0 8 * * *", timeZone="Asia/Tokyo")
    world.pass_time(hours=2)
    (job,) = world.jobs.values()
    assert job["metadata"]["annotations"][CRONJOB_SCHEDULED_TIMESTAMP] == "2026-11-21T08:00:00-05:00"
    assert world.reported("UnsupportedSchedule")


def test_short_intervals_have_names_of_their_own() -> None:
    world = CronWorld(schedule="@every 20s")
    world.pass_time(minutes=1)
    start = int(START.timestamp())
    assert world.made == [f"c-{start + 20}", f"c-{start + 40}", f"c-{start + 60}"]


def test_no_zone_means_utc() -> None:
    world = CronWorld(schedule="30 12 * * *")
    assert world.reconcile().requeue_at == datetime(2026, 11, 21, 12, 30, tzinfo=UTC)


def test_one_that_is_being_deleted_is_left_alone() -> None:
    world = CronWorld()
    world.cron_job["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:30Z"
    world.now += MINUTE
    decision = world.reconcile()
    assert (decision.status, list(decision.creates), list(decision.deletes)) == (None, [], [])


def test_times_that_cant_be_read_are_none() -> None:
    world = CronWorld()
    world.cron_job["status"] = {"lastScheduleTime": "yesterday", "active": [{"name": "x"}]}
    world.add_job("c-1", owner="cron-uid", annotations={CRONJOB_SCHEDULED_TIMESTAMP: "noon"})
    world.pass_time(minutes=1)
    assert world.active == ["c-1", f"c-{FIRST}"]
