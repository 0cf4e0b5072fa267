"""Metrics in Prometheus' form: base units, bounded labels, one registry per program.

prometheus-client is imported when the first registry is made, so that a program that exposes nothing doesn't pay.
"""

from __future__ import annotations

from typing import Any

from vcbatch.observe.described import COUNTERS, DURATIONS, GAUGES, Described
from vcbatch.observe.series import Series


class PrometheusMeter:
    """Counts into a registry of its own. A name or a label that isn't described is a programming error."""

    def __init__(self, *, prefix: str = "vcbatch") -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self.registry = CollectorRegistry()
        self._prefix = prefix
        self._metrics: dict[str, Any] = {}
        self._series: dict[str, Series] = {}

        def common(described: Described) -> dict[str, Any]:
            return {"namespace": described.prefix or prefix, "registry": self.registry}

        for kind, made, all_of_them in (("counter", Counter, COUNTERS), ("gauge", Gauge, GAUGES)):
            for name, described in all_of_them.items():
                if described.objects:
                    self._series[name] = Series(f"{described.prefix or prefix}_{name}", described, kind=kind)
                else:
                    self._metrics[name] = made(name, described.help, described.labels, **common(described))
        for name, described in DURATIONS.items():
            self._metrics[name] = Histogram(
                name, described.help, described.labels, buckets=described.buckets, **common(described)
            )

    def count(self, name: str, value: float = 1.0, **labels: str) -> None:
        series = self._series.get(name)
        if series is not None:
            series.add(value, labels)
        else:
            self._labelled(name, labels).inc(value)

    def gauge(self, name: str, value: float, **labels: str) -> None:
        series = self._series.get(name)
        if series is not None:
            series.set(value, labels)
        else:
            self._labelled(name, labels).set(value)

    def duration(self, name: str, value: float, **labels: str) -> None:
        self._labelled(name, labels).observe(value)

    def forget(self, name: str, **labels: str) -> None:
        self._series[name].remove(labels)

    def _labelled(self, name: str, labels: dict[str, str]) -> Any:
        metric = self._metrics[name]
        return metric.labels(**labels) if labels else metric

    def exposition(self) -> tuple[str, bytes]:
        """Content type and text of a scrape."""
        from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

        of_objects = "".join(series.text() for series in self._series.values())
        return CONTENT_TYPE_LATEST, generate_latest(self.registry) + of_objects.encode()
