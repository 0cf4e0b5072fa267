"""Finished jobs that have a time to go (`ttlSecondsAfterFinished`), whenever the controllers die: each goes when its
time is over, with all that it owns, and not before; all others stay."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import given, settings

from tests.support.examples import examples
from tests.support.job_lives import ask, end_pods, phase_of, run_pods, submit
from tests.support.lives import Stage, assert_alike, assert_deaths_change_nothing, misfortunes, report
from vcbatch.api.resources import CONFIGMAPS, JOBS, PODGROUPS, PODS, SERVICES
from vcbatch.api.timestamps import parse_time

TTL_SECONDS = 900
"""Longer than a controller ever sleeps on a wish to look again."""


async def _time_goes_by(stage: Stage) -> None:
    submit(stage, "stays")
    submit(stage, "goes", ttlSecondsAfterFinished=TTL_SECONDS, plugins={"svc": []})
    submit(stage, "waits", ttlSecondsAfterFinished=TTL_SECONDS)
    await run_pods(stage)
    ask(stage, JOBS, "waits", "AbortJob")
    await stage.rest()
    for name in ("stays", "goes"):
        await end_pods(stage, name)
    assert [phase_of(stage, name) for name in ("stays", "goes", "waits")] == ["Completed", "Completed", "Aborted"]
    state = stage.get(JOBS, "goes")["status"]["state"]
    due = parse_time(state["lastTransitionTime"]) + timedelta(seconds=TTL_SECONDS)
    await stage.until(due - timedelta(seconds=300))
    await stage.restart()
    await stage.until(due - timedelta(seconds=5))
    assert stage.names(JOBS) == ["stays", "goes", "waits"]
    assert sorted(stage.names(PODS)) == ["goes-w-0", "stays-w-0"]
    await stage.until(due + timedelta(seconds=5))
    assert stage.names(JOBS) == ["stays", "waits"]
    await stage.rest()
    assert sorted(stage.names(PODS)) == ["stays-w-0"]
    assert stage.names(SERVICES) == stage.names(CONFIGMAPS) == []


def test_dying_at_any_write_changes_nothing() -> None:
    assert_deaths_change_nothing(_time_goes_by, least=20)


def test_neither_does_late_news_and_dying_often() -> None:
    whole = report(_time_goes_by)

    @settings(max_examples=examples(10))
    @given(misfortunes(JOBS, PODS, PODGROUPS))
    def check(misfortune: Any) -> None:
        assert_alike(report(_time_goes_by, **misfortune), whole, str(misfortune))

    check()
