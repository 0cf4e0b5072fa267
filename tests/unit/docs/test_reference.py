"""`docs/reference` is what the code says."""

from __future__ import annotations

import re

import pytest

from docs.tools.page import cell, paragraphs
from docs.tools.reference import PAGES, outdated, pages
from vcbatch.api.reasons import WaitReason


def test_the_pages_are_what_the_code_says() -> None:
    assert not outdated(), "make reference"


def test_each_pending_reason_has_a_meaning_and_something_to_do() -> None:
    page = (PAGES / "reasons.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \|$", page, re.MULTILINE)
    described = {reason: (meaning, remedy) for reason, meaning, remedy in rows}
    assert {reason for reason in map(str, WaitReason) if not all(described.get(reason, ("",)))} == set()


@pytest.mark.parametrize("name", ["labels.md", "events.md", "cli.md"])
def test_no_description_is_empty(name: str) -> None:
    rows = [line for line in pages()[name].splitlines() if line.startswith("| `")]
    assert [row for row in rows if re.match(r"^\| [^|]* \|\s*\|", row)] == []


def test_a_cell_escapes_what_would_end_it() -> None:
    assert cell("a | b\n  c `x|y` <JOB>") == "a \\| b c `x\\|y` &lt;JOB>"


def test_a_docstring_becomes_paragraphs_and_a_list() -> None:
    assert (
        paragraphs("One\n    line.\n\n    Raises:\n        NotFound: it\n            ended.\n    ")
        == "One line.\n\nRaises:\n\n- `NotFound`: it ended."
    )
