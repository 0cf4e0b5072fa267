"""The trace of a job starts at its admission: an annotation has its context, which is copied to the PodGroup."""

from __future__ import annotations

from datetime import datetime

from vcbatch.api.admission import Operation, Request
from vcbatch.api.loose import part
from vcbatch.api.model import Json
from vcbatch.api.names import TRACEPARENT
from vcbatch.api.resources import JOBS
from vcbatch.api.traceparent import traceparent_of
from vcbatch.runtime.tracing.tracer import Tracer


def with_trace(tracer: Tracer, request: Request, filled: Json | None, *, began: datetime, now: datetime) -> Json | None:
    """The new job with a trace context, as a child of its author's where there is one; any other object unchanged.
    `began` is when its admission started."""
    body = filled if filled is not None else request.object
    if request.resource != JOBS or request.operation is not Operation.CREATE or body is None:
        return filled
    metadata = part(body, "metadata")
    annotations = part(metadata, "annotations")
    attributes = {
        "k8s.namespace.name": request.namespace,
        "vcbatch.job.name": request.name or str(metadata.get("name") or metadata.get("generateName") or ""),
    }
    parent = traceparent_of(annotations)
    context = tracer.record("job", begin=began, end=now, parent=parent, attributes=attributes)
    if not context:
        return filled  # not sampled
    tracer.record("job.admitted", begin=began, end=now, parent=context, attributes=attributes)
    return {**body, "metadata": {**metadata, "annotations": {**annotations, TRACEPARENT: context}}}
