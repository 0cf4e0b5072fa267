"""What of the chart is written by programs is up to date, and its sources agree with the project. No Helm is needed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from helm import chart_docs
from tests.chart.helm import CHART
from vcbatch._version import __version__

ROOT = CHART.parents[1]
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())


@pytest.mark.parametrize("path", chart_docs.texts(), ids=lambda path: path.name)
def test_what_the_schema_says_is_written(path: Path) -> None:
    assert path.read_text() == chart_docs.texts()[path], f"{path.name} is out of date: run `make chart-docs`"


def test_the_charts_crds_are_those_of_the_project() -> None:
    ours = {path.name: path.read_text() for path in (ROOT / "crds").glob("*.yaml")}
    charts = {path.name: path.read_text() for path in (CHART / "files/crds").glob("*.yaml")}
    assert charts == ours, "run `make crds`"


def test_the_chart_has_the_version_of_the_program() -> None:
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert about["appVersion"] == __version__


def test_values_are_the_defaults_of_the_schema() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert values["controllers"]["replicas"] == SCHEMA["properties"]["controllers"]["properties"]["replicas"]["default"]
    assert values["schedulers"] == [{"name": "volcano"}]
    assert set(values) == set(SCHEMA["properties"]) - {"enabled"}


def _nodes(node: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """The schema of each value, by its path."""
    if "properties" in node or "type" in node or "allOf" in node:
        yield path or "(root)", node
    for name, inner in node.get("properties", {}).items():
        yield from _nodes(inner, f"{path}.{name}".lstrip("."))
    if isinstance(node.get("items"), dict) and "$ref" not in node["items"]:
        yield from _nodes(node["items"], f"{path}[]")


@pytest.mark.parametrize(("path", "node"), [pytest.param(*each, id=each[0]) for each in _nodes(SCHEMA)])
def test_each_value_is_described_and_takes_no_unknown_key(path: str, node: dict[str, Any]) -> None:
    resolved = chart_docs.resolved(node, SCHEMA)
    if not path.endswith("[]") or "properties" in resolved:
        assert resolved.get("description"), f"{path} isn't described"
    if "properties" in resolved and path != "global":  # shared with other charts
        assert resolved.get("additionalProperties") is False, f"{path} takes unknown keys"
