"""Every cell of the flow's table, over all ways in which its jobs may stand."""

from __future__ import annotations

import itertools

import pytest

from vcbatch.api.job import Action
from vcbatch.api.jobflow import JobFlowPhase
from vcbatch.core.jobflow.states import TABLE, Cell, Outlook, Verb

CELLS = [(phase, action, cell) for phase, row in TABLE.items() for action, cell in row.items()]
_TOTAL = 3


def _outlooks(phase: JobFlowPhase) -> list[Outlook]:
    return [
        Outlook(phase=phase, total=total, running=running, completed=completed, broken=broken, ending=ending)
        for total, running, completed, broken, ending in itertools.product(range(_TOTAL + 1), repeat=5)
        if running + completed + broken <= total
    ]


def test_every_phase_has_a_row_that_says_what_happens_without_a_command() -> None:
    assert TABLE.keys() == set(JobFlowPhase)
    assert all(Action.SYNC_JOB in row for row in TABLE.values())


@pytest.mark.parametrize(("phase", "action", "cell"), CELLS, ids=lambda value: str(value)[:20])
def test_a_cell_reaches_what_it_says_and_nothing_else(phase: JobFlowPhase, action: Action, cell: Cell) -> None:
    reached = {cell.then.decide(outlook) for outlook in _outlooks(phase)}
    assert reached - {phase} == set(cell.then.reaches) - {phase}


def test_a_flow_that_succeeded_stays_so() -> None:
    assert TABLE[JobFlowPhase.SUCCEED].keys() == {Action.SYNC_JOB}
    assert TABLE[JobFlowPhase.SUCCEED][Action.SYNC_JOB].then.reaches == ()


@pytest.mark.parametrize("phase", [JobFlowPhase.PENDING, JobFlowPhase.RUNNING])
def test_a_failure_comes_before_everything_else(phase: JobFlowPhase) -> None:
    sync = TABLE[phase][Action.SYNC_JOB].then
    for outlook in _outlooks(phase):
        assert (sync.decide(outlook) is JobFlowPhase.FAILED) is (outlook.broken > 0)


def test_only_a_failed_flow_is_tried_again_and_only_a_live_one_suspended() -> None:
    verbs = {(phase, cell.verb) for phase, _, cell in CELLS if cell.verb is not Verb.FOLLOW}
    live = {
        (phase, verb) for phase in (JobFlowPhase.PENDING, JobFlowPhase.RUNNING) for verb in (Verb.SUSPEND, Verb.RESUME)
    }
    assert verbs == live | {(JobFlowPhase.FAILED, Verb.RETRY)}
