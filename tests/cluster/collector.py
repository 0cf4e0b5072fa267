"""An OpenTelemetry collector for tests: keeps the spans that it gets over HTTP (OTLP, protobuf), on loopback."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from tests.support.scripted_http import Answer, Asked, scripted


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One span. `begin` and `end` are in nanoseconds since 1970; identifiers are hexadecimal, `parent` may be empty."""

    service: str
    name: str
    trace: str
    id: str
    parent: str
    begin: int
    end: int
    attributes: dict[str, Any]


@dataclass
class Collector:
    """What came so far."""

    url: str = ""
    spans: list[Span] = field(default_factory=list)

    def of_trace(self, trace: str) -> dict[str, Span]:
        """By name; the first of each name."""
        found: dict[str, Span] = {}
        for span in list(self.spans):
            if span.trace == trace:
                found.setdefault(span.name, span)
        return found

    def named(self, name: str, service: str) -> list[Span]:
        return [span for span in list(self.spans) if (span.name, span.service) == (name, service)]

    def answer(self, asked: Asked) -> Answer:
        if asked.path != "/v1/traces":
            return Answer(status=404, body={})
        packed = {key.lower(): value for key, value in asked.headers.items()}.get("content-encoding") == "gzip"
        request = ExportTraceServiceRequest.FromString(gzip.decompress(asked.body) if packed else asked.body)
        for resource in request.resource_spans:
            service = _attributes(resource.resource.attributes)["service.name"]
            for scope in resource.scope_spans:
                self.spans.extend(_span(service, span) for span in scope.spans)
        body = ExportTraceServiceResponse().SerializeToString()
        return Answer(body=body, headers={"Content-Type": "application/x-protobuf"})


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector at `url` until the end of the block."""
    collector = Collector()
    with scripted(collector.answer) as served:
        collector.url = served.url
        yield collector


def _span(service: str, span: Any) -> Span:
    return Span(
        service=service,
        name=span.name,
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        begin=span.start_time_unix_nano,
        end=span.end_time_unix_nano,
        attributes=_attributes(span.attributes),
    )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}
