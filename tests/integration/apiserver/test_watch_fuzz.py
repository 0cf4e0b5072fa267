"""A small part of `make fuzz-watch`: watchers of all kinds, and a server that has forgotten them in the end."""

from __future__ import annotations

from tests.fuzz.watch import run


def test_watchers_see_what_happens_and_leave_nothing_behind() -> None:
    report = run(60, seed=7)
    assert report.errors == []
    assert report.counts["200"] >= 20
    assert report.counts["stall"] >= 3
    assert report.counts["events of the follower"] >= 20
