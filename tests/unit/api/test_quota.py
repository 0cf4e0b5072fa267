"""Whether a ResourceQuota has more room than before."""

from __future__ import annotations

import pytest

from vcbatch.api.quota import Quota, QuotaStatus, has_more_room

Amounts = dict[str, str | int | float]


@pytest.mark.parametrize(
    ("hard", "used", "more"),
    [
        ({"pods": "2", "cpu": "4"}, {"pods": "2", "cpu": "4"}, False),
        ({"pods": "3", "cpu": "4"}, {"pods": "2", "cpu": "4"}, True),
        ({"pods": "2", "cpu": "4"}, {"pods": "1", "cpu": "4"}, True),
        ({"pods": "2", "cpu": "4"}, {"pods": "2", "cpu": "3900m"}, True),
        ({"pods": "2", "cpu": "3"}, {"pods": "2", "cpu": "3"}, False),
        ({"pods": "1", "cpu": "4"}, {"pods": "2", "cpu": "4"}, False),
        ({"cpu": "4"}, {"cpu": "4"}, True),
        ({"pods": "2", "cpu": "4", "memory": "1Gi"}, {"pods": "2", "cpu": "4"}, False),
        ({"pods": "2", "cpu": "odd"}, {"pods": "2", "cpu": "4"}, False),
        (None, None, True),
    ],
)
def test_room(hard: Amounts | None, used: Amounts | None, more: bool) -> None:
    full = Quota(status=QuotaStatus(hard={"pods": "2", "cpu": "4"}, used={"pods": "2", "cpu": "4"}))
    assert has_more_room(Quota(status=QuotaStatus(hard=hard, used=used)), full) is more
