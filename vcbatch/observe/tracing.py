"""Spans in OpenTelemetry's format, sent to a collector over HTTP (OTLP).

The standard OTEL_* variables configure the endpoint, the sampling and the size of the queue. Spans wait in a bounded
queue and are dropped where it is full, so that an unreachable collector only loses spans. The packages are imported
when tracing is on.
"""

from __future__ import annotations

import os
import threading
from datetime import datetime
from typing import TYPE_CHECKING, Final

from vcbatch._version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

_CLOSE_SECONDS: Final = 3.0
_NAME = "vcbatch"


class UnsupportedTracingError(Exception):
    """A variable requests an unsupported feature; the message names it."""


class OtelTracer:
    """Implements `vcbatch.runtime.tracing.tracer.Tracer`."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer(_NAME, __version__)

    @staticmethod
    def sending(service: str, instance: str) -> OtelTracer:
        """A tracer that sends spans as the variables configure. Raises `ImportError` without the packages, and
        `UnsupportedTracingError`."""
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        _supported("OTEL_TRACES_EXPORTER", ("otlp", "none"))
        for variable in ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
            _supported(variable, ("http/protobuf",))
        none = os.environ.get("OTEL_TRACES_EXPORTER", "").strip() == "none"
        return OtelTracer.to(None if none else BatchSpanProcessor(OTLPSpanExporter()), service, instance)

    @staticmethod
    def to(processor: SpanProcessor | None, service: str, instance: str) -> OtelTracer:
        """A tracer that passes spans to that processor."""
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider

        ours = {"service.name": service, "service.version": __version__, "service.instance.id": instance}
        # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence over our attributes.
        resource = Resource.create(ours).merge(OTELResourceDetector().detect())
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        if processor is not None:
            provider.add_span_processor(processor)
        return OtelTracer(provider)

    def record(
        self,
        name: str,
        *,
        begin: datetime,
        end: datetime,
        parent: str = "",
        attributes: Mapping[str, str | int | float | bool] | None = None,
    ) -> str:
        """Record a finished span; returns its traceparent, empty where it isn't sampled."""
        from opentelemetry.context import Context
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        above = TraceContextTextMapPropagator().extract({"traceparent": parent}, Context()) if parent else Context()
        span = self._tracer.start_span(name, context=above, attributes=attributes, start_time=_nanoseconds(begin))
        span.end(_nanoseconds(max(begin, end)))
        context = span.get_span_context()
        if not context.is_valid or not context.trace_flags.sampled:
            return ""
        return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"

    def close(self) -> None:
        """Send the queued spans, for some seconds at most."""
        closing = threading.Thread(target=self._provider.shutdown, name="tracing", daemon=True)
        closing.start()
        closing.join(_CLOSE_SECONDS)


def _supported(variable: str, values: tuple[str, ...]) -> None:
    given = os.environ.get(variable, "").strip()
    if given and given not in values:
        raise UnsupportedTracingError(f"{variable} is {given!r}, want {' or '.join(values)}")


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000) * 1000
