"""Warnings that need the object as its author wrote it: its defaults hide their causes.

The object comes from a client and may have any shape; values of a wrong type are rejected elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from vcbatch.api.defaults import DEFAULT_MAX_RETRY, default_task_minimum
from vcbatch.api.job import Event
from vcbatch.api.loose import listed, part
from vcbatch.api.model import Json


def written_job_warnings(spec: Mapping[str, Any], path: str, *, stored: bool = False) -> Iterator[str]:
    """Zeros that stand for a default, as in Volcano, and a job's minimum that contradicts those of its tasks.

    `stored`: the job was stored before, so that its tasks have minimums that admission set. One that equals the default
    can't be distinguished from these and doesn't count.
    """
    tasks = [cast(Json, task) for task in listed(spec, "tasks") if isinstance(task, dict)]
    if _is_zero(spec.get("maxRetry")):
        yield f"{path}.maxRetry: 0 means the default, {DEFAULT_MAX_RETRY}; 1 means no restart"
    zero = [index for index, task in enumerate(tasks) if _is_zero(task.get("maxRetry")) and _answered(spec, task)]
    if zero:
        others = f" (and {len(zero) - 1} more)" if len(zero) > 1 else ""
        text = f"0 means the default, {DEFAULT_MAX_RETRY}; 1 means TaskFailed at the first restart of a container"
        yield f"{path}.tasks[{zero[0]}].maxRetry{others}: {text}"
    yield from _minimum_warnings(spec, tasks, path, stored=stored)


def written_queue_warnings(spec: Mapping[str, Any]) -> Iterator[str]:
    """A weight of 0, which becomes 1."""
    if _is_zero(spec.get("weight")):
        yield "spec.weight: 0 means the default, 1"


def _minimum_warnings(spec: Mapping[str, Any], tasks: list[Json], path: str, *, stored: bool) -> Iterator[str]:
    given = spec.get("minAvailable")
    if _is_zero(given):
        total = sum(_minimum(task) for task in tasks)
        if total > 0:
            yield f"{path}.minAvailable: 0 means the default, {total}, the sum of the tasks' minAvailable"
    elif isinstance(given, int) and not isinstance(given, bool):
        least = sum(_written_minimum(task, stored=stored) for task in tasks)
        if 0 < given < least:
            text = f"{given} is below {least}, the sum of the tasks' minAvailable"
            yield f"{path}.minAvailable: {text}: a task may start with less than its own minimum"


def _minimum(task: Json) -> int:
    given = task.get("minAvailable")
    return default_task_minimum(task) if given is None else given if isinstance(given, int) else 0


def _written_minimum(task: Json, *, stored: bool) -> int:
    """The task's minimum where its author wrote one, directly or by partitions; else 0."""
    given, default = task.get("minAvailable"), default_task_minimum(task)
    if isinstance(given, int) and not isinstance(given, bool):
        return 0 if stored and given == default else given
    least = part(task, "partitionPolicy").get("minPartitions")
    return default if given is None and isinstance(least, int) and least > 0 else 0


def _answered(spec: Mapping[str, Any], task: Json) -> bool:
    """Whether a policy handles TaskFailed, the event that a task's maxRetry leads to."""
    given = [*listed(task, "policies"), *listed(spec, "policies")]
    policies = [cast(Json, policy) for policy in given if isinstance(policy, dict)]
    events = [event for policy in policies for event in (policy.get("event"), *listed(policy, "events"))]
    return Event.TASK_FAILED in events or Event.ANY in events


def _is_zero(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == 0
