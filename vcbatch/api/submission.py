"""The queues to which an object submits, and the fields that name them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from vcbatch.api import names
from vcbatch.api.loose import listed, part
from vcbatch.api.model import Json
from vcbatch.api.queue import DEFAULT
from vcbatch.api.resources import CRONJOBS, JOBFLOWS, JOBS, JOBTEMPLATES, PODGROUPS, PODS, Resource


def submitted(resource: Resource, given: Json | None, schedulers: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pairs of field and queue: of a job or PodGroup, of the jobs that are created from a CronJob or JobTemplate, of a
    JobFlow's patches of its templates, and of a pod of one of `schedulers` that names the queue of its generated
    PodGroup. The object may have any shape."""
    if given is None:
        return
    spec = part(given, "spec")
    if resource in (JOBS, PODGROUPS, JOBTEMPLATES):
        yield from _named("spec.queue", spec.get("queue") or DEFAULT)
    elif resource == CRONJOBS:
        job = part(part(spec, "jobTemplate"), "spec")
        yield from _named("spec.jobTemplate.spec.queue", job.get("queue") or DEFAULT)
    elif resource == JOBFLOWS:
        for number, entry in enumerate(listed(spec, "flows")):
            patch = part(cast(Json, entry), "patch") if isinstance(entry, dict) else {}
            yield from _named(f"spec.flows[{number}].patch.jobSpec.queue", part(patch, "jobSpec").get("queue"))
    elif resource == PODS and spec.get("schedulerName") in schedulers:
        annotations = part(part(given, "metadata"), "annotations")
        yield from _named("metadata.annotations", annotations.get(names.SCHEDULING_QUEUE_NAME))


def _named(field: str, queue: Any) -> Iterator[tuple[str, str]]:
    if isinstance(queue, str) and queue:
        yield field, queue
