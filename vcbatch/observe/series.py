"""Counters and gauges about objects that are created and deleted: numbers by label values, formatted when they are
scraped.

A series is removed with its object. Tens of thousands of series are scraped while the scheduler works, which is why a
series is stored as a number and its text is built once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vcbatch.observe.definitions import Metric


class Series:
    """All series of one metric. One thread changes them, any thread may read the text."""

    def __init__(self, metric: Metric) -> None:
        self._name = metric.name
        self._labels = metric.labels
        self._head = f"# HELP {metric.name} {_escaped_help(metric.help)}\n# TYPE {metric.name} {metric.kind}\n"
        self._values: dict[tuple[str, ...], float] = {}
        self._texts: dict[tuple[str, ...], str] = {}

    def set(self, value: float, labels: Mapping[str, str]) -> None:
        self._values[self._key(labels)] = value

    def add(self, value: float, labels: Mapping[str, str]) -> None:
        key = self._key(labels)
        self._values[key] = self._values.get(key, 0.0) + value

    def remove(self, labels: Mapping[str, str]) -> None:
        """Remove the series of an object that was deleted; nothing where there is no series."""
        key = self._key(labels)
        self._values.pop(key, None)
        self._texts.pop(key, None)

    def _key(self, labels: Mapping[str, str]) -> tuple[str, ...]:
        if len(labels) != len(self._labels) or not all(name in labels for name in self._labels):
            raise ValueError(f"{self._name}: the label names are {list(self._labels)}, got {sorted(labels)}")
        key = tuple([labels[name] for name in self._labels])
        if key not in self._texts:
            self._texts[key] = self._name + _written(self._labels, key)
        return key

    def text(self) -> str:
        """The series in Prometheus' text format; empty where there is none."""
        # Another thread may change the dicts meanwhile: copying one is atomic in the interpreter.
        values, texts = self._values.copy(), self._texts.copy()
        lines = [f"{texts[key]} {float(value)!r}\n" for key, value in values.items() if key in texts]
        return self._head + "".join(lines) if lines else ""


def _written(names: Sequence[str], values: Sequence[str]) -> str:
    if not names:
        return ""
    pairs = ",".join(f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))
    return f"{{{pairs}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _escaped_help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")
