"""The exported metrics, by their names in a scrape, and a scrape that has each of them."""

from __future__ import annotations

from vcbatch.observe.definitions import METRICS, Metric
from vcbatch.observe.definitions.metric import Kind
from vcbatch.observe.metrics import PrometheusMeter

PROCESS = frozenset(
    {
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
        "process_virtual_memory_bytes",
        "process_start_time_seconds",
        "process_open_fds",
        "process_max_fds",
    }
)


def exported() -> dict[str, Metric]:
    """All metrics except those of the process, by name."""
    return {metric.name: metric for metric in METRICS.values()}


def series() -> frozenset[str]:
    """The names of all samples that a scrape may have."""
    return PROCESS.union(*(metric.series for metric in METRICS.values()))


def scrape_of_all() -> str:
    """The text of a scrape in which each metric has a value."""
    meter = PrometheusMeter()
    record = {Kind.COUNTER: meter.count, Kind.GAUGE: meter.gauge, Kind.HISTOGRAM: meter.duration}
    for name, metric in METRICS.items():
        record[metric.kind](name, 1.0, **dict.fromkeys(metric.labels, "x"))
    return meter.exposition()[1].decode()
