"""The table of scenarios and backends.

Each run adds what it played to a folder of results; the table shows for every scenario what its present text came to on
each backend, last time it was played there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.scenarios.player import Scenario, scenarios

PURE, EMBEDDED, CLUSTER = BACKENDS = ("pure", "embedded", "cluster")
FOLDER = Path(__file__).resolve().parents[2] / ".results"
_PROPERTY = "scenario"

Record = Callable[[str, object], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one scenario came out on one backend; `lacks` says why it wasn't played, and `first_failure` what was the
    matter before it was played once more, by itself."""

    lacks: str = ""
    failure: str = ""
    first_failure: str = ""
    seconds: float = 0.0


def report(record: Record, backend: str, scenario: Scenario, outcome: Outcome) -> None:
    """Put the outcome where the end of the run finds it, whichever process plays."""
    entry = {"backend": backend, "name": scenario.name, "digest": scenario.digest, **asdict(outcome)}
    record(_PROPERTY, json.dumps(entry))


def collect(properties: Iterable[tuple[str, object]]) -> list[dict[str, Any]]:
    """The outcomes among what a test recorded."""
    return [json.loads(str(value)) for name, value in properties if name == _PROPERTY]


def save(entries: Iterable[Mapping[str, Any]], folder: Path = FOLDER) -> None:
    """Add these outcomes to those of earlier runs, and write the table."""
    known = load(folder)
    for entry in entries:
        known.setdefault(entry["backend"], {})[entry["name"]] = dict(entry)
    folder.mkdir(exist_ok=True)
    for backend, outcomes in known.items():
        _write(folder / f"{backend}.json", json.dumps(outcomes, indent=1, sort_keys=True))
    _write(folder / "scenarios.txt", "\n".join(table(known)) + "\n")


def load(folder: Path = FOLDER) -> dict[str, dict[str, dict[str, Any]]]:
    """By backend and scenario; what can't be read counts as never played."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for backend in BACKENDS:
        try:
            found[backend] = json.loads((folder / f"{backend}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            found[backend] = {}
    return found


def table(known: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[str]:
    """The lines of the table, then what failed, then why some weren't played."""
    everything = scenarios()
    width = max(len(scenario.title) for scenario in everything)
    lines = [f"{'scenario':{width}}  " + "  ".join(f"{backend:8}" for backend in BACKENDS)]
    failures, reasons = [], {}
    counts = {backend: {"pass": 0, "FAIL": 0, "-": 0, "": 0} for backend in BACKENDS}
    for scenario in everything:
        cells = []
        for backend in BACKENDS:
            entry = known.get(backend, {}).get(scenario.name)
            if entry is None or entry["digest"] != scenario.digest:
                cells.append("")
            elif entry["lacks"]:
                cells.append("-")
                reasons.setdefault((backend, entry["lacks"]), []).append(scenario.title)
            else:
                cells.append("FAIL" if entry["failure"] else "pass")
                if entry["failure"]:
                    failures.append(f"{backend}: {entry['failure']}")
                elif first := entry.get("first_failure"):
                    failures.append(f"{backend}, passed the second time: {first}")
            counts[backend][cells[-1]] += 1
        lines.append(f"{scenario.title:{width}}  " + "  ".join(f"{cell:8}" for cell in cells).rstrip())
    totals = "  ".join(f"{counts[backend]['pass']}/{len(everything)}".ljust(8) for backend in BACKENDS)
    lines.append(f"{'passed':{width}}  {totals}".rstrip())
    lines += [f"-  {backend}: {why}: {', '.join(names)}" for (backend, why), names in sorted(reasons.items())]
    if any(counts[backend][""] for backend in BACKENDS):
        lines.append("An empty cell: not played since the scenario was changed.")
    return [*lines, *failures]


def _write(path: Path, text: str) -> None:
    unfinished = path.with_suffix(".new")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.rename(path)
