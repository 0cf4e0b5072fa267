"""A store of accounting records that fails: jobs go on, and their records are written when it works again."""

from __future__ import annotations

from pathlib import Path

from tests.support import virtual_time
from tests.support.accounted import AccountedStage, admit, end_pod, start_pods, submit
from tests.support.job_lives import phase_of
from vcbatch.core.accounting import AttemptState


async def _started(path: Path) -> AccountedStage:
    stage = AccountedStage(path)
    await stage.restart()
    submit(stage, "a", pods=1)
    await stage.pass_time(3)
    await admit(stage)
    await stage.pass_time(3)
    await start_pods(stage)
    await stage.pass_time(3)
    return stage


def test_jobs_end_without_it_and_are_recorded_later(tmp_path: Path) -> None:
    async def play() -> None:
        stage = await _started(tmp_path / "accounting.db")
        try:
            stage.down = True
            await stage.pass_time(10)
            await end_pod(stage, "a-w-0", 0)
            await stage.pass_time(5)
            assert phase_of(stage, "a") == "Completed"
            (record,) = stage.records().values()
            assert record.open
            stage.remove_job("a")
            await stage.pass_time(120)
            stage.down = False
            await stage.pass_time(60)
            (record,) = stage.records().values()
            assert (record.state, record.exit_code) == (AttemptState.COMPLETED, 0)
            assert record.cpu_seconds == (10 + 3) * 0.1
        finally:
            await stage.stop()

    virtual_time.run(play())


def test_what_ended_meanwhile_is_closed_from_the_job_by_the_next_leader(tmp_path: Path) -> None:
    async def play() -> None:
        stage = await _started(tmp_path / "accounting.db")
        try:
            stage.down = True
            await stage.pass_time(10)
            await end_pod(stage, "a-w-0", 0)
            await stage.pass_time(5)
            await stage.stop()
            stage.down = False
            await stage.restart()
            await stage.pass_time(5)
            (record,) = stage.records().values()
            assert record.state == AttemptState.COMPLETED
            assert record.ended is not None
        finally:
            await stage.stop()

    virtual_time.run(play())


def test_no_more_records_wait_than_the_bound(tmp_path: Path) -> None:
    async def play() -> None:
        stage = await _started(tmp_path / "accounting.db")
        try:
            accounting = stage.accounting
            assert accounting is not None
            stage.down = True
            accounting._most_queued = 5
            for number in range(9):
                submit(stage, f"j{number}", pods=1)
            await stage.pass_time(5)
            assert len(accounting._attempts) + len(accounting._runs) == 5
            stage.down = False
            await stage.pass_time(60)
            names = {record.job for record in stage.records().values()}
            assert names == {"a", *(f"j{number}" for number in range(4, 9))}
        finally:
            await stage.stop()

    virtual_time.run(play())
