"""The spec of a job, with the defaults that admission would have set.

The controllers must not depend on a webhook: a job stored without defaulting means the same here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from vcbatch.api import names
from vcbatch.api.defaults import DEFAULT_MAX_RETRY
from vcbatch.api.job import Job, LifecyclePolicy, TaskSpec
from vcbatch.api.parallel_limit import parallel_limit
from vcbatch.api.queue import DEFAULT
from vcbatch.api.start_conditions import deadline
from vcbatch.api.time_limit import time_limit

UNLIMITED_RESTARTS = -1
ANY_DEPENDENCY = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task. `min_pods` is its own gang minimum, `explicit_minimum` whether the spec has it."""

    name: str
    replicas: int
    min_pods: int
    explicit_minimum: bool
    container_restarts: int
    policies: tuple[LifecyclePolicy, ...]
    depends_on: tuple[str, ...]
    any_dependency: bool
    """Whether one of the tasks in `depends_on` is enough."""
    partition_size: int
    """The number of pods of a partition; 0 where the task has no partitions."""
    spec: TaskSpec

    def partition_of(self, index: int) -> range:
        """The indices of the partition that contains this one."""
        first = index - index % self.partition_size
        return range(first, min(first + self.partition_size, self.replicas))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The job's spec; `tasks` in the order of the spec."""

    job: Job
    queue: str
    tasks: Mapping[str, Task]
    replicas: int
    min_available: int
    min_success: int | None
    max_retry: int
    max_run_seconds: int | None
    deadline: datetime | None
    """The time at which the job is terminated if it hasn't finished."""
    max_parallel: int | None
    """The maximum number of pods that are alive together; never fewer than the gang needs."""
    policies: tuple[LifecyclePolicy, ...]

    @property
    def min_task_sum(self) -> int:
        """The sum of the tasks' own minimums."""
        return sum(task.min_pods for task in self.tasks.values())


def by_priority(tasks: Iterable[Task], priority_classes: Mapping[str, int]) -> list[Task]:
    """The tasks of the highest priority first; those of equal priority keep their order, so that results don't
    alternate."""
    return sorted(tasks, key=lambda task: -priority_of(task, priority_classes))


def priority_of(task: Task, priority_classes: Mapping[str, int]) -> int:
    """The value of the PriorityClass that the task's template names; 0 without one, or where it is unknown."""
    name = task.spec.pod_spec.get("priorityClassName")
    return priority_classes.get(name, 0) if isinstance(name, str) else 0


def plan_of(job: Job) -> Plan:
    """Read a job's spec. `minAvailable` 0 means the sum of the tasks' minimums, `maxRetry` 0 means 3, and a task
    without a name is called `default<index>` (Volcano's mutating webhook)."""
    tasks: dict[str, Task] = {}
    for position, spec in enumerate(job.spec.tasks):
        name = spec.name or names.default_task_name(position)
        tasks[name] = Task(
            name=name,
            replicas=max(spec.replicas, 0),
            min_pods=spec.min_pods,
            explicit_minimum=spec.min_available is not None,
            container_restarts=spec.max_retry or DEFAULT_MAX_RETRY,
            policies=tuple(spec.policies),
            depends_on=tuple(spec.depends_on.name) if spec.depends_on else (),
            any_dependency=bool(spec.depends_on and spec.depends_on.iteration == ANY_DEPENDENCY),
            partition_size=max(spec.partition_policy.partition_size, 0) if spec.partition_policy else 0,
            spec=spec,
        )
    min_available = job.spec.min_available or sum(task.min_pods for task in tasks.values())
    limit = parallel_limit(job.metadata.annotations)
    return Plan(
        job=job,
        queue=job.spec.queue or DEFAULT,
        tasks=tasks,
        replicas=sum(task.replicas for task in tasks.values()),
        min_available=min_available,
        min_success=job.spec.min_success,
        max_retry=job.spec.max_retry or DEFAULT_MAX_RETRY,
        max_run_seconds=time_limit(job.metadata.annotations),
        deadline=deadline(job.metadata.annotations),
        max_parallel=None if limit is None else max(limit, min_available),
        policies=tuple(job.spec.policies),
    )
