"""Jobs on a schedule, whenever the controllers die and however late they hear of things: a job for each slot that calls
for one, and none twice; those that are to be kept, and no others."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings

from tests.support.examples import examples
from tests.support.job_lives import end_pods, job_spec, run_pods
from tests.support.lives import Stage, Story, assert_alike, assert_deaths_change_nothing, misfortunes, report
from tests.support.virtual_time import EPOCH
from vcbatch.api.resources import CRONJOBS, JOBS, PODGROUPS

TEMPLATE = {"spec": job_spec()}


def _cron_job(stage: Stage, policy: str, **spec: Any) -> None:
    limits = {"successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 1}
    given = {"schedule": "0 * * * *", "concurrencyPolicy": policy, "jobTemplate": TEMPLATE, **limits}
    stage.put(CRONJOBS, "c", spec=given | spec)


def _of_hours(*hours: int) -> list[str]:
    """The names of the jobs of these slots."""
    return [f"c-{int((EPOCH + timedelta(hours=hour)).timestamp()) // 60}" for hour in hours]


async def _past(stage: Stage, hour: int) -> None:
    """Some minutes into that hour."""
    await stage.until(EPOCH + timedelta(hours=hour, minutes=5))


async def _end(stage: Stage, hour: int, phase: str = "Succeeded") -> None:
    """The pods of that slot's job run, and end so."""
    await run_pods(stage)
    await end_pods(stage, *_of_hours(hour), phase)


def _active(stage: Stage) -> list[str]:
    return [entry["name"] for entry in stage.get(CRONJOBS, "c").get("status", {}).get("active", [])]


async def _side_by_side(stage: Stage) -> None:
    """Allow, a history of one each way, and a suspension."""
    _cron_job(stage, "Allow")
    await _past(stage, 2)
    assert stage.names(JOBS) == _active(stage) == _of_hours(1, 2)
    await _end(stage, 1)
    await _end(stage, 2)
    assert stage.names(JOBS) == _of_hours(2)
    await stage.change(CRONJOBS, "c", {"spec": {"suspend": True}})
    await _past(stage, 4)
    await stage.change(CRONJOBS, "c", {"spec": {"suspend": False}})
    await stage.rest()
    assert (stage.names(JOBS), _active(stage)) == (_of_hours(2, 4), _of_hours(4))


async def _one_at_a_time(stage: Stage) -> None:
    """Forbid: a slot waits as long as it is the last one."""
    _cron_job(stage, "Forbid")
    await _past(stage, 3)
    assert stage.names(JOBS) == _of_hours(1)
    await _end(stage, 1, "Failed")
    assert (stage.names(JOBS), _active(stage)) == (_of_hours(1, 3), _of_hours(3))
    await _end(stage, 3, "Failed")
    assert stage.names(JOBS) == _of_hours(3)


async def _one_after_the_other(stage: Stage) -> None:
    """Replace: what still runs makes room."""
    _cron_job(stage, "Replace")
    await _past(stage, 3)
    assert stage.names(JOBS) == _active(stage) == _of_hours(3)
    assert len(stage.names(PODGROUPS)) == 1
    stage.remove(JOBS, *_of_hours(3))
    await stage.rest()
    assert stage.names(JOBS) == _active(stage) == [], "a slot that was acted on isn't acted on again"


STORIES: dict[str, Story] = {
    story.__name__.strip("_"): story for story in (_side_by_side, _one_at_a_time, _one_after_the_other)
}


@pytest.mark.parametrize("name", STORIES)
def test_dying_at_any_write_changes_nothing(name: str) -> None:
    assert_deaths_change_nothing(STORIES[name], least=8)


@pytest.mark.parametrize("name", STORIES)
def test_neither_does_late_news_and_dying_often(name: str) -> None:
    whole = report(STORIES[name])

    @settings(max_examples=examples(15))
    @given(misfortunes(CRONJOBS, JOBS))
    def check(misfortune: Any) -> None:
        assert_alike(report(STORIES[name], **misfortune), whole, str(misfortune))

    check()
