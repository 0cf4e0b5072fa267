"""Every alert fires when it is to and not otherwise, says what it is about, and has its runbook."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.monitoring.alerts import CASES, RULES, RUNBOOKS, promtool_tests, shipped
from tests.support import metric_names

ALERTS = shipped()
_THRESHOLD = re.compile(r"(?<![\w.])([0-9.]+) # ([a-zA-Z]+)$", re.MULTILINE)


def thresholds() -> dict[str, str]:
    """The numbers that can be chosen, by the name that the chart's values have for them."""
    found = [match for rule in ALERTS.values() for match in _THRESHOLD.finditer(rule["expr"])]
    return {match.group(2): match.group(1) for match in found}


def test_the_file_is_what_prometheus_takes(promtool: Path) -> None:
    done = subprocess.run([promtool, "check", "rules", RULES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"{len(ALERTS)} rules found" in done.stdout


def test_each_alert_fires_when_it_is_to_and_not_otherwise(promtool: Path, tmp_path: Path) -> None:
    cases = tmp_path / "cases.yaml"
    cases.write_text(yaml.safe_dump(promtool_tests(RULES)))
    done = subprocess.run([promtool, "test", "rules", cases], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ALERTS)
def test_each_alert_is_tried_both_ways(name: str) -> None:
    outcomes = {bool(case.fires) for case in CASES[name]}
    assert outcomes == {True, False}


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_says_what_it_is_about(name: str) -> None:
    rule = ALERTS[name]
    assert rule["labels"]["severity"] in ("critical", "warning")
    annotations = rule["annotations"]
    assert set(annotations) == {"summary", "description", "runbook_url"}
    used = set(re.findall(r"\$labels\.(\w+)", annotations["summary"] + annotations["description"]))
    for case in CASES[name]:
        for labels in case.fires:
            assert used <= set(labels), "a label that the alert doesn't have is shown as nothing"


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_names_only_what_is_exported(name: str) -> None:
    named = set(re.findall(r"\b(?:vcbatch|volcano|process)_\w+", ALERTS[name]["expr"]))
    assert named and named <= metric_names.series()


def test_each_alert_has_its_page_and_each_page_its_alert() -> None:
    assert {rule["annotations"]["runbook_url"] for rule in ALERTS.values()} == {
        f"docs/runbooks/{page.name}" for page in RUNBOOKS.glob("Vcbatch*.md")
    }
    for name, rule in ALERTS.items():
        assert rule["annotations"]["runbook_url"].endswith(f"/{name}.md")
