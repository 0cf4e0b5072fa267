"""Each attempt of a job has exactly one accounting record, whatever happens to the controllers and to the store; and
the usage in it is that of the pods that the server stored."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support import virtual_time
from tests.support.accounted import AccountedStage, admit, attempts_of, end_pod, start_pods, submit
from tests.support.examples import examples
from tests.support.job_lives import ask
from tests.support.lives import Death
from vcbatch.api.resources import COMMANDS, JOBS, PODS

_SEEN_SECONDS = 16.0
"""The precision of ends that no controllers saw."""
_MILLI_CPU = 100

Action = tuple[str, str, int]
_JOBS = ("a", "b")
actions = st.lists(
    st.tuples(
        st.sampled_from(
            ["submit", "run", "run", "run", "succeed", "fail", "restart job", "suspend", "resume", "cancel",
             "delete job", "delete pod", "wait", "other leader", "delete unseen"]
        ),
        st.sampled_from(_JOBS),
        st.integers(0, 1),
    ),
    max_size=14,
)  # fmt: skip
crashes = st.dictionaries(st.integers(0, 25), st.sampled_from(["before", "after"]), max_size=4)
deaths = st.lists(st.builds(Death, st.integers(0, 6), st.booleans()), max_size=4)


async def _act(stage: AccountedStage, action: Action) -> None:
    what, job, pod = action
    there = job in stage.names(JOBS)
    match what:
        case "submit" if not there:
            submit(stage, job, policies=[{"event": "PodFailed", "action": "RestartJob"}], maxRetry=2)
        case "run":
            await stage.pass_time(3)
            await admit(stage)
            await stage.pass_time(2)
            await start_pods(stage)
            await stage.pass_time(7)
        case "succeed":
            await end_pod(stage, f"{job}-w-{pod}", 0)
        case "fail":
            await end_pod(stage, f"{job}-w-{pod}", 3)
        case "restart job" | "suspend" | "resume" | "cancel" if there:
            order = {
                "restart job": "RestartJob",
                "suspend": "AbortJob",
                "resume": "ResumeJob",
                "cancel": "TerminateJob",
            }
            if f"{job}-{order[what].lower()}" not in stage.names(COMMANDS):
                ask(stage, JOBS, job, order[what])
        case "delete job" if there:
            stage.remove(JOBS, job)
        case "delete pod" if f"{job}-w-{pod}" in stage.names(PODS):
            stage.remove(PODS, f"{job}-w-{pod}")
        case "wait":
            await stage.pass_time(40)
        case "other leader":
            await stage.restart()
        case "delete unseen" if there:
            await stage.stop()
            stage.remove(JOBS, job)
            await stage.pass_time(20)
            await stage.restart()
        case _:
            pass
    await stage.pass_time(0.2)


async def _play(
    steps: Sequence[Action], path: Path, store_crashes: dict[int, str], program_deaths: Sequence[Death]
) -> None:
    stage = AccountedStage(path, crashes=store_crashes, deaths=program_deaths)
    try:
        await stage.restart()
        await stage.rest()
        for step in steps:
            await _act(stage, step)
        await stage.rest()
        stage.crashes.clear()
        stage.doom()
        await stage.restart()
        await stage.pass_time(60)
        undisturbed = not stage.deaths and not any(what in ("other leader", "delete unseen") for what, _, _ in steps)
        _check(stage, undisturbed=undisturbed)
    finally:
        await stage.stop()


def _check(stage: AccountedStage, *, undisturbed: bool) -> None:
    records, told = stage.records(), attempts_of(stage)
    unseen = {key for key, each in told.items() if each.deleted and not each.pods}
    assert records.keys() <= told.keys(), "a record of no attempt"
    assert told.keys() - unseen <= records.keys(), "an attempt without a record"
    for key, record in records.items():
        attempt = told[key]
        assert record.open == (attempt.ended is None), (key, record, attempt)
        assert record.user == f"user-of-{record.job}"
        end = record.ended if record.ended is not None else stage.clock.now().timestamp()
        cpu = attempt.pod_seconds(end) * _MILLI_CPU / 1000
        if attempt.ended is not None and record.ended is not None:
            lost = record.state == "Unknown"
            assert record.ended <= attempt.ended + 0.01, (key, record, attempt)
            assert lost or undisturbed is False or record.ended == pytest.approx(attempt.ended, abs=0.01)
        if undisturbed:
            assert record.cpu_seconds == pytest.approx(cpu, abs=0.01), (key, record, attempt)
            assert record.pods == len(attempt.pods)
        else:  # the end of a pod may have been seen last some seconds before
            slack = _SEEN_SECONDS * len(attempt.pods) * _MILLI_CPU / 1000
            assert cpu - slack - 0.01 <= record.cpu_seconds <= cpu + 0.01, (key, record, attempt)


@settings(max_examples=examples(150), deadline=None)
@given(actions, crashes, deaths)
@example([("submit", "a", 0), ("run", "a", 0), ("fail", "a", 1), ("run", "a", 0), ("delete job", "a", 0)], {}, [])
@example([("submit", "a", 0), ("run", "a", 0), ("delete unseen", "a", 0)], {}, [])
@example([("submit", "a", 0), ("run", "a", 0), ("suspend", "a", 0), ("resume", "a", 0), ("run", "a", 0)], {}, [])
def test_one_record_for_each_attempt(
    steps: list[Action], store_crashes: dict[int, str], program_deaths: list[Death]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        virtual_time.run(_play(steps, Path(folder, "accounting.db"), store_crashes, program_deaths))
