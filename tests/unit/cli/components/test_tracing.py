"""`--tracing` says what is missing."""

from __future__ import annotations

import sys

import pytest

from vcbatch.cli.base.output import CliError
from vcbatch.cli.components.tracing import tracing


def test_it_is_off_unless_it_is_asked_for() -> None:
    with tracing("vcbatch-test", "me", on=False) as tracer:
        assert tracer is None


def test_without_the_extra_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "opentelemetry"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)  # as where it isn't installed
    needs = "requires opentelemetry.*, of the extra otel"
    with pytest.raises(CliError, match=needs) as caught, tracing("vcbatch-test", "me", on=True):
        pass
    assert caught.value.hint == "In a checkout of vcbatch: pip install '.[otel]'"


def test_a_variable_that_asks_for_something_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("opentelemetry.sdk")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc")
    refused = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL is 'grpc', want http/protobuf"
    with pytest.raises(CliError, match=refused), tracing("vcbatch-test", "me", on=True):
        pass
