"""The disruption budgets that the pods of a job would carry: judged with the job, since its pods aren't asked about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from vcbatch.api.job import Job
from vcbatch.api.loose import part
from vcbatch.api.validate.errors import ValidationError
from vcbatch.api.validate.pod import BUDGETS, pod_errors


def budget_of_pods(annotations: Mapping[str, str]) -> dict[str, str]:
    """What of a job's annotations its pods get as their budget: one of the two, the minimum first."""
    name = next((name for name in BUDGETS if name in annotations), None)
    return {name: annotations[name]} if name is not None else {}


def job_budget_errors(job: Job) -> Iterator[ValidationError]:
    """What `/pods/validate` says of the budgets of the pods that the job would have. What the job gives counts more
    than what a template has."""
    given = budget_of_pods(job.metadata.annotations)
    own = pod_errors(given)
    yield from own
    reported = {error.message for error in own}
    for index, task in enumerate(job.spec.tasks):
        path = f"spec.tasks[{index}].template"
        for error in pod_errors({**part(task.pod_metadata, "annotations"), **given}):
            if error.message not in reported:
                reported.add(error.message)
                yield replace(error, field=f"{path}.{error.field}", message=f"{path}: {error.message}")
