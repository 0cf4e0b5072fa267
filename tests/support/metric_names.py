"""The exported metrics, by their names in a scrape."""

from __future__ import annotations

from dataclasses import dataclass

from vcbatch.observe.described import COUNTERS, DURATIONS, GAUGES

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


@dataclass(frozen=True, slots=True)
class Exported:
    """One metric as it is scraped."""

    name: str
    kind: str
    labels: tuple[str, ...]
    programs: tuple[str, ...]
    volcano: bool

    @property
    def series(self) -> tuple[str, ...]:
        """The names of its samples."""
        if self.kind == "histogram":
            return tuple(f"{self.name}_{part}" for part in ("bucket", "sum", "count"))
        return (self.name,)


def exported() -> dict[str, Exported]:
    """All metrics except those of the process, by name."""
    found: dict[str, Exported] = {}
    for kind, table in (("counter", COUNTERS), ("gauge", GAUGES), ("histogram", DURATIONS)):
        for short, described in table.items():
            name = f"{described.prefix or 'vcbatch'}_{short}"
            if kind == "counter" and not (described.objects and described.prefix):
                name += "_total"
            found[name] = Exported(name, kind, described.labels, described.programs, bool(described.prefix))
    return found


def series() -> frozenset[str]:
    """The names of all samples that a scrape may have."""
    return PROCESS.union(*(metric.series for metric in exported().values()))
