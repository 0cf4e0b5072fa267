"""Reads the numbers of a scrape."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from vcbatch.observe.metrics import PrometheusMeter


class Scrape:
    """All samples of one scrape, parsed from its text."""

    def __init__(self, meter: PrometheusMeter) -> None:
        text = meter.exposition()[1].decode()
        self._samples = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float | None:
        """The value of one series; None where it doesn't exist."""
        return self._samples.get((name, frozenset(labels.items())))

    def counted(self, name: str, **labels: str) -> float | None:
        """The value of a counter whose name has no `_total`, which parsing appends."""
        return self.value(f"{name}_total", **labels)

    def labels(self, name: str) -> list[dict[str, str]]:
        """The labels of every series of a metric."""
        return [dict(labels) for known, labels in self._samples if known == name]
