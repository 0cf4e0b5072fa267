"""`docs/states.md` is the tables that run."""

from __future__ import annotations

from pathlib import Path

from vcbatch.core.job.states import describe as of_jobs
from vcbatch.core.jobflow.states import describe as of_flows

PAGE = Path(__file__).resolve().parents[3] / "docs" / "states.md"


def page() -> str:
    return f"{of_jobs.render()}\n{of_flows.render()}"


def test_the_page_is_the_tables() -> None:
    wanted = "write it anew: python -c 'from tests.unit.core.test_states_page import *; PAGE.write_text(page())'"
    assert PAGE.read_text(encoding="utf-8") == page(), wanted
