"""Metrics in Prometheus' form: base units, bounded labels, one registry per program.

prometheus-client is imported when the first registry is made, so that a program that exposes nothing doesn't pay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """One metric: its help text and its labels."""

    help: str
    labels: tuple[str, ...] = ()


COUNTERS: dict[str, Described] = {
    "relists": Described(help="Lists made because a watch could not be continued.", labels=("resource",)),
    "audit_repairs": Described(help="Objects that a list found different from the cache.", labels=("resource",)),
    "kopf_restarts": Described(help="Times that kopf was started again after it ended."),
    "looks": Described(help="Looks at objects by controllers.", labels=("controller", "result")),
    "binds": Described(help="Pods bound, or refused for good.", labels=("result",)),
    "scheduler_writes_failed": Described(help="Writes of the scheduler that were refused.", labels=("kind",)),
    "admission_reviews": Described(help="Admission reviews answered.", labels=("path", "allowed")),
    "admission_turned_away": Described(help="Admission requests that were not looked at.", labels=("code",)),
    "events_dropped": Described(help="Events that were not sent: too many, or refused.", labels=("component",)),
}
GAUGES: dict[str, Described] = {
    "queue_depth": Described(help="Objects that wait to be looked at.", labels=("controller",)),
    "leading": Described(help="1 while this replica holds the Lease."),
    "certificate_remaining_seconds": Described(
        help="Until the serving certificate (leaf) and who signed it (authority) expire.", labels=("certificate",)
    ),
}
DURATIONS: dict[str, Described] = {
    "cycle_seconds": Described(help="Duration of a scheduling cycle."),
    "admission_seconds": Described(help="Time to answer an admission review.", labels=("path",)),
    "look_seconds": Described(help="Duration of a look, writes included.", labels=("controller",)),
}


class PrometheusMeter:
    """Counts into a registry of its own. A name or a label that isn't described above is a programming error."""

    def __init__(self, *, prefix: str = "vcbatch") -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self.registry = CollectorRegistry()
        self._metrics: dict[str, Any] = {}
        common: dict[str, Any] = {"namespace": prefix, "registry": self.registry}
        for name, described in COUNTERS.items():
            self._metrics[name] = Counter(name, described.help, described.labels, **common)
        for name, described in GAUGES.items():
            self._metrics[name] = Gauge(name, described.help, described.labels, **common)
        for name, described in DURATIONS.items():
            self._metrics[name] = Histogram(name, described.help, described.labels, buckets=_SECONDS, **common)

    def count(self, name: str, value: float = 1.0, **labels: str) -> None:
        self._labelled(name, labels).inc(value)

    def gauge(self, name: str, value: float, **labels: str) -> None:
        self._labelled(name, labels).set(value)

    def seconds(self, name: str, value: float, **labels: str) -> None:
        self._labelled(name, labels).observe(value)

    def _labelled(self, name: str, labels: dict[str, str]) -> Any:
        metric = self._metrics[name]
        return metric.labels(**labels) if labels else metric

    def exposition(self) -> tuple[str, bytes]:
        """Content type and text of a scrape."""
        from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

        return CONTENT_TYPE_LATEST, generate_latest(self.registry)
