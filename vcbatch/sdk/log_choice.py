"""The selected parts of a job's log, checked before the first line is waited for."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from vcbatch.api.loose import part
from vcbatch.sdk.errors import NotFound
from vcbatch.sdk.models.job import Job
from vcbatch.sdk.models.status import objects_at, text_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The selection for `follow_job`; None selects everything."""

    tasks: frozenset[str] | None
    indices: frozenset[int] | None
    containers: frozenset[str] | None


def chosen(
    job: Job,
    tasks: str | Collection[str] | None,
    indices: int | Collection[int] | None,
    containers: str | Collection[str] | None,
) -> Choice:
    """The selection. Raises `NotFound` for names and indices that the job doesn't have: their lines would never
    come."""
    wanted = Choice(
        tasks=_names(tasks),
        indices=frozenset({indices} if isinstance(indices, int) else indices) if indices is not None else None,
        containers=_names(containers),
    )
    _must_have(job, "task", wanted.tasks, {task.name for task in job.tasks})
    _must_have(job, "container", wanted.containers, set(_containers(job)))
    sizes = [task.replicas for task in job.tasks if wanted.tasks is None or task.name in wanted.tasks]
    if wanted.indices is not None and sizes and not any(0 <= index < max(sizes) for index in wanted.indices):
        what = ", ".join(str(index) for index in sorted(wanted.indices)) or "of none"
        hint = f"The highest is {max(sizes) - 1}."
        raise NotFound(f"job {job.namespace}/{job.name} has no pod with index {what}", hint=hint)
    return wanted


def _names(given: str | Collection[str] | None) -> frozenset[str] | None:
    return None if given is None else frozenset({given} if isinstance(given, str) else given)


def _must_have(job: Job, kind: str, wanted: frozenset[str] | None, known: set[str]) -> None:
    unknown = sorted((wanted or frozenset()) - known)
    if unknown:
        hint = f"It has {', '.join(sorted(known))}."
        raise NotFound(f"job {job.namespace}/{job.name} has no {kind} {unknown[0]!r}", hint=hint)


def _containers(job: Job) -> Iterator[str]:
    """The names of the containers of all tasks, init containers included."""
    for task in job.tasks:
        spec = part(part(task.to_manifest(), "template"), "spec")
        for kind in ("containers", "initContainers"):
            yield from (text_at(container, "name") for container in objects_at(spec, kind))
