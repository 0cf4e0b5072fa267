"""Metrics in Prometheus' format: base units, bounded labels, one registry per program.

prometheus-client is imported when the first registry is created, so that a program that exposes nothing doesn't load
it.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any

from vcbatch.observe.definitions import METRICS, Metric
from vcbatch.observe.definitions.metric import PROGRAMS, Kind
from vcbatch.observe.series import Series


class PrometheusMeter:
    """Counts into a registry of its own. Metrics are named by `Metric.short`; a name or a label without a definition is
    a programming error."""

    def __init__(self, *, programs: Collection[str] = PROGRAMS) -> None:
        """The metrics of `programs` are exported from the start; those of other programs from their first value on."""
        from prometheus_client import CollectorRegistry, ProcessCollector

        self.registry = CollectorRegistry()
        self._metrics: dict[str, Any] = {}
        self._series = {name: Series(metric) for name, metric in METRICS.items() if metric.exact}
        _without_creation_times()
        ProcessCollector(registry=self.registry)
        for name, metric in METRICS.items():
            if not metric.from_start or set(programs).isdisjoint(metric.programs):
                continue
            if not metric.exact:
                self._registered(name)
            elif not metric.labels:
                self._series[name].set(0.0, {})

    def _registered(self, name: str) -> Any:
        """The metric of that name, registered on its first use. Raises `KeyError` where there is no definition."""
        found = self._metrics.get(name)
        if found is None:
            found = self._metrics[name] = self._created(METRICS[name])
        return found

    def _created(self, metric: Metric) -> Any:
        from prometheus_client import Counter, Gauge, Histogram

        common: dict[str, Any] = {"labelnames": metric.labels, "registry": self.registry}
        if metric.kind is Kind.HISTOGRAM:
            created: Any = Histogram(metric.name, metric.help, buckets=metric.buckets, **common)
        else:
            created = (Counter if metric.kind is Kind.COUNTER else Gauge)(metric.name, metric.help, **common)
        for values in metric.known:
            created.labels(*values)
        return created

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
