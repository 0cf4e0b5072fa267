"""The definition of a metric, and of a group of metrics on the reference page."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

CONTROLLERS: Final = "controllers"
SCHEDULER: Final = "scheduler"
WEBHOOKS: Final = "webhooks"
PROGRAMS: Final = (SCHEDULER, CONTROLLERS, WEBHOOKS)
"""`vcbatch up` exports the metrics of the first two."""
BY_CONTROLLERS: Final = (CONTROLLERS,)
BY_SCHEDULER: Final = (SCHEDULER,)
BY_WEBHOOKS: Final = (WEBHOOKS,)

SECONDS_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Kind(StrEnum):
    """The type of a metric in Prometheus' text format."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Unit(StrEnum):
    """The unit of a metric's values, as the reference page names it."""

    NONE = ""
    """A number of things, or 1 and 0."""
    SECONDS = "seconds"
    TIMESTAMP = "Unix seconds"
    BYTES = "bytes"
    RATIO = "ratio"
    MILLISECONDS = "milliseconds"
    """Only metrics of Volcano."""
    THOUSANDTHS = "thousandths"
    """Only metrics of Volcano."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric, as it is exported and documented."""

    name: str
    """The exported name: with the prefix `vcbatch_`, or with `volcano_` for the metrics that Volcano's dashboards
    show."""
    kind: Kind
    help: str
    """One or more sentences in plain text: the HELP line of a scrape, and the meaning on the reference page."""
    labels: tuple[str, ...] = ()
    unit: Unit = Unit.NONE
    programs: tuple[str, ...] = PROGRAMS
    buckets: tuple[float, ...] = SECONDS_BUCKETS
    """Upper bounds of a histogram's buckets, in `unit`."""
    objects: bool = False
    """Whether labels name objects: the series are removed with the objects."""
    known: tuple[tuple[str, ...], ...] = ()
    """Label values that are exported from the start, so that the first increment is visible as one."""
    from_start: bool = True
    """Whether a metric without labels is exported from the start, as 0; otherwise, from its first value on."""

    @property
    def volcano(self) -> bool:
        """Whether name, labels and unit are those of Volcano."""
        return self.name.startswith("volcano_")

    @property
    def short(self) -> str:
        """The name for the code that records values: without the prefix, and for counters without `_total`."""
        name = self.name.split("_", 1)[1]
        return name.removesuffix("_total") if self.kind is Kind.COUNTER else name

    @property
    def exact(self) -> bool:
        """Whether its series are written by vcbatch: prometheus-client can't remove a series cheaply, and appends
        `_total` to the names of Volcano's counters."""
        return self.objects or (self.kind is Kind.COUNTER and not self.name.endswith("_total"))

    @property
    def series(self) -> tuple[str, ...]:
        """The names of its samples in a scrape."""
        if self.kind is Kind.HISTOGRAM:
            return tuple(f"{self.name}_{part}" for part in ("bucket", "sum", "count"))
        return (self.name,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section of the reference page."""

    title: str
    metrics: tuple[Metric, ...]
    before: str = ""
    """Markdown before the table of the metrics."""
    after: str = ""
    """Markdown after it."""


def geometric(first: float, last: float, count: int) -> tuple[float, ...]:
    """Bounds of `count` buckets from `first` to `last` with equal ratios, as Volcano computes them; rounded to four
    digits."""
    return tuple(float(f"{first * (last / first) ** (step / (count - 1)):.4g}") for step in range(count))
