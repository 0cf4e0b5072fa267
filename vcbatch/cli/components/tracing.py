"""`--tracing` of the cluster components."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import click

from vcbatch.cli.base.output import CliError
from vcbatch.interfaces.installation import how_to_install
from vcbatch.observe.tracing import OtelTracer, UnsupportedTracingError

F = TypeVar("F", bound=Callable[..., object])


def tracing_option(function: F) -> F:
    """`--tracing`, off by default."""
    text = (
        "Export traces to an OpenTelemetry collector (OTLP over HTTP), configured by the OTEL_* environment variables."
    )
    return click.option("--tracing", is_flag=True, help=text)(function)


@contextmanager
def tracing(service: str, instance: str, *, on: bool) -> Iterator[OtelTracer | None]:
    """The tracer that records spans; None where tracing is off. Raises `CliError`."""
    if not on:
        yield None
        return
    try:
        tracer = OtelTracer.sending(service, instance)
    except ImportError as error:
        missing = error.name or "OpenTelemetry"
        raise CliError(f"--tracing requires {missing}, of the extra otel", hint=how_to_install("otel")) from error
    except UnsupportedTracingError as error:
        raise CliError(f"--tracing: {error}", hint="Only OTLP over HTTP with protobuf is supported.") from error
    try:
        yield tracer
    finally:
        tracer.close()
