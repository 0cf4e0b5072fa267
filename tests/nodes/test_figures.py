"""The figures of the life cycle: what is counted as time without a leader, and how rows are shown."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.nodes.lifecycle import Hold, Row, during, gaps, table, write

_START = datetime(2026, 1, 1, tzinfo=UTC)


def _holds(*writes: tuple[float, str]) -> list[Hold]:
    return [Hold(at=_START + timedelta(seconds=at), holder=holder, seconds=15) for at, holder in writes]


@pytest.mark.parametrize(
    ("writes", "expected"),
    [
        ([], []),
        ([(0, "a"), (2, "a"), (4, "a")], []),
        ([(0, "a"), (15, "a")], []),
        ([(0, "a"), (18, "a")], [3]),
        ([(0, "a"), (17, "b"), (19, "b")], [17]),
        ([(0, "a"), (5, ""), (6.5, "b")], [1.5]),
        ([(0, "a"), (5, ""), (6, ""), (7, "b")], [2]),
        ([(0, "a"), (1, ""), (2, "b"), (4, "c")], [1, 2]),
        ([(0, ""), (2, "a")], [2]),
    ],
    ids=["nothing", "renewed", "just-in-time", "late", "died", "released", "released-twice", "two", "nobody-at-first"],
)
def test_time_without_a_leader(writes: list[tuple[float, str]], expected: list[float]) -> None:
    assert gaps(_holds(*writes)) == expected


def test_whoever_led_at_the_beginning_counts() -> None:
    held = _holds((0, "a"), (2, "a"), (19, "b"))
    assert gaps(during(held, _START + timedelta(seconds=3))) == [17]
    assert during(held, _START + timedelta(seconds=20)) == held[2:]
    assert during([], _START) == []


_ROW = Row(
    scenario="drain", disturbed=0, taken=4, created=20, refused=1, by_policy=2, stuck=0, scheduler=1.25,
    controllers=None, next_gang=3, longest_wait=None, seconds=60.5,
)  # fmt: skip


def test_the_table_says_what_was_expected_beside_what_was_not() -> None:
    head, line, row = table([_ROW])
    assert len(head) == len(line) == len(row)
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == ["drain", "0 (and 4 whose node went)", "1 (and 2 jobs, by policy)", "23", "0", "1.2", "-", "3", "-"]


def test_rows_are_written_as_json(tmp_path: Path) -> None:
    write([_ROW], tmp_path / "rows.json")
    (row,) = json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))
    assert Row(**row) == _ROW
