"""`docs/metrics.md` is generated from the definitions of the metrics."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.metric_names import PROCESS, exported
from vcbatch.observe.definitions.page import render

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"


def test_the_page_is_generated_from_the_definitions() -> None:
    wanted = (
        "update the page: python -c 'from tests.unit.observe.test_metrics_page import *; PAGE.write_text(render())'"
    )
    assert PAGE.read_text(encoding="utf-8") == render(), wanted


def test_the_page_has_a_row_for_each_metric() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \| (.*?) \| ([SCW ]+) \| (.+) \|$", render(), re.MULTILINE)
    assert sorted(row[0] for row in rows) == sorted(exported())
    for name, kind, labels, unit, by, meaning in rows:
        metric = exported()[name]
        assert (kind, unit) == (metric.kind, metric.unit)
        assert tuple(re.findall(r"`(\w+)`", labels)) == metric.labels
        assert [letter.lower() for letter in by.split()] == [program[0] for program in metric.programs]
        assert meaning.replace("`", "") == metric.help


def test_the_page_names_the_metrics_of_the_process() -> None:
    assert set(re.findall(r"`(process_\w+)`", render())) == PROCESS
