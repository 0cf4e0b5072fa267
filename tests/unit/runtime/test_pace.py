"""What goes on for long is acted on at growing distances; what comes after a quiet time is acted on at once."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from vcbatch.runtime.pacing.pace import Pace


@given(reasons=st.lists(st.floats(0, 3), min_size=1, max_size=300))
@settings(max_examples=100)
def test_the_number_of_acts_grows_with_the_time_and_not_with_the_reasons(reasons: list[float]) -> None:
    pace: Pace[str] = Pace(first=0.25, limit=4.0)
    now = acts = 0.0
    for pause in reasons:
        now += pause / 100  # many reasons in a short time
        if pace.wait("a", now=now) <= 0:
            pace.acted("a", now=now)
            acts += 1
    assert 1 <= acts <= 2 + math.log2(1 + now / 0.25) + now / 4.0


def test_distances_double_up_to_the_limit_and_start_anew_after_a_quiet_time() -> None:
    pace: Pace[str] = Pace(first=1.0, limit=3.0)
    now, distances = 0.0, []
    for _ in range(4):
        pace.acted("a", now=now)
        distances.append(pace.wait("a", now=now))
        now += distances[-1]
    assert distances == [1.0, 2.0, 3.0, 3.0]
    assert pace.wait("b", now=now) == 0, "of each key by itself"
    now += 10
    assert pace.wait("a", now=now) == 0
    pace.acted("a", now=now)
    assert pace.wait("a", now=now) == 1.0


def test_a_clock_that_is_set_back_holds_nothing_up() -> None:
    pace: Pace[str] = Pace(first=1.0, limit=3.0)
    pace.acted("a", now=1000.0)
    assert pace.wait("a", now=10.0) == 0
    pace.acted("a", now=10.0)
    assert pace.wait("a", now=10.0) == 1.0
