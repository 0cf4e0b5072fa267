"""Tables and text in cells of a terminal: wide characters, long names, whatever a pod says."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcbatch.cli.base import terminal as terminals
from vcbatch.cli.base.table import GAP, Cell, Layout, table
from vcbatch.cli.base.terminal import Terminal, Tone, cells, clean, cut, cut_middle, terminal_of, wrap

_TEXT = st.text(
    alphabet=st.one_of(
        st.characters(codec="ascii"),
        st.sampled_from("äß漢字かな한🙂é\u0301\u200b\u00a0\x1b\x9b\u202e\t\n…█"),
    ),
    max_size=30,
)
_ROWS = st.integers(1, 5).flatmap(
    lambda width: st.lists(st.lists(_TEXT, min_size=width, max_size=width), min_size=1, max_size=6)
)


@given(_ROWS)
def test_columns_begin_at_the_same_cell_in_every_row(rows: list[list[str]]) -> None:
    lines = table(rows).split("\n")
    assert len(lines) == len(rows)
    starts = [0]
    for column in range(len(rows[0])):
        starts.append(starts[-1] + max(cells(clean(row[column])) for row in rows) + GAP)
    for row, line in zip(rows, lines, strict=True):
        assert line == line.rstrip()
        padded = line + " " * starts[-1]
        for at, text in zip(starts, row, strict=False):
            before = _first_cells(padded, at)
            assert padded[len(before) :].startswith(clean(text).rstrip()) or not clean(text).strip()


def _first_cells(text: str, width: int) -> str:
    """The shortest beginning that is so many cells wide, with what takes no room after it."""
    for length in range(len(text) + 1):
        if cells(text[:length]) == width:
            return text[:length]
    return text


@given(_ROWS, st.integers(10, 120), st.sets(st.integers(0, 4)))
def test_at_a_terminal_flexible_columns_give_way_until_it_fits(
    rows: list[list[str]], width: int, flexible: set[int]
) -> None:
    chosen = {column for column in flexible if column < len(rows[0])}
    text = table(rows, terminal=Terminal(width=width), flexible=chosen)
    widths = [max(cells(clean(row[column])) for row in rows) for column in range(len(rows[0]))]
    least = sum(min(12, one) if at in chosen else one for at, one in enumerate(widths)) + GAP * (len(widths) - 1)
    assert max(cells(line) for line in text.split("\n")) <= max(width, least)


@given(_TEXT, st.integers(0, 40))
def test_what_is_cut_is_as_wide_as_it_may_be(text: str, width: int) -> None:
    shown = cut(clean(text), width)
    assert cells(shown) <= width
    assert shown == clean(text) or not shown or shown.endswith("…")


@given(_TEXT)
def test_nothing_reaches_the_terminal_that_it_would_act_on(text: str) -> None:
    assert all(letter.isprintable() for letter in clean(text))
    assert clean(clean(text)) == clean(text)


@given(st.lists(_TEXT, max_size=12).map(" ".join), st.integers(20, 90))
def test_wrapped_lines_fit_and_keep_every_word(text: str, width: int) -> None:
    lines = wrap(text, width, indent="  ", hang="    ")
    assert " ".join(lines).split() == clean(text).split()
    assert all(cells(line) <= width or len(line.split()) == 1 for line in lines)


def test_numbers_stand_at_the_right_and_colours_take_no_room() -> None:
    rows = [("NAME", "PODS"), (Cell("a", Tone.GOOD), "10"), ("long-name", "7")]
    assert table(rows, right=[1]) == "NAME        PODS\na             10\nlong-name      7"
    painted = table(rows, right=[1], terminal=Terminal(colour=True))
    assert painted == "NAME        PODS\n\x1b[32ma\x1b[0m             10\nlong-name      7"
    assert re.sub(r"\x1b\[\d+m", "", painted) == table(rows, right=[1])


def test_later_rows_keep_to_the_widths_of_the_first_ones() -> None:
    layout = Layout([("NAME", "PHASE"), ("job-a", "Running")])
    assert layout.line(("b", "Failed")) == "b       Failed"
    assert layout.line(("a-longer-name", "Failed")) == "a-longer-name   Failed"


class _Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("variables", "colour"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "dumb"}, False),
        ({}, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, True),
    ],
)
def test_colours_are_for_terminals_that_want_them(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], colour: bool
) -> None:
    for name in ("TERM", "NO_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert terminal_of(_Terminal()).colour is colour
    assert terminal_of(_Terminal()).width == 80
    assert terminal_of(io.StringIO()) == Terminal(unicode=False)


def test_the_width_is_what_columns_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "132")
    assert terminal_of(_Terminal()).width == 132
    for nonsense in ("", "0", "-3", "wide", "٣"):
        monkeypatch.setenv("COLUMNS", nonsense)
        assert terminal_of(_Terminal()).width == 80


def test_ascii_needs_no_tables_of_widths() -> None:
    assert cells("plain") == 5
    assert terminals.cut("a long line", 6) == "a lon…"


@given(_TEXT, st.integers(0, 40))
def test_the_middle_is_left_out_and_both_ends_are_kept(text: str, width: int) -> None:
    given = clean(text)
    shown = cut_middle(given, width)
    assert cells(shown) <= max(width, 0)
    if cells(given) <= width:
        assert shown == given
    elif width >= 3 and given.isascii():
        head, tail = shown.split("…")
        assert given.startswith(head) and given.endswith(tail) and tail


def test_columns_move_closer_before_anything_is_cut() -> None:
    rows = [["NAME", "STATE"], ["abcdefghijklmn", "Open"]]
    assert table(rows, terminal=Terminal(width=21), flexible=[0], narrow_gap=True).splitlines()[1] == (
        "abcdefghijklmn  Open"
    )
    assert table(rows, terminal=Terminal(width=20), flexible=[0], middle=[0], narrow_gap=True).splitlines()[1] == (
        "abcdef…ijklmn  Open"
    )
