"""Fields of a job that this version doesn't support yet. Admission rejects such a job; one that bypassed admission
stays Pending with the reason, and is never run with a changed spec."""

from __future__ import annotations

from collections.abc import Iterator

from vcbatch.api import messages
from vcbatch.api.loose import part
from vcbatch.api.reasons import JobReason
from vcbatch.api.resources import JOBS
from vcbatch.api.validate import graph
from vcbatch.core.job.plan import Plan
from vcbatch.core.job.plugins import KNOWN
from vcbatch.core.machine import Decision, Emit, EventType, Json, Named, WriteStatus, ref_of


def refusal_of(plan: Plan) -> str:
    """Why this job can't run, naming every field; empty where it can."""
    return "; ".join(_errors(plan))


def unreadable(job: Json, metadata: Named, why: str) -> Decision:
    """Report in the status of a stored job, and once as an event, why no decision on it is possible: it, its PodGroup
    or a Command to it has fields of other types than its CRD allows. A change of that object reconciles the job
    again."""
    message = messages.shorten(why)
    status = part(job, "status")
    state = part(status, "state")
    if (state.get("reason"), state.get("message")) == (JobReason.UNSUPPORTED, message):
        return Decision()
    ref = ref_of(JOBS, metadata)
    decided = {**status, "state": {**state, "reason": JobReason.UNSUPPORTED.value, "message": message}}
    write = WriteStatus(ref=ref, resource_version=part(job, "metadata").get("resourceVersion", ""), status=decided)
    event = Emit(ref=ref, type=EventType.WARNING, reason=JobReason.UNSUPPORTED, message=message, after=write)
    return Decision(status=write, events=[event])


def _errors(plan: Plan) -> Iterator[str]:
    for name in sorted(plan.job.spec.plugins.keys() - KNOWN.keys()):
        yield f"spec.plugins.{name} isn't supported yet, want some of {', '.join(KNOWN)}"
    yield from _order_errors(plan)


def _order_errors(plan: Plan) -> Iterator[str]:
    edges = {name: task.depends_on for name, task in plan.tasks.items()}
    unknown = graph.unknown_target(edges)
    if unknown:
        yield f"task {unknown[0]} depends on {unknown[1]}, which is no task of the job"
    circle = graph.cycle(edges)
    if circle:
        yield f"these tasks wait for each other: {', '.join(circle)}"
