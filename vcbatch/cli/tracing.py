"""`--tracing` of the cluster components."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import click

from vcbatch.cli.output import CliError
from vcbatch.observe.tracing import OtelTracer, UnsupportedTracingError

F = TypeVar("F", bound=Callable[..., object])


def tracing_option(function: F) -> F:
    """`--tracing`, off by default."""
    text = "Send spans to an OpenTelemetry collector (OTLP over HTTP), as the OTEL_* variables say."
    return click.option("--tracing", is_flag=True, help=text)(function)


@contextmanager
def tracing(service: str, instance: str, *, on: bool) -> Iterator[OtelTracer | None]:
    """What spans are recorded with; None where that is off. Raises `CliError`."""
    if not on:
        yield None
        return
    try:
        tracer = OtelTracer.sending(service, instance)
    except ImportError as error:
        hint = "Install it with: pip install 'vcbatch[otel]'"
        raise CliError(
            f"--tracing needs {error.name or 'OpenTelemetry'}, which vcbatch[otel] brings", hint=hint
        ) from error
    except UnsupportedTracingError as error:
        raise CliError(f"--tracing: {error}", hint="Spans are sent over HTTP in protobuf, or not at all.") from error
    try:
        yield tracer
    finally:
        tracer.close()
