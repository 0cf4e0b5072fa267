"""A cycle that waits for a plugin: it is said for which, and where that is."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.unit.scheduler.cluster import Cluster
from vcbatch.runtime.scheduling.plugin_watch import PluginWatch
from vcbatch.scheduler import parse_policy
from vcbatch.scheduler.framework.plugin import Plugin
from vcbatch.scheduler.framework.policy import Extensions

TEXT = "actions: enqueue, allocate\ntiers: [{plugins: [{name: gang}, {name: slow}, {name: predicates}]}]"
NOW = datetime(2026, 6, 1, tzinfo=UTC)


class Slow(Plugin):
    """Goes on as soon as somebody has said that it doesn't."""

    reported = threading.Event()

    def open(self, session: Any) -> None:
        self._wait()

    def _wait(self) -> None:
        assert Slow.reported.wait(60)


def _watched(monkeypatch: pytest.MonkeyPatch, extensions: Extensions, *, after: float) -> list[tuple[str, str]]:
    """What was said of one cycle."""
    Slow.reported.clear()
    monkeypatch.setattr("vcbatch.runtime.scheduling.plugin_watch.log.warning", lambda *_: Slow.reported.set())
    found: list[tuple[str, str]] = []
    cluster = Cluster(parse_policy(TEXT, extensions=extensions))
    with PluginWatch(lambda *slow: found.append(slow), after=after).over(extensions):
        cluster.scheduler.cycle(NOW)
    return found


def test_who_is_waited_for_is_named_while_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    [(name, where)] = _watched(monkeypatch, Extensions(plugins={"slow": Slow}), after=0.5)
    assert name == "slow"
    assert where == f"slow.open ({__file__}:{Slow._wait.__code__.co_firstlineno + 1})"


class Quick(Plugin):
    """Has no opinion."""


def test_nothing_is_said_of_a_cycle_that_is_over_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _watched(monkeypatch, Extensions(plugins={"slow": Quick}), after=300) == []
    assert all(timer.finished.is_set() for timer in threading.enumerate() if isinstance(timer, threading.Timer))
