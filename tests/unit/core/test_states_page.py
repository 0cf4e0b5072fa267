"""`docs/states.md` is the tables that run."""

from __future__ import annotations

from pathlib import Path

from vcbatch.core.batchjob import describe as of_batch_jobs
from vcbatch.core.cronjob import describe as of_cron_jobs
from vcbatch.core.job.states import describe as of_jobs
from vcbatch.core.jobflow.states import describe as of_flows
from vcbatch.core.queue.states import describe as of_queues

PAGE = Path(__file__).resolve().parents[3] / "docs" / "states.md"


def page() -> str:
    return "\n".join(part.render() for part in (of_jobs, of_flows, of_queues, of_cron_jobs, of_batch_jobs))


def test_the_page_is_the_tables() -> None:
    wanted = "update the page: python -c 'from tests.unit.core.test_states_page import *; PAGE.write_text(page())'"
    assert PAGE.read_text(encoding="utf-8") == page(), wanted
