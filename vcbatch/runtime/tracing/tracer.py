"""The tracing interface of the runtime. The layer of tracing systems is beside this one, so it is passed in as a
protocol."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

Attributes = Mapping[str, str | int | float | bool]


class Tracer(Protocol):
    """Takes finished spans. Never blocks and never raises; may be called from any thread."""

    def record(
        self, name: str, *, begin: datetime, end: datetime, parent: str = "", attributes: Attributes | None = None
    ) -> str:
        """Record one span, below `parent` (a W3C traceparent) or as the root of a trace. Returns its own traceparent,
        empty where the sampler dropped it."""
        ...
