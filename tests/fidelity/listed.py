"""The differences from the real server that are meant: `differences.yaml` says why, and in which answers.

Each entry is `REASON: {why: SENTENCE, where: {GROUP: {NUMBER: [PATH, …]}}}`: of the group's compared answers the one
with this number (from 0) differs below these paths (`body.metadata`; "" for all of it), and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

FILE = Path(__file__).parent / "differences.yaml"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why answers differ, and where: group, number of the answer, paths."""

    why: str
    where: Mapping[str, Mapping[int, Sequence[str]]]

    @property
    def count(self) -> int:
        return sum(len(answers) for answers in self.where.values())


@cache
def reasons() -> Mapping[str, Reason]:
    """All reasons by name."""
    content = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return {name: Reason(entry["why"], entry["where"]) for name, entry in content.items()}


def differs(group: str, number: int) -> Mapping[str, Sequence[str]]:
    """Where the answer may differ, by reason."""
    return {
        name: reason.where[group][number] for name, reason in reasons().items() if number in reason.where.get(group, {})
    }
