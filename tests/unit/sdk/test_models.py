"""What is given to the models by mistake, and how they show themselves."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from vcbatch import DependsOn, Job, Policy, Queue, Resources, Task
from vcbatch.sdk.models.status import JobStatus


class Whole:
    """A whole number of another library."""

    def __index__(self) -> int:
        return 3


@pytest.mark.parametrize(
    ("make", "reported"),
    [
        (lambda: Task(command="python train.py"), r"Task\(command=\.\.\.\): want a list, got 'python train.py'"),  # type: ignore[arg-type]
        (lambda: Task(args="-v"), "args"),
        (lambda: Job(tasks=Task(name="worker")), r"Job\(tasks=\.\.\.\): want a list, got Task\(name='worker'\)"),  # type: ignore[arg-type]
        (lambda: Job(policies=Policy(action="RestartJob")), "policies"),  # type: ignore[arg-type]
        (lambda: Policy(events="PodFailed"), "events"),
        (lambda: DependsOn(tasks="worker"), "tasks"),
        (lambda: Job(plugins={"svc": "--x"}).to_manifest(), "want a list of strings, got '--x'"),
        (lambda: Job(name="a").replace(tasks=None), "tasks"),
    ],
)
def test_what_is_no_list_is_refused_at_once(make: Callable[[], Any], reported: str):
    with pytest.raises(TypeError, match=reported):
        make()


@pytest.mark.parametrize(
    ("amount", "written"),
    [(0.5, "0.5"), (2.0, "2.0"), (1e-7, "1e-07"), (Fraction(1, 4), "0.25"), (2, 2), ("500m", "500m"), (Whole(), 3)],
)
def test_amounts_are_written_as_kubernetes_takes_them(amount: Any, written: str | int):
    asked = Resources.of(cpu=amount).to_manifest()["requests"]["cpu"]
    assert (asked, type(asked)) == (written, type(written))
    assert Queue(name="a", capability={"cpu": amount}).to_manifest()["spec"]["capability"] == {"cpu": written}


def test_counts_of_other_libraries_are_whole_numbers():
    assert type(Task(replicas=Whole()).to_manifest()["replicas"]) is int  # type: ignore[arg-type]


def test_only_what_says_something_is_shown():
    job = Job(name="a", queue="research", tasks=[Task(name="w", replicas=2, command=["true"])])
    assert repr(job) == "Job(name='a', queue='research', tasks=(Task(name='w', replicas=2, command=('true',)),))"
    assert eval(repr(job)) == job
    assert repr(Resources.of(cpu=1)) == "Resources(requests={'cpu': 1})"
    read = Job.from_manifest({**job.to_manifest(), "status": {"state": {"phase": "Running"}}})
    assert repr(read) == f"{repr(job)[:-1]}, phase='Running')"


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ({"message": "Start to execute action AbortJob: asked for by the Command c"}, "asked for by the Command c"),
        ({"message": "a node was lost", "reason": "PodEvicted"}, "a node was lost"),
        ({"reason": "CommandIssued"}, "CommandIssued"),
        ({}, ""),
    ],
)
def test_why_a_job_is_in_its_phase(state: dict[str, str], why: str):
    assert JobStatus.read({"state": state}).why == why
