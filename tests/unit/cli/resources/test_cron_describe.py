"""What `cronjob describe` says of the next start."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from vcbatch.cli.base.terminal import PLAIN
from vcbatch.cli.resources.cron.describe import CronScreen, described

NOW = datetime(2026, 6, 1, 12, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        ({"schedule": "45 * * * *"}, "Next run:      2026-06-01 12:45:00 UTC (in 15m)"),
        ({"schedule": "0 9 * * *", "timeZone": "Europe/Berlin"}, "Next run:      2026-06-02 07:00:00 UTC (in 18h)"),
        ({"schedule": "0 0 31 2 *"}, "Next run:      schedule '0 0 31 2 *' never comes, as the 31st of February does"),
        ({"schedule": "45 * * * *", "suspend": True}, "Suspended:     yes; vcbatch cronjob resume tick"),
    ],
)
def test_the_next_start_or_why_there_is_none(spec: dict[str, Any], line: str) -> None:
    cron = {"metadata": {"name": "tick", "namespace": "default", "uid": "u"}, "spec": spec}
    said = described(CronScreen(cron=cron), PLAIN, now=NOW).splitlines()
    assert line in said
    assert sum(one.startswith("Next run:") for one in said) == (not spec.get("suspend"))
