"""How jobs look in notebooks."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcbatch.sdk.display import JobDisplay, html_of, live_display
from vcbatch.sdk.log_reader import LogLine
from vcbatch.sdk.models.job import Job
from vcbatch.sdk.records import JobEvent


class Shown(JobDisplay):
    def __init__(self, last: Job | None, name: str = "a") -> None:
        self.namespace, self.name, self.last = "default", name, last


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        assert all(name in ("style", "colspan") for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    return reader


EVIL = st.sampled_from(['<script>alert("x")</script>', "'\"><img src=x onerror=y>", "&lt;b&gt;", "</td>"]) | st.text()


@given(name=EVIL, message=EVIL, task=EVIL, phase=EVIL, queue=EVIL, count=st.integers(-5, 10**12))
def test_nothing_that_a_server_says_becomes_markup(
    name: str, message: str, task: str, phase: str, queue: str, count: int
):
    job = Job.from_manifest(
        {
            "metadata": {"name": name, "namespace": name},
            "spec": {"queue": queue, "tasks": [{"name": task, "replicas": 3}]},
            "status": {
                "state": {"phase": "Pending", "message": message},
                "taskStatusCount": {task: {"phase": {phase: count}}},
                "retryCount": 2,
            },
        }
    )
    shown = read(html_of(job))
    assert shown.tags <= {"div", "b", "span", "table", "tr", "td"}
    assert name.strip() in shown.text or "\r" in name or "\x00" in name


def test_a_job_says_where_it_stands_and_why():
    job = Job.from_manifest(
        {
            "metadata": {"name": "train", "namespace": "team"},
            "spec": {"queue": "research", "tasks": [{"name": "worker", "replicas": 4}]},
            "status": {
                "state": {"phase": "Restarting", "message": "a node was lost"},
                "taskStatusCount": {"worker": {"phase": {"Running": 1, "Failed": 1}}},
                "retryCount": 1,
            },
        }
    )
    text = read(html_of(job)).text
    for part in ("team/train", "Restarting", "research", "restarted 1×", "a node was lost", "1 Failed, 1 Running of 4"):
        assert part in text
    bundle = Shown(job)._repr_mimebundle_()
    assert bundle["text/plain"] == "<Shown default/a: Restarting>" and "train" in bundle["text/html"]


def test_a_job_that_was_not_looked_at_says_so():
    assert "not looked at" in Shown(None, "<b>")._repr_html_()
    assert "<b><" not in Shown(None, "<b>")._repr_html_()


def test_outside_of_notebooks_nothing_is_shown(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert live_display(Shown(None)) is None
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace()))  # type: ignore[arg-type]
    assert live_display(Shown(None)) is None  # IPython in a terminal


def test_in_a_notebook_one_output_is_updated(monkeypatch: pytest.MonkeyPatch):
    shown: list[Any] = []

    def display(what: Any, *, display_id: bool) -> Any:
        shown.append(("new", what))
        return SimpleNamespace(update=lambda again: shown.append(("again", again)))

    notebook = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", notebook)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))  # type: ignore[arg-type]
    handle = Shown(None)
    update = live_display(handle)
    assert update is not None
    update()
    assert shown == [("new", handle), ("again", handle)]


def test_lines_and_events_are_text_too():
    when = datetime(2026, 5, 1, 12, 30, tzinfo=UTC)
    line = LogLine(task="worker", index=3, pod="a-worker-3", container="main", restart=0, text="loss 0.5", time=when)
    assert str(line) == "worker/3 │ loss 0.5"
    event = JobEvent(
        time=when, type="Warning", reason="BackOff", message="again", kind="Pod", name="a-worker-3", count=2
    )
    assert str(event) == "2026-05-01 12:30:00 Warning BackOff pod/a-worker-3: again (×2)"
