"""Spans as a collector gets them, and a collector that is away."""

from __future__ import annotations

import re
import socket
import threading
from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from vcbatch.observe.tracing import OtelTracer, UnsupportedTracingError

BEGIN = datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)
END = BEGIN + timedelta(seconds=2)
PATIENCE = 60.0
OTHERS = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


def tracer(exporter: InMemorySpanExporter) -> OtelTracer:
    return OtelTracer.to(SimpleSpanProcessor(exporter), "vcbatch-test", "me")


def test_a_span_carries_its_times_its_attributes_and_who_sent_it(exporter: InMemorySpanExporter) -> None:
    context = tracer(exporter).record("cycle", begin=BEGIN, end=END, attributes={"vcbatch.binds": 3})
    (span,) = exporter.get_finished_spans()
    assert (span.name, dict(span.attributes or {})) == ("cycle", {"vcbatch.binds": 3})
    assert span.start_time == int(BEGIN.timestamp() * 1_000_000) * 1000
    assert span.end_time is not None and span.start_time is not None
    assert span.end_time - span.start_time == 2_000_000_000
    assert span.parent is None
    assert (span.resource.attributes["service.name"], span.resource.attributes["service.instance.id"]) == (
        "vcbatch-test",
        "me",
    )
    assert re.fullmatch("00-[0-9a-f]{32}-[0-9a-f]{16}-0[13]", context)


def test_a_span_is_below_the_one_whose_context_is_given(exporter: InMemorySpanExporter) -> None:
    ours = tracer(exporter)
    below = ours.record("job", begin=BEGIN, end=END, parent=OTHERS)
    ours.record("job.admitted", begin=BEGIN, end=END, parent=below)
    job, admitted = exporter.get_finished_spans()
    assert job.parent is not None and admitted.parent is not None
    assert f"{job.parent.span_id:016x}" == "b7ad6b7169203331"
    assert admitted.parent.span_id == job.context.span_id
    assert {f"{span.context.trace_id:032x}" for span in (job, admitted)} == {OTHERS[3:35]}


def test_a_span_never_ends_before_it_begins(exporter: InMemorySpanExporter) -> None:
    tracer(exporter).record("cycle", begin=END, end=BEGIN)
    (span,) = exporter.get_finished_spans()
    assert span.start_time == span.end_time


def test_what_is_not_sampled_has_no_context(exporter: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = tracer(exporter)
    assert ours.record("job", begin=BEGIN, end=END, parent=OTHERS[:-1] + "0") == ""
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    assert tracer(exporter).record("job", begin=BEGIN, end=END) == ""
    assert exporter.get_finished_spans() == ()


def test_the_variables_name_the_service(exporter: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "batch")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
    tracer(exporter).record("cycle", begin=BEGIN, end=END)
    (span,) = exporter.get_finished_spans()
    assert span.resource.attributes["service.name"] == "batch"
    assert span.resource.attributes["deployment.environment"] == "test"


@pytest.mark.parametrize(
    ("variable", "value"), [("OTEL_TRACES_EXPORTER", "console"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]
)
def test_what_isnt_there_is_refused(variable: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(UnsupportedTracingError, match=f"{variable} is '{value}'"):
        OtelTracer.sending("vcbatch-test", "me")


def test_a_collector_that_takes_connections_and_never_answers_holds_nothing_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "3600")
        monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "64")
        monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "16")
        ours = OtelTracer.sending("vcbatch-test", "me")

        def work() -> None:
            for _ in range(1000):  # many times what the queue holds
                ours.record("cycle", begin=BEGIN, end=END)
            ours.close()

        working = threading.Thread(target=work, daemon=True)
        working.start()
        working.join(PATIENCE)
        assert not working.is_alive(), "it waits for a collector that says nothing"
