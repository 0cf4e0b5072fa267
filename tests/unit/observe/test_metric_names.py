"""The names of metrics follow Prometheus' conventions, and docs/metrics.md has exactly what is exported."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from tests.support.metric_names import PROCESS, Exported, exported
from vcbatch.observe.described import COUNTERS, DURATIONS, GAUGES, PROGRAMS
from vcbatch.observe.metrics import PrometheusMeter

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"
LETTERS = {"S": "scheduler", "C": "controllers", "W": "webhooks"}
OBJECTS = {"queue", "queue_name", "job_id", "job_ns", "job_name", "job_namespace", "jobflow_namespace"}
UNITLESS = re.compile(
    r"vcbatch_(build_info|leading|lease_held|lease_transitions|workqueue_depth|policy_refused|gangs_waiting|jobs"
    r"|job_pods|job_restarts|ready_check)"
)
"""Gauges that count things, or are 1 or 0."""


def documented() -> dict[str, tuple[str, frozenset[str], frozenset[str]]]:
    """Type, labels and programs of each metric of the page."""
    found: dict[str, tuple[str, frozenset[str], frozenset[str]]] = {}
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 5 or not cells[0].startswith("`"):
            continue
        name, kind, labels, by, meaning = cells
        assert meaning, line
        programs = frozenset(LETTERS[letter] for letter in by.split())
        for each in _expanded(name.strip("`")):
            assert each not in found, f"{each} is there twice"
            found[each] = (kind, frozenset(re.findall(r"`(\w+)`", labels)), programs)
    return found


def _expanded(name: str) -> list[str]:
    """The names that a name with {alternatives} stands for."""
    parts = [part.split(",") for part in re.split(r"[{}]", name)]
    return ["".join(chosen) for chosen in itertools.product(*parts)]


def test_the_page_has_what_is_exported() -> None:
    assert documented() == {
        name: (metric.kind, frozenset(metric.labels), frozenset(metric.programs)) for name, metric in exported().items()
    }


def test_the_page_names_the_metrics_of_the_process() -> None:
    assert set(re.findall(r"`(process_\w+)`", PAGE.read_text())) == PROCESS


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_exports_its_own_metrics_from_the_start(program: str) -> None:
    text = PrometheusMeter(programs=(program,)).exposition()[1].decode()
    types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))
    objects = {name for table in (COUNTERS, GAUGES) for name, one in table.items() if one.objects}
    expected = {
        metric.name: metric.kind
        for metric in exported().values()
        if program in metric.programs and not any(metric.name.removesuffix("_total").endswith(f"_{o}") for o in objects)
    }
    ours = {name: kind for name, kind in types.items() if not name.startswith("process_")}
    assert ours == expected
    assert set(types) - set(ours) == PROCESS


def test_a_metric_of_another_program_appears_with_its_first_value() -> None:
    meter = PrometheusMeter(programs=("webhooks",))
    assert "vcbatch_last_cycle_timestamp_seconds" not in meter.exposition()[1].decode(), "0 would be an age of 56 years"
    meter.gauge("last_cycle_timestamp_seconds", 5)
    assert "vcbatch_last_cycle_timestamp_seconds 5.0" in meter.exposition()[1].decode()


def test_label_values_that_are_known_are_there_before_the_first_increment() -> None:
    text = PrometheusMeter(programs=("scheduler",)).exposition()[1].decode()
    assert 'vcbatch_binds_total{result="refused"} 0.0' in text


OURS = [metric for metric in exported().values() if not metric.volcano]


@pytest.mark.parametrize("metric", OURS, ids=lambda metric: metric.name)
def test_a_name_follows_the_conventions(metric: Exported) -> None:
    assert re.fullmatch(r"vcbatch_[a-z]+(_[a-z]+)*", metric.name)
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    if metric.kind == "histogram":
        assert re.search(r"_(seconds|bytes)$", metric.name)
    if metric.kind == "gauge":
        assert re.search(r"_(seconds|bytes|ratio)$", metric.name) or UNITLESS.fullmatch(metric.name)
    assert not re.search(r"milli|minutes|hours|percent|kilo|mega", metric.name)


@pytest.mark.parametrize("metric", OURS, ids=lambda metric: metric.name)
def test_labels_are_bounded_or_end_with_their_object(metric: Exported) -> None:
    assert not {label for label in metric.labels if re.search(r"uid|^(le|quantile|instance|job|pod|node)$", label)}
    table = {"counter": COUNTERS, "gauge": GAUGES, "histogram": DURATIONS}[metric.kind]
    described = table[metric.name.removeprefix("vcbatch_").removesuffix("_total")]
    assert described.objects == bool(OBJECTS & set(metric.labels))
    assert metric.name.startswith("vcbatch_") and described.help.endswith(".")
