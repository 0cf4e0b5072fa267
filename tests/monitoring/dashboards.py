"""The dashboards as they are shipped, and their queries as a Prometheus takes them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "helm/vcbatch/files/dashboards"
FILES = sorted(FOLDER.glob("*.json"))
Json = dict[str, Any]
EVERYTHING = {"cluster": ".*", "namespace": ".*", "queue": ".*", "__rate_interval": "5m"}


@dataclass(frozen=True, slots=True)
class Target:
    """One query of a panel."""

    dashboard: str
    panel: str
    unit: str
    expr: str

    def __str__(self) -> str:
        return f"{self.dashboard}: {self.panel}"

    def filled(self, variables: Mapping[str, str]) -> str:
        """With values for the variables of the dashboard."""
        return re.sub(r"\$\{?(\w+)\}?", lambda match: variables[match.group(1)], self.expr)

    def strict(self, variables: Mapping[str, str]) -> str:
        """The same without what stands in for data that isn't there."""
        return self.filled(variables).removesuffix(" or vector(0)")


def load(path: Path) -> Json:
    found: Json = json.loads(path.read_text())
    return found


def panels(dashboard: Json) -> Iterator[Json]:
    """The panels that show something."""
    yield from (panel for panel in dashboard["panels"] if panel["type"] != "row")


def targets() -> list[Target]:
    """All queries of all dashboards."""
    return [
        Target(dashboard["title"], panel["title"], panel["fieldConfig"]["defaults"]["unit"], target["expr"])
        for dashboard in map(load, FILES)
        for panel in panels(dashboard)
        for target in panel["targets"]
    ]
