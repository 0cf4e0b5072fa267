"""What `vcbatch wait` takes for a condition, and when it gives up."""

from __future__ import annotations

from typing import Any

import pytest

from vcbatch.api.resources import JOBS
from vcbatch.cli.wait.conditions import Condition, MalformedCondition, condition, kind_of

Json = dict[str, Any]


def job(phase: str, **status: Any) -> Json:
    return {"metadata": {"name": "a"}, "status": {"state": {"phase": phase}, **status}}


def of(text: str, kind: str = "job") -> Condition:
    return condition(text, kind_of(kind))


@pytest.mark.parametrize(
    ("text", "holds", "not_yet"),
    [
        ("completed", job("Completed"), job("Completing")),
        ("Running", job("Running"), job("Pending")),
        ("phase=running", job("Running"), job("Pending")),
        ("finished", job("Terminated"), job("Aborted")),
        ("created", job("Pending"), None),
        ("delete", None, job("Pending")),
        ("condition=Ready", job("", conditions=[{"type": "Ready", "status": "True"}]), job("")),
        (
            "condition=ready=false",
            job("", conditions=[{"type": "Ready", "status": "False"}]),
            job("", conditions=[{"type": "Ready", "status": "True"}]),
        ),
        ("jsonpath={.status.running}=3", job("", running=3), job("", running=2)),
        ("jsonpath=.status.running=3", job("", running=3), job("")),
        ("jsonpath={.status.running}", job("", running=0), job("")),
        ('jsonpath={.status.tasks[?(@.name=="a=b")].n}=1', job("", tasks=[{"name": "a=b", "n": 1}]), job("")),
    ],
)
def test_a_condition_holds_or_does_not(text: str, holds: Json | None, not_yet: Json | None) -> None:
    asked = of(text)
    assert asked.holds(holds)
    assert not asked.holds(not_yet)


@pytest.mark.parametrize("text", ["", "done", "phase=Done", "phase=", "condition", "jsonpath", "jsonpath={.a", "a=b"])
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(MalformedCondition):
        of(text)


def test_a_phase_that_can_not_come_any_more_is_hopeless() -> None:
    assert of("completed").hopeless(job("Failed")) == "is Failed and can no longer be Completed"
    assert of("running").hopeless(job("Completed")) == "is Completed and can no longer be Running"
    for still in ("Pending", "Aborted", "Restarting", "Completed"):
        assert of("completed").hopeless(job(still)) == ""
    assert of("finished").hopeless(job("Failed")) == ""


@pytest.mark.parametrize("word", ["job", "vcjob", "job.batch.volcano.sh", "Job.batch.volcano.sh"])
def test_a_kind_may_have_its_group_as_output_names_it(word: str) -> None:
    assert kind_of(word).resource == JOBS


@pytest.mark.parametrize("word", ["job.batch", "job.flow.volcano.sh", "pod.batch.volcano.sh"])
def test_another_group_is_another_kind(word: str) -> None:
    with pytest.raises(MalformedCondition, match="unknown kind"):
        kind_of(word)


def test_kinds_have_their_own_phases() -> None:
    assert of("open", "queue").holds({"status": {"state": "Open"}})
    assert of("succeed", "jf").holds(job("Succeed"))
    with pytest.raises(MalformedCondition, match="must be open, closed, closing"):
        of("finished", "queue")
    with pytest.raises(MalformedCondition, match="unknown kind 'deployment'; must be job, jobflow"):
        kind_of("deployment")


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ("finished", "finished"),
        ("jsonpath={.status.running}=3", "{.status.running}=3"),
        ("condition=Ready", "Ready=true"),
    ],
)
def test_conditions_are_named_in_messages(given: str, reported: str) -> None:
    assert of(given).said == reported
