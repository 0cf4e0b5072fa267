"""What goes wrong a thousand times is said a few times."""

from __future__ import annotations

import logging
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from vcbatch.observe.repeats import Repeats


class Log:
    """Records through one filter, by a clock that the test turns."""

    def __init__(self) -> None:
        self.now = 0.0
        self._filter = Repeats(monotonic=lambda: self.now)

    def say(
        self, text: str, *arguments: object, level: int = logging.WARNING, **extra: Any
    ) -> logging.LogRecord | None:
        record = logging.LogRecord("test", level, "", 0, text, arguments, None)
        vars(record).update(extra)
        return record if self._filter.filter(record) else None


def test_the_same_is_said_once_and_later_with_how_often_it_was() -> None:
    log = Log()
    assert log.say("following %s failed", "pods", error="refused 1")
    for _ in range(50):
        log.now += 1
        assert log.say("following %s failed", "pods", error="refused 2") is None
    log.now += 10
    said = log.say("following %s failed", "pods", error="refused 3")
    assert said is not None
    assert vars(said)["repeated"] == 50


def test_another_object_and_another_cause_are_not_the_same() -> None:
    log = Log()
    assert log.say("%s", "write status of Job: connection lost", uid="a")
    assert log.say("%s", "write status of Job: connection lost", uid="b")
    assert log.say("%s", "write status of Job: forbidden", uid="a")


def test_a_thousand_objects_with_one_trouble_are_a_few_lines() -> None:
    log = Log()
    passed = [log.say("binding %s failed: %s", f"pod-{number}", "forbidden", uid=str(number)) for number in range(1000)]
    assert 1 < sum(record is not None for record in passed) <= 10
    log.now += 60
    said = log.say("binding %s failed: %s", "other", "forbidden", uid="other")
    assert said is not None
    assert vars(said)["repeated"] == 990


def test_a_trouble_that_returns_after_a_long_time_is_news() -> None:
    log = Log()
    assert log.say("kopf ended")
    log.now += 3600
    assert log.say("kopf ended")
    log.now += 59
    assert log.say("kopf ended") is None


@given(st.lists(st.tuples(st.sampled_from(["a %s", "b"]), st.floats(0, 5)), max_size=300))
@settings(max_examples=50)
def test_lesser_records_always_pass_and_no_count_is_lost(steps: list[tuple[str, float]]) -> None:
    log = Log()
    passed = counted = 0
    for text, pause in steps:
        log.now += pause
        assert log.say(text, level=logging.INFO)
        said = log.say(text, uid="u")
        if said is not None:
            passed += 1
            counted += vars(said).get("repeated", 0)
    log.now += 500
    for text in ("a %s", "b"):
        said = log.say(text, uid="u")
        if said is not None:
            counted += vars(said).get("repeated", 0)
    assert passed + counted == len(steps)
