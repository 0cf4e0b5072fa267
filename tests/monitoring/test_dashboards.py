"""Dashboards: whole, described, without a data source of their own, and about metrics and labels that exist."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
import yaml

from tests.monitoring.alerts import REPOSITORY
from tests.monitoring.dashboards import EVERYTHING, FILES, Json, Target, load, panels, targets
from tests.support import metric_names

TARGETS = targets()
UNITS = {"none", "s", "bytes", "ops", "percentunit", "dateTimeFromNow"}
OF_TARGETS = {"cluster", "namespace", "instance", "job"}
"""Labels that Prometheus adds."""
_SELECTOR = re.compile(r'\b((?:vcbatch|volcano|process)_\w+)(?:\{((?:[^}"]|"[^"]*")*)\})?')
_MATCHER = re.compile(r'(\w+)(?:=~|!~|!=|=)"')


def labels() -> dict[str, set[str]]:
    """The labels of each sample name."""
    found: dict[str, set[str]] = {name: set() for name in metric_names.PROCESS}
    for metric in metric_names.exported().values():
        for name in metric.series:
            found[name] = set(metric.labels) | ({"le"} if name.endswith("_bucket") else set())
    return found


def test_they_are_as_the_source_says() -> None:
    done = subprocess.run(
        [sys.executable, REPOSITORY / "helm/dashboards.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_there_are_four_with_some_fifty_panels() -> None:
    assert [load(path)["uid"] for path in FILES] == [path.stem for path in FILES]
    assert len(FILES) == 4
    assert sum(len(list(panels(load(path)))) for path in FILES) >= 50


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_panel_says_what_it_shows_in_which_unit(path: Path) -> None:
    for panel in panels(load(path)):
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
        assert all(target["legendFormat"] for target in panel["targets"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_data_source_is_a_variable_and_every_variable_is_there(path: Path) -> None:
    dashboard = load(path)
    known = {variable["name"]: variable for variable in dashboard["templating"]["list"]}
    assert known["datasource"]["type"] == "datasource"
    sources = [found["datasource"] for found in _with(dashboard, "datasource")]
    assert sources and all(source == {"type": "prometheus", "uid": "${datasource}"} for source in sources)
    used = set(re.findall(r"\$\{?(\w+)\}?", path.read_text())) - {"__rate_interval", "__all", "datasource"}
    assert used <= set(known)
    assert {"cluster", "namespace"} <= used


def _with(node: object, key: str) -> Iterator[Json]:
    """Every object below that has this key."""
    if isinstance(node, dict):
        if key in node:
            yield node
        for value in node.values():
            yield from _with(value, key)
    elif isinstance(node, list):
        for value in node:
            yield from _with(value, key)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_panels_have_places_and_numbers_of_their_own(path: Path) -> None:
    found = load(path)["panels"]
    assert len({panel["id"] for panel in found}) == len(found)
    places = [panel["gridPos"] for panel in found]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for one, other in combinations(places, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or below


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_a_query_is_about_metrics_and_labels_that_exist(target: Target) -> None:
    _check(target.expr)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_variables_are_filled_from_metrics_and_labels_that_exist(path: Path) -> None:
    for variable in load(path)["templating"]["list"]:
        if variable["type"] == "query":
            match = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
            assert match
            named = _check(match.group(1))
            assert match.group(2) in OF_TARGETS | labels()[named[0]]


def _check(expr: str) -> list[str]:
    """The metrics that it names."""
    known = labels()
    selectors = _SELECTOR.findall(expr)
    assert selectors
    available = set(OF_TARGETS) | {"component"}
    for name, matchers in selectors:
        assert name in known, f"nothing exports {name}"
        chosen = set(_MATCHER.findall(matchers))
        assert chosen <= OF_TARGETS | known[name], f"{name} has no {chosen - known[name] - OF_TARGETS}"
        assert {"cluster", "namespace"} <= chosen or name == "vcbatch_build_info"
        available |= known[name]
    for group in re.findall(r"\b(?:by|on|group_left) \(([^)]*)\)", expr):
        assert {label.strip() for label in group.split(",")} <= available
    return [name for name, _ in selectors]


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_a_query_is_in_the_unit_of_its_panel(target: Target) -> None:
    milli = [name for name, _ in _SELECTOR.findall(target.expr) if re.search(r"milli|scheduling_duration$", name)]
    scalars = "_scalar_resources" in target.expr
    assert target.expr.endswith(" / 1000") == bool(milli or scalars)
    if target.unit == "ops":
        assert "rate(" in target.expr
    if target.unit == "bytes":
        assert "_bytes" in target.expr


def test_prometheus_parses_every_query(promtool: Path, tmp_path: Path) -> None:
    variables = {**EVERYTHING, "job": "j", "job_namespace": "n"}
    rules = [{"record": f"query:{number}", "expr": target.filled(variables)} for number, target in enumerate(TARGETS)]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    done = subprocess.run([promtool, "check", "rules", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"{len(TARGETS)} rules found" in done.stdout
