"""What a job asks for that this version can't do yet. Admission refuses such a job; one that got past it stays Pending
and says why, and is never run otherwise than it was written."""

from __future__ import annotations

from collections.abc import Iterator

from vcbatch.api.validate import graph
from vcbatch.core.job.plan import Plan
from vcbatch.core.job.plugins import KNOWN


def refusal_of(plan: Plan) -> str:
    """Why this job can't be run, naming every field; empty where it can."""
    return "; ".join(_faults(plan))


def _faults(plan: Plan) -> Iterator[str]:
    for name in sorted(plan.job.spec.plugins.keys() - KNOWN.keys()):
        yield f"spec.plugins.{name} isn't supported yet, want some of {', '.join(KNOWN)}"
    yield from _order_faults(plan)


def _order_faults(plan: Plan) -> Iterator[str]:
    edges = {name: task.depends_on for name, task in plan.tasks.items()}
    unknown = graph.unknown_target(edges)
    if unknown:
        yield f"task {unknown[0]} depends on {unknown[1]}, which is no task of the job"
    circle = graph.cycle(edges)
    if circle:
        yield f"these tasks wait for each other: {', '.join(circle)}"
