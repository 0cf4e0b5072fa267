"""What a job asks for, read with every default and with none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.job_world import Json, job_object
from vcbatch.api.job import Job
from vcbatch.core.job.counts import Counts
from vcbatch.core.job.outcome import running_outcome
from vcbatch.core.job.plan import Plan, Task, by_priority, plan_of, priority_of


def planned(*tasks: Json, annotations: Json | None = None, **spec: Any) -> Plan:
    job = job_object(tasks=[{"template": {"spec": {}}, **task} for task in tasks], **spec)
    job["metadata"]["annotations"] = annotations or {}
    return plan_of(Job.parse(job))


def test_a_job_that_says_nothing_but_how_many() -> None:
    plan = planned({"replicas": 2}, {"replicas": 3})
    first, second = plan.job.spec.tasks
    plain: Json = {
        "explicit_minimum": False,
        "container_restarts": 3,
        "policies": (),
        "depends_on": (),
        "any_dependency": False,
        "partition_size": 0,
    }
    assert plan == Plan(
        job=plan.job,
        queue="default",
        tasks={
            "default0": Task(name="default0", replicas=2, min_pods=2, spec=first, **plain),
            "default1": Task(name="default1", replicas=3, min_pods=3, spec=second, **plain),
        },
        replicas=5,
        min_available=5,
        min_success=None,
        max_retry=3,
        max_run_seconds=None,
        deadline=None,
        max_parallel=None,
        policies=(),
    )


def test_a_job_that_says_everything() -> None:
    policies = [{"event": "PodFailed", "action": "AbortJob"}]
    task = {
        "name": "a",
        "replicas": 4,
        "minAvailable": 1,
        "maxRetry": 5,
        "policies": policies,
        "dependsOn": {"name": ["x", "y"], "iteration": "any"},
        "partitionPolicy": {"totalPartitions": 2, "partitionSize": 2},
    }
    limit = {"vcbatch.dev/max-run-seconds": "60"}
    plan = planned(task, annotations=limit, queue="q", minAvailable=2, minSuccess=3, maxRetry=7, policies=policies)
    (spec,) = plan.job.spec.tasks
    assert plan.tasks == {
        "a": Task(
            name="a",
            replicas=4,
            min_pods=1,
            explicit_minimum=True,
            container_restarts=5,
            policies=tuple(spec.policies),
            depends_on=("x", "y"),
            any_dependency=True,
            partition_size=2,
            spec=spec,
        )
    }
    assert (plan.queue, plan.replicas, plan.min_available, plan.min_success, plan.max_retry) == ("q", 4, 2, 3, 7)
    assert (plan.policies, plan.min_task_sum, plan.max_run_seconds) == (tuple(plan.job.spec.policies), 1, 60)


@pytest.mark.parametrize(("given", "size"), [(3, 3), (0, 0), (-1, 0)])
def test_a_partition_has_some_pods_or_there_is_none(given: int, size: int) -> None:
    plan = planned({"name": "a", "replicas": 6, "partitionPolicy": {"partitionSize": given}})
    assert plan.tasks["a"].partition_size == size


@pytest.mark.parametrize(("index", "members"), [(0, [0, 1, 2]), (2, [0, 1, 2]), (3, [3, 4, 5]), (7, [6, 7])])
def test_the_partition_of_an_index(index: int, members: list[int]) -> None:
    plan = planned({"name": "a", "replicas": 8, "partitionPolicy": {"partitionSize": 3}})
    assert list(plan.tasks["a"].partition_of(index)) == members


def test_fewer_than_no_pods_are_none() -> None:
    plan = planned({"name": "a", "replicas": -2}, {"name": "b", "replicas": 1})
    assert (plan.tasks["a"].replicas, plan.replicas) == (0, 1)


@pytest.mark.parametrize(
    ("given", "priority"),
    [
        ({}, 0),
        ({"priorityClassName": "high"}, 5),
        ({"priorityClassName": "no"}, 0),
        ({"priorityClassName": ["high"]}, 0),
    ],
)
def test_the_priority_of_a_task(given: Json, priority: int) -> None:
    plan = planned({"name": "a", "replicas": 1, "template": {"spec": given}})
    assert priority_of(plan.tasks["a"], {"high": 5}) == priority


def test_tasks_of_one_priority_keep_their_order() -> None:
    classes = {"a": "", "b": "high", "c": "low", "d": "high", "e": ""}
    tasks = [
        {"name": name, "replicas": 1, "template": {"spec": {"priorityClassName": given} if given else {}}}
        for name, given in classes.items()
    ]
    ordered = by_priority(planned(*tasks).tasks.values(), {"high": 5, "low": -5})
    assert [task.name for task in ordered] == ["b", "d", "a", "e", "c"]


# The outcome ---------------------------------------------------------------------------------------------------------

TWO = ({"name": "a", "replicas": 2, "minAvailable": 1}, {"name": "b", "replicas": 2, "minAvailable": 1})


def done(a: int, b: int) -> Counts:
    return Counts(succeeded=a + b, failed=4 - a - b, tasks={"a": {"Succeeded": a}, "b": {"Succeeded": b}})


@pytest.mark.parametrize(
    ("spec", "counts", "phase"),
    [
        ({}, done(1, 1), "Completed"),
        ({}, done(2, 0), "Failed"),
        ({"minAvailable": 1}, done(2, 0), "Completed"),
        ({"minAvailable": 3}, done(1, 1), "Failed"),
        ({"minAvailable": 3}, done(2, 1), "Completed"),
        ({"minSuccess": 1}, Counts(running=3, succeeded=1), "Completed"),
        ({"minSuccess": 2}, Counts(running=3, succeeded=1), "Running"),
        ({"minSuccess": 4}, done(2, 1), "Failed"),
        ({}, Counts(running=1, failed=3), "Running"),
        ({}, Counts(succeeded=2, blocked=2, tasks=done(1, 1).tasks), "Completed"),
        ({}, Counts(succeeded=1, failed=1, blocked=1), "Running"),
        ({"minAvailable": 3}, Counts(running=3, pending=1), "Running"),
        ({"minAvailable": 3}, Counts(running=2, pending=2), "Pending"),
        ({"minAvailable": 4}, Counts(running=4), "Running"),
    ],
)
def test_how_a_job_goes_on(spec: Json, counts: Counts, phase: str) -> None:
    assert running_outcome(planned(*TWO, **spec), counts) == phase


def test_a_job_without_pods_goes_on() -> None:
    assert running_outcome(planned({"name": "a", "replicas": 0}, minSuccess=1), Counts(succeeded=1)) == "Running"
