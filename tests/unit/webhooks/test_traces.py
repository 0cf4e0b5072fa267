"""A job's trace begins with its admission, where tracing is on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.admission_http import KnownWorld, answer_of, review_of
from tests.support.spans import Spans
from tests.support.virtual_time import VirtualClock
from vcbatch.api.admission import Operation, Request
from vcbatch.api.model import Json
from vcbatch.api.names import TRACEPARENT
from vcbatch.api.resources import JOBS, QUEUES
from vcbatch.runtime.metrics.meter import NoMeter
from webhooks.app import build
from webhooks.service import AdmissionService

AUTHORS = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}


def app(tracer: Spans | None) -> Any:
    service = AdmissionService(world=KnownWorld(), clock=VirtualClock(), meter=NoMeter(), tracer=tracer)
    return build(service, meter=NoMeter(), exposition=lambda: ("text/plain", b""))


def job(**annotations: str) -> Json:
    metadata: Json = {"name": "j", "namespace": "ns", **({"annotations": annotations} if annotations else {})}
    spec = {"queue": "default", "tasks": [{"name": "t", "replicas": 2, "template": TEMPLATE}]}
    return {"metadata": metadata, "spec": spec}


def asked(body: Json, operation: Operation = Operation.CREATE, old: Json | None = None) -> Json:
    return review_of(Request(resource=JOBS, operation=operation, name="j", namespace="ns", object=body, old=old))


async def context_of(tracer: Spans | None, body: Json, **more: Any) -> str | None:
    """The context that admission writes; None where it writes none."""
    answer = await answer_of(app(tracer), "/jobs/mutate", asked(body, **more))
    assert answer["allowed"]
    key = TRACEPARENT.replace("/", "~1")
    for step in answer.get("patch", []):
        if step["path"] == f"/metadata/annotations/{key}":
            return str(step["value"])
        if step["path"] == "/metadata/annotations" and TRACEPARENT in step["value"]:
            return str(step["value"][TRACEPARENT])
    return None


async def test_a_new_job_gets_a_context_and_its_admission_is_the_first_span_below_it() -> None:
    spans = Spans()
    context = await context_of(spans, job())
    whole, admitted, review = spans.reported
    assert (whole.name, whole.context, whole.parent) == ("job", context, "")
    assert (admitted.name, admitted.parent) == ("job.admitted", context)
    assert admitted.attributes == {"k8s.namespace.name": "ns", "vcbatch.job.name": "j"}
    assert (review.name, review.attributes["vcbatch.path"]) == ("admission.review", "/jobs/mutate")
    assert review.attributes["vcbatch.allowed"] is True


async def test_the_trace_of_the_author_goes_on() -> None:
    spans = Spans()
    context = await context_of(spans, job(**{TRACEPARENT: AUTHORS, "other": "stays"}))
    assert spans.reported[0].parent == AUTHORS
    assert context is not None and context[3:35] == AUTHORS[3:35]


async def test_a_context_that_cant_be_read_is_replaced() -> None:
    spans = Spans()
    context = await context_of(spans, job(**{TRACEPARENT: "garbage"}))
    assert context == spans.reported[0].context
    assert spans.reported[0].parent == ""


@pytest.mark.parametrize("tracer", [None, Spans(sampled=False)])
async def test_without_tracing_or_where_it_isnt_sampled_nothing_is_written(tracer: Spans | None) -> None:
    assert await context_of(tracer, job()) is None


async def test_an_update_begins_no_trace() -> None:
    spans = Spans()
    assert await context_of(spans, job(), operation=Operation.UPDATE, old=job()) is None
    assert [span.name for span in spans.reported] == ["admission.review"]


async def test_other_kinds_begin_no_trace() -> None:
    spans = Spans()
    queue = {"metadata": {"name": "q"}, "spec": {}}
    review = review_of(Request(resource=QUEUES, operation=Operation.CREATE, name="q", object=queue))
    await answer_of(app(spans), "/queues/mutate", review)
    assert [span.name for span in spans.reported] == ["admission.review"]
