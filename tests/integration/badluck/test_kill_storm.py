"""A few kills of the whole server under a load of gang jobs; `make kill-test` does it hundreds of times."""

from __future__ import annotations

from pathlib import Path

from tests.integration.badluck.kill_storm import Storm


async def test_nothing_is_lost_or_done_twice_when_the_server_is_killed(tmp_path: Path):
    report = await Storm(tmp_path, kills=4, jobs=12, seed=3).run()
    assert report.errors == []
    assert (report.kills, report.jobs) == (4, 12)
    assert report.writes > 12
