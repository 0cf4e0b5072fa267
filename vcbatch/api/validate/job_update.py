"""Validation of changes of Jobs (volcano-sh/volcano `pkg/webhooks/admission/jobs/validate`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from vcbatch.api.job import Job, JobSpec
from vcbatch.api.model import Json
from vcbatch.api.names import AFTER, BEGIN_TIME, DEADLINE, MAX_PARALLEL_PODS, MAX_RUN_SECONDS
from vcbatch.api.resources import JOBS
from vcbatch.api.validate.budget import job_budget_errors
from vcbatch.api.validate.errors import Cause, ValidationError
from vcbatch.api.validate.hosts import host_list_errors
from vcbatch.api.validate.job import (
    normalized,
    parallel_limit_errors,
    partition_errors,
    pod_name_errors,
    size_errors,
    start_errors,
    time_limit_errors,
    topology_errors,
)
from vcbatch.api.validate.mutability import FILLED_CLAIM_NAME, changeable
from vcbatch.api.validate.pod import BUDGETS

_FROZEN = (
    "job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` "
    "and `PriorityClassName`"
)


def job_update_errors(new: Job, old: Job) -> list[ValidationError]:
    """Errors of changes other than of the size and the priority of a job. Metadata may change, also on a job that was
    stored under older rules; a changed time limit, limit of parallel pods, start condition, deadline or disruption
    budget has to be valid."""
    limits = (job.metadata.annotations.get(MAX_RUN_SECONDS) for job in (new, old))
    errors = list(time_limit_errors(new)) if len(set(limits)) > 1 else []
    bounds = ((job.metadata.annotations.get(MAX_PARALLEL_PODS), job.spec.min_available) for job in (new, old))
    errors += parallel_limit_errors(new) if len(set(bounds)) > 1 else []
    starts = ([job.metadata.annotations.get(name) for name in (AFTER, BEGIN_TIME, DEADLINE)] for job in (new, old))
    errors += start_errors(new) if next(starts) != next(starts) else []
    budgets = ([job.metadata.annotations.get(name) for name in BUDGETS] for job in (new, old))
    errors += job_budget_errors(new) if next(budgets) != next(budgets) else []
    if new.spec == old.spec:
        return errors
    for index, task in enumerate(new.spec.tasks):
        path = f"spec.tasks[{index}]"
        if task.replicas < 0:
            errors.append(ValidationError(f"{path}.replicas", f"'replicas' must be >= 0 in task: {task.name}"))
        if task.min_available is not None and task.min_available < 0:
            errors.append(ValidationError(f"{path}.minAvailable", f"'minAvailable' must be >= 0 in task: {task.name}"))
        if task.min_available is not None and task.min_available > task.replicas:
            errors.append(
                ValidationError(f"{path}.minAvailable", f"'minAvailable' must be <= 'replicas' in task: {task.name}")
            )
        errors += partition_errors(task, new.name, path)
    errors += size_errors(new.spec, "spec")
    errors += _grown_lists(new, old)
    if new.spec.min_available < 0:
        errors.append(ValidationError("spec.minAvailable", "job 'minAvailable' must be >= 0"))
    if new.spec.min_available > new.spec.total_replicas:
        text = "job 'minAvailable' must not be greater than total replicas"
        detail = f"{text}: {new.spec.min_available} > {new.spec.total_replicas}"
        errors.append(ValidationError("spec.minAvailable", detail))
    errors += topology_errors(new.spec.network_topology, "spec.networkTopology")
    if len(new.spec.tasks) != len(old.spec.tasks):
        errors.append(ValidationError("spec.tasks", "job updates may not add or remove tasks", Cause.FORBIDDEN))
    elif _frozen_part(new.spec) != _frozen_part(old.spec):
        errors.append(
            ValidationError("spec", f"{_FROZEN}; changed: {', '.join(_changed(new.spec, old.spec))}", Cause.FORBIDDEN)
        )
    return errors


def _grown_lists(new: Job, old: Job) -> Iterator[ValidationError]:
    """Errors of the longer pod names and host lists of more replicas. Values that were allowed before stay allowed."""
    if new.spec.total_replicas > old.spec.total_replicas:
        yield from host_list_errors(new.spec, new.name, "spec")
    before = {task.name: task.replicas for task in old.spec.tasks}
    for index, task in enumerate(new.spec.tasks):
        if task.replicas > before.get(task.name, 0):
            yield from pod_name_errors(task, new.spec, new.name, f"spec.tasks[{index}]")


def _frozen_part(spec: JobSpec) -> Json:
    """The spec without its mutable fields and without zero values, which Go's types can't distinguish from absence."""
    wire: Json = normalized(spec.model_dump(by_alias=True))
    for path in changeable(JOBS):
        if path != FILLED_CLAIM_NAME:
            _clear(wire, path.split("."))
    # Here an empty list isn't the same as absence: it is a plugin without arguments.
    wire["plugins"] = {name: list(arguments) for name, arguments in spec.plugins.items()}
    for volume in wire.get("volumes", ()):
        if "volumeClaim" in volume:
            volume.pop("volumeClaimName", None)
    return wire


def _clear(wire: Json, path: list[str]) -> None:
    key, rest = path[0], path[1:]
    if not rest:
        wire.pop(key, None)
        return
    below = wire.get(key.removesuffix("[*]"))
    for item in cast("list[Json]", below) if isinstance(below, list) else ():
        _clear(item, rest)


def _changed(new: JobSpec, old: JobSpec) -> list[str]:
    mine, theirs = _frozen_part(new), _frozen_part(old)
    return [f"spec.{key}" for key in sorted({*mine, *theirs}) if mine.get(key) != theirs.get(key)]
