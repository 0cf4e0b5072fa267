"""Metrics in Prometheus' format: base units, bounded labels, one registry per program.

prometheus-client is imported when the first registry is created, so that a program that exposes nothing doesn't load
it.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any

from vcbatch.observe.described import COUNTERS, DURATIONS, GAUGES, PROGRAMS
from vcbatch.observe.series import Series


class PrometheusMeter:
    """Counts into a registry of its own. A name or a label that isn't described is a programming error."""

    def __init__(self, *, prefix: str = "vcbatch", programs: Collection[str] = PROGRAMS) -> None:
        """The metrics of `programs` are exported from the start; those of other programs once they are counted."""
        from prometheus_client import CollectorRegistry, ProcessCollector

        self.registry = CollectorRegistry()
        self._prefix = prefix
        self._metrics: dict[str, Any] = {}
        self._series: dict[str, Series] = {}
        _without_creation_times()
        ProcessCollector(registry=self.registry)
        for kind, all_of_them in (("counter", COUNTERS), ("gauge", GAUGES)):
            for name, described in all_of_them.items():
                if described.objects:
                    whole = f"{described.prefix or prefix}_{name}"
                    if kind == "counter" and not described.prefix:
                        whole += "_total"
                    self._series[name] = Series(whole, described, kind=kind)
        for name, described in {**COUNTERS, **GAUGES, **DURATIONS}.items():
            if not described.objects and not set(programs).isdisjoint(described.programs):
                self._registered(name)

    def _registered(self, name: str) -> Any:
        """The metric of that name, registered on its first use. Raises `KeyError` where the name isn't described."""
        metric = self._metrics.get(name)
        if metric is not None:
            return metric
        from prometheus_client import Counter, Gauge, Histogram

        common: dict[str, Any] = {"registry": self.registry}
        if name in DURATIONS:
            described, made = DURATIONS[name], Histogram
            common["buckets"] = described.buckets
        elif name in COUNTERS:
            described, made = COUNTERS[name], Counter
        else:
            described, made = GAUGES[name], Gauge
        namespace = described.prefix or self._prefix
        metric = self._metrics[name] = made(name, described.help, described.labels, namespace=namespace, **common)
        for values in described.known:
            metric.labels(*values)
        return metric

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
        metric = self._metrics.get(name) or self._registered(name)
        return metric.labels(**labels) if labels else metric

    def exposition(self) -> tuple[str, bytes]:
        """Content type and text of a scrape."""
        from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

        of_objects = "".join(series.text() for series in self._series.values())
        return CONTENT_TYPE_LATEST, generate_latest(self.registry) + of_objects.encode()


@cache
def _without_creation_times() -> None:
    """Disable the creation times of counters: the text format would have a gauge `NAME_created` for each."""
    from prometheus_client import disable_created_metrics

    disable_created_metrics()
