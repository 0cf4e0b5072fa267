"""The disruption budgets of a job's future pods, validated with the job, since pods aren't sent to the webhook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from vcbatch.api.job import Job
from vcbatch.api.loose import part
from vcbatch.api.validate.errors import ValidationError
from vcbatch.api.validate.pod import BUDGETS, pod_errors


def budget_of_pods(annotations: Mapping[str, str]) -> dict[str, str]:
    """The part of a job's annotations that its pods get as their budget: one of the two, the minimum first."""
    name = next((name for name in BUDGETS if name in annotations), None)
    return {name: annotations[name]} if name is not None else {}


def job_budget_errors(job: Job) -> Iterator[ValidationError]:
    """The errors of `/pods/validate` for the budgets that the job's pods would have. The job's annotations have
    precedence over a template's."""
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
