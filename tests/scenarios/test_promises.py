"""Every promise of `promises.yaml` is shown by a scenario, or held by a test that is named there."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.scenarios.player import scenarios

_FILE = yaml.safe_load(Path(__file__).with_name("promises.yaml").read_text(encoding="utf-8"))
PROMISES: dict[str, str] = _FILE["promises"]
ELSEWHERE: dict[str, str] = _FILE["elsewhere"]
NOT_OURS: dict[str, str] = _FILE["not"]
_ROOT = Path(__file__).resolve().parents[2]

_ROUGH_EDGES = {"J": 44, "Q": 12, "P": 7, "F": 11, "G": 1, "C": 9, "H": 6, "S": 2, "O": 1}
_ALL = [
    *(f"A.1-{number}" for number in (*range(1, 31), "18b")),
    *(f"A.2-{number}" for number in range(1, 11)),
    *(f"A.3-{number}" for number in range(1, 8)),
    *(f"A.4-{number}" for number in range(1, 7)),
    *(f"A.5-{number}" for number in range(1, 11)),
    *(f"{letter}{number}" for letter, last in _ROUGH_EDGES.items() for number in range(1, last + 1)),
    *(f"ask-{number}" for number in (*range(1, 29), "22b", 32, 33, 38)),
]


@cache
def _shown() -> dict[str, list[str]]:
    shown: dict[str, list[str]] = defaultdict(list)
    for scenario in scenarios():
        for promise in scenario.shows:
            shown[promise].append(scenario.title)
    return shown


def test_each_is_promised_held_elsewhere_or_not_ours() -> None:
    assert sorted([*PROMISES, *ELSEWHERE, *NOT_OURS]) == sorted(_ALL)


@pytest.mark.parametrize("promise", PROMISES)
def test_a_scenario_shows(promise: str) -> None:
    assert _shown()[promise], f"no scenario shows that {PROMISES[promise]}"


def test_scenarios_show_what_was_promised() -> None:
    assert _shown().keys() <= PROMISES.keys() | ELSEWHERE.keys()


@pytest.mark.parametrize("file", sorted({*ELSEWHERE.values()}))
def test_what_is_held_elsewhere_is_there(file: Any) -> None:
    assert (_ROOT / file).is_file()
