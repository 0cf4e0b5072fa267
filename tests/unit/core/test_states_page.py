"""`docs/states.md` is the table that runs."""

from __future__ import annotations

from pathlib import Path

from vcbatch.core.job.states.describe import render

PAGE = Path(__file__).resolve().parents[3] / "docs" / "states.md"


def test_the_page_is_the_table() -> None:
    wanted = (
        "write it anew: python -c 'import pathlib; from vcbatch.core.job.states.describe import render; "
        'pathlib.Path("docs/states.md").write_text(render())\''
    )
    assert PAGE.read_text(encoding="utf-8") == render(), wanted
