"""Commands, whenever the controllers die and however late they hear of things: each is carried out once, none stays.

Volcano's controller deletes a Command before it acts on it, so that a death in between loses it. Here what a Command
changes is stored first, together with its UID, and the Command is deleted after that.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from tests.support.examples import examples
from tests.support.job_lives import ask, phase_of, run_pods, submit
from tests.support.lives import Death, Stage, Story, assert_alike, assert_deaths_change_nothing, misfortunes, report
from vcbatch.api.resources import COMMANDS, CRONJOBS, JOBS, PODGROUPS, PODS, QUEUES


async def _restarts_are_counted(stage: Stage) -> None:
    """What is done twice is seen in the count of restarts."""
    submit(stage, maxRetry=9)
    await run_pods(stage)
    assert phase_of(stage) == "Running"
    for count in (1, 2):
        ask(stage, JOBS, "j", "RestartJob")
        await run_pods(stage)
        assert (phase_of(stage), stage.get(JOBS, "j")["status"]["retryCount"]) == ("Running", count)
    assert stage.names(COMMANDS) == []


async def _several_at_once(stage: Stage) -> None:
    """The oldest first; those without sense do nothing."""
    submit(stage, maxRetry=9)
    await run_pods(stage)
    ask(stage, JOBS, "j", "AbortJob")
    ask(stage, JOBS, "j", "OpenQueue")
    ask(stage, JOBS, "j", "TerminateJob", uid="of-one-before")
    await stage.rest()
    assert (phase_of(stage), stage.names(COMMANDS)) == ("Aborted", [])
    ask(stage, JOBS, "j", "ResumeJob")
    await run_pods(stage)
    assert (phase_of(stage), stage.names(COMMANDS)) == ("Running", [])
    assert stage.get(JOBS, "j")["status"]["retryCount"] == 1


async def _one_that_can_t_be_removed(stage: Stage) -> None:
    """What it asks for is done once, however long it stays. The job waits with it."""
    submit(stage, maxRetry=9)
    await run_pods(stage)
    stage.server.kept.add(COMMANDS)
    ask(stage, JOBS, "j", "RestartJob")
    await stage.pass_time(0.5)
    assert (phase_of(stage), stage.names(COMMANDS)) == ("Pending", ["j-restartjob"])
    stage.server.kept.clear()
    await run_pods(stage)
    assert (phase_of(stage), stage.names(COMMANDS)) == ("Running", [])
    assert stage.get(JOBS, "j")["status"]["retryCount"] == 1


async def _to_nobody(stage: Stage) -> None:
    """Their targets aren't there, come in time, come too late, go before they look, or are of a kind without ears."""
    ask(stage, JOBS, "nobody", "AbortJob", uid="u")
    ask(stage, CRONJOBS, "c", "AbortJob", uid="u")
    ask(stage, QUEUES, "none", "OpenQueue", uid="u")
    ask(stage, JOBS, "j", "AbortJob", uid="")
    await stage.pass_time(30)
    submit(stage, "j")
    await stage.rest()
    assert phase_of(stage) == "Aborted"
    await stage.pass_time(60)
    assert stage.names(COMMANDS) == []


async def _to_one_that_goes(stage: Stage) -> None:
    """A job that is being deleted takes no Commands any more, and those that wait for it don't stay either."""
    submit(stage)
    await run_pods(stage)
    await stage.change(JOBS, "j", {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    await stage.rest()
    ask(stage, JOBS, "j", "AbortJob")
    await stage.rest()
    stage.remove(JOBS, "j")
    await stage.pass_time(70)
    assert stage.names(COMMANDS) == []


STORIES: dict[str, tuple[Story, int]] = {
    story.__name__.strip("_"): (story, least)
    for story, least in (
        (_restarts_are_counted, 20),
        (_several_at_once, 15),
        (_to_nobody, 6),
        (_to_one_that_goes, 5),
    )
}


@pytest.mark.parametrize("name", STORIES)
def test_dying_at_any_write_changes_nothing(name: str) -> None:
    story, least = STORIES[name]
    assert_deaths_change_nothing(story, least=least)


@pytest.mark.parametrize("name", STORIES)
def test_neither_does_late_news_and_dying_often(name: str) -> None:
    story, _ = STORIES[name]
    whole = report(story)

    @settings(max_examples=examples(10))
    @given(misfortunes(COMMANDS, JOBS, PODS, PODGROUPS))
    def check(misfortune: Any) -> None:
        assert_alike(report(story, **misfortune), whole, str(misfortune))

    check()


def test_one_that_can_t_be_removed_is_carried_out_once() -> None:
    """Its deletion is tried again and again, so the deaths are those around the first try."""
    whole = report(_one_that_can_t_be_removed)
    first = next(
        number for number, (verb, plural, _) in enumerate(whole.writes) if (verb, plural) == ("delete", "commands")
    )
    for number in range(first - 2, first + 5):
        for after in (False, True):
            reported = report(_one_that_can_t_be_removed, deaths=[Death(number, after)])
            assert_alike(reported, whole, f"died {after=} at {number}, {whole.writes[number]}")
