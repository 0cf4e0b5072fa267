"""When a pod that couldn't be started is looked at again."""

from __future__ import annotations

from tests.support.virtual_time import VirtualClock
from vcbatch.local.kubelet.retry import LONGEST_SECONDS, Retry


class _Clock(VirtualClock):
    seconds = 100.0

    def monotonic(self) -> float:
        return self.seconds


def test_each_failure_in_a_row_waits_twice_as_long_up_to_a_limit() -> None:
    clock = _Clock()
    retry = Retry(clock)
    waits: list[float | None] = []
    for _ in range(8):
        retry.later()
        waits.append(retry.left)
    assert waits == [1, 2, 4, 8, 16, 32, LONGEST_SECONDS, LONGEST_SECONDS]
    retry.worked()
    assert retry.left is None
    retry.later()
    assert retry.left == 1


def test_a_look_fulfils_a_wish_that_is_due_and_no_other() -> None:
    clock = _Clock()
    retry = Retry(clock)
    retry.later()
    retry.checked()
    assert retry.waits
    clock.seconds += 1
    assert not retry.waits
    assert retry.left == 0
    retry.checked()
    assert retry.left is None


def test_what_changes_ends_the_wait_and_not_the_row() -> None:
    clock = _Clock()
    retry = Retry(clock)
    retry.later()
    retry.now()
    assert not retry.waits
    retry.later()
    assert retry.left == 2
    retry.soon()
    assert retry.left == 1
