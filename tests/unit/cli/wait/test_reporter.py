"""What is said while something is waited for."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any

import pytest

from vcbatch.cli.base.terminal import PLAIN, Terminal
from vcbatch.cli.run.progress import StatusLine
from vcbatch.cli.wait.conditions import condition, kind_of
from vcbatch.cli.wait.reporter import Reporter

Json = dict[str, Any]
NOW = datetime(2026, 6, 1, 12, 5, tzinfo=UTC)
JOB, QUEUE = kind_of("job"), kind_of("queue")


def job(name: str, phase: str = "Pending", **status: Any) -> Json:
    metadata = {"name": name, "creationTimestamp": "2026-06-01T12:00:00Z"}
    return {"metadata": metadata, "spec": {"tasks": [{"replicas": 4}]}, "status": {"state": {"phase": phase}, **status}}


def at_a_terminal() -> tuple[Reporter, io.StringIO]:
    out = io.StringIO()
    return Reporter(StatusLine(out, Terminal(width=60, unicode=True))), out


def lines(out: io.StringIO) -> list[str]:
    """What was drawn, one after the other, without the wheel; empty where the line was taken away."""
    return [line[2:].rstrip() for line in out.getvalue().split("\r\x1b[K")[1:]]


def test_in_a_pipe_each_object_is_told_of_once(capsys: pytest.CaptureFixture[str]) -> None:
    reporter = Reporter(StatusLine(io.StringIO(), PLAIN))
    running, deleted = condition("running", JOB), condition("created", QUEUE)
    for phase in ("Pending", "Restarting"):
        reporter.update("job a", JOB, running, job("a", phase))
    reporter.update("queue q", QUEUE, deleted, None)
    reporter.update("job b", JOB, condition("jsonpath={.status.running}=4", JOB), job("b", ""))
    reporter.draw(NOW)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        "waiting for job a: Running (currently Pending)",
        "waiting for queue q: created (currently not found)",
        "waiting for job b: {.status.running}=4",
    ]


def test_at_a_terminal_one_line_says_how_the_first_stands(capsys: pytest.CaptureFixture[str]) -> None:
    reporter, out = at_a_terminal()
    reporter.draw(NOW)
    assert out.getvalue() == "", "nothing is waited for yet"
    reporter.update("job a", JOB, condition("running", JOB), job("a"))
    reporter.draw(NOW)
    reporter.update("queue q", QUEUE, condition("closed", QUEUE), {"status": {"state": "Closing"}})
    reporter.draw(NOW)
    reporter.reached("job a")
    reporter.draw(NOW)
    reporter.close()
    assert lines(out) == [
        "waiting: a  Pending  0/4 pods  5m",
        "waiting for 2: a  Pending  0/4 pods  5m",
        "",
        "waiting: queue q Closing",
        "",
    ]
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")


def test_the_line_makes_room_for_what_else_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    reporter, out = at_a_terminal()
    reporter.update("job a", JOB, condition("created", JOB), None)
    reporter.draw(NOW)
    reporter.aside("the server doesn't answer")
    assert lines(out) == ["waiting: job a <none>", ""]
    assert capsys.readouterr().err == "the server doesn't answer\n"
