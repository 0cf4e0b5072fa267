"""How the lines of a gang look, and how they are written."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from typing import Any

import click
import pytest

from vcbatch.cli.base.terminal import Terminal
from vcbatch.cli.logs.command import IndicesType
from vcbatch.cli.logs.lines import Layout, ProgressLine, Style, Writer, show
from vcbatch.cli.logs.watch import Waits, waits
from vcbatch.cli.run.progress import StatusLine, standing
from vcbatch.sdk.logs import LogLine

Json = dict[str, Any]


def job(*tasks: tuple[str, int], containers: tuple[str, ...] = ("main",), **status: Any) -> Json:
    pod = {"containers": [{"name": name} for name in containers], "initContainers": [{"name": "setup"}]}
    return {
        "metadata": {"name": "train"},
        "spec": {"tasks": [{"name": name, "replicas": size, "template": {"spec": pod}} for name, size in tasks]},
        "status": {"state": status},
    }


def layout(of: Json, **chosen: Any) -> Layout:
    return Layout.of(of, **{"tasks": None, "indices": None, "containers": None, **chosen})


def line(text: str, task: str = "worker", index: int = 0, *, container: str = "main", restart: int = 0) -> LogLine:
    time = datetime(2026, 6, 1, 12, 0, 0, 250000, tzinfo=UTC)
    return LogLine(task=task, index=index, pod="p", container=container, restart=restart, text=text, time=time)


def test_prefixes_are_as_wide_as_the_longest() -> None:
    style = Style(layout=layout(job(("ps", 1), ("worker", 12))))
    shown = [style.line(line("a", "ps")), style.line(line("b", index=11)), style.line(line("", index=3))]
    assert shown == ["ps/0      │ a\n", "worker/11 │ b\n", "worker/3  │ \n"]


def test_a_container_is_named_where_there_are_several() -> None:
    style = Style(layout=layout(job(("w", 2), containers=("main", "sidecar"))))
    assert style.line(line("a", "w")) == "w/0 main    │ a\n"
    assert style.line(line("a", "w", container="sidecar")) == "w/0 sidecar │ a\n"


@pytest.mark.parametrize(
    ("of", "chosen", "speakers"),
    [
        (job(("w", 1)), {}, 1),
        (job(("w", 1), containers=("a", "b")), {}, 2),
        (job(("w", 1), containers=("a", "b")), {"containers": ["b"]}, 1),
        (job(("w", 1), containers=("a",)), {"containers": ["a", "setup"]}, 2),
        (job(("w", 8), ("ps", 2)), {"tasks": ["ps"]}, 2),
        (job(("w", 8), ("ps", 2)), {"indices": [1, 5]}, 3),
        ({"spec": {"tasks": "odd"}}, {}, 0),
    ],
)
def test_how_many_containers_may_speak(of: Json, chosen: Json, speakers: int) -> None:
    assert layout(of, **chosen).speakers == speakers


def test_colours_timestamps_and_terminals_without_unicode() -> None:
    of = layout(job(("worker", 2)))
    assert Style(layout=of, terminal=Terminal(unicode=False)).line(line("a")) == "worker/0 | a\n"
    coloured = Style(layout=of, terminal=Terminal(colour=True, width=80))
    first, second = coloured.line(line("a")), coloured.line(line("a", index=1))
    assert first == "\x1b[36mworker/0 │ \x1b[0ma\n"
    assert second.startswith("\x1b[") and second[:5] != first[:5]
    assert Style(timestamps=True).line(line("a")) == "2026-06-01T12:00:00.250000Z a\n"


async def lines_of(*lines: LogLine) -> AsyncGenerator[LogLine, None]:
    for one in lines:
        yield one


class Out(io.StringIO):
    """Counts its flushes."""

    flushes = 0

    def flush(self) -> None:
        self.flushes += 1


def test_lines_are_written_in_batches_and_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    out = Out()

    async def main() -> None:
        again = line("again", restart=1)
        await show(lines_of(*(line(str(n)) for n in range(1000)), again), Style(), Writer(out))

    asyncio.run(main())
    assert out.getvalue().splitlines() == [*map(str, range(1000)), "again"]
    assert out.flushes <= 3
    assert capsys.readouterr().err == "--- worker/0 restarted (attempt 2)\n"


@pytest.mark.parametrize(("new", "said"), [(True, "--- worker/0 restarted (attempt 3)\n"), (False, "")])
def test_of_a_new_job_the_first_lines_may_come_after_restarts(
    new: bool, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(show(lines_of(line("third", restart=2)), Style(), Writer(Out()), new=new))
    assert capsys.readouterr().err == said


def test_a_line_is_shown_soon_though_no_other_follows() -> None:
    out = Out()

    async def main() -> None:
        shown = asyncio.Event()
        Writer(out, after=shown.set).write("alone\n")
        await asyncio.wait_for(shown.wait(), 30)

    asyncio.run(main())
    assert out.getvalue() == "alone\n"


def test_nothing_is_written_and_nobody_runs_ahead_while_a_question_is_open() -> None:
    out, taken = Out(), 0

    async def source() -> AsyncGenerator[LogLine, None]:
        nonlocal taken
        for n in range(3):
            taken += 1
            yield line(str(n))

    async def main() -> None:
        writer = Writer(out)
        writer.pause()
        showing = asyncio.create_task(show(source(), Style(), writer))
        for _ in range(10):
            await asyncio.sleep(0)
        assert (out.getvalue(), taken) == ("", 1)
        writer.resume()
        await showing

    asyncio.run(main())
    assert out.getvalue() == "0\n1\n2\n"


def test_a_reader_that_has_gone_ends_it() -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    async def main() -> None:
        writer = Writer(Gone())
        writer.write("a\n")
        while True:
            await asyncio.sleep(0.01)
            writer.write("b\n")  # the timer found out, and who writes next is told

    with pytest.raises(BrokenPipeError):
        asyncio.run(asyncio.wait_for(main(), 30))


def test_what_an_encoding_does_not_have_is_replaced() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="latin-1")

    async def main() -> None:
        await show(lines_of(line("naïve ✓")), Style(), Writer(out))

    asyncio.run(main())
    assert raw.getvalue() == "naïve ?\n".encode("latin-1")


def test_the_foot_is_taken_away_before_a_line_and_drawn_again() -> None:
    out = io.StringIO()
    foot = StatusLine(out, Terminal(width=20))

    async def main() -> None:
        foot.say("x" * 40)
        await show(lines_of(line("a")), Style(), Writer(out, before=foot.clear, after=foot.draw))

    asyncio.run(main())
    drawn = "\r\x1b[K⠙ " + "x" * 16 + "…"
    assert out.getvalue() == f"{drawn}\r\x1b[Ka\n{drawn}"
    foot.hide()
    foot.say("y")
    assert out.getvalue().endswith("\r\x1b[K")


def test_the_foot_is_not_drawn_where_nobody_looks() -> None:
    out = io.StringIO()
    StatusLine(out, Terminal()).say("x")
    assert out.getvalue() == ""


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ({"phase": "Pending"}, "train is pending"),
        ({"phase": "Pending", "message": "Busy: no room"}, "train is pending: Busy: no room"),
        ({"phase": "Aborted", "message": "by hand"}, "train is suspended: by hand"),
        ({"phase": "Running", "message": "x"}, ""),
        ({}, "train is pending"),
    ],
)
def test_why_a_job_waits(status: Json, said: str) -> None:
    assert waits(job(("w", 1), **status)) == said


def test_a_reason_is_told_when_it_changes_and_its_absence_only_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[str] = []

    async def main() -> None:
        third = asyncio.Event()

        def report(text: str) -> None:
            reported.append(text)
            if len(reported) == 3:
                third.set()

        waiting = Waits(report)
        waiting.update(job(("w", 1), phase="Pending"))
        waiting.update(job(("w", 1), phase="Running"))  # at once: not worth a word
        for message in ("Busy: a", "Busy: a", "Busy: b"):
            waiting.update(job(("w", 1), phase="Pending", message=message))
        monkeypatch.setattr("vcbatch.cli.logs.watch._PATIENCE", 0.0)
        waiting.update(job(("w", 1), phase="Running"))
        waiting.update(job(("w", 1), phase="Pending"))
        await asyncio.wait_for(third.wait(), 30)
        waiting.close()

    asyncio.run(main())
    assert [text.partition("pending")[2] for text in reported] == [": Busy: a", ": Busy: b", ""]


def test_indices() -> None:
    kind = IndicesType()
    assert kind.convert("0-3,7", None, None) == {0, 1, 2, 3, 7}
    for wrong in ("", "a", "3-1", "-1", "1,", "1-2-3", "9999999"):
        with pytest.raises(click.BadParameter):
            kind.convert(wrong, None, None)


def test_a_progress_bar_is_redrawn_at_a_bounded_rate_and_removed_for_lines() -> None:
    out, times = io.StringIO(), iter([0.0, 0.05, 0.2])
    style = Style(layout=layout(job(("worker", 2))), terminal=Terminal(width=20))
    progress = ProgressLine(out, style, clock=lambda: next(times))
    for percent in ("10%", "20%", "30%"):
        progress.draw(line(f"{percent}|##########", index=1))
    assert out.getvalue() == "\r\x1b[Kworker/1 10%|#####…\r\x1b[Kworker/1 30%|#####…"
    progress.clear()
    progress.clear()
    assert out.getvalue().count("\r\x1b[K") == 3


def test_a_progress_bar_is_not_drawn_into_a_file() -> None:
    out = io.StringIO()
    progress = ProgressLine(out, Style(terminal=Terminal(width=None)))
    progress.draw(line("10%"))
    progress.clear()
    assert (out.getvalue(), progress.on_screen) == ("", False)


def test_the_status_line_says_how_long_the_server_is_unreachable() -> None:
    now = datetime(2026, 6, 1, 12, 0, 0, tzinfo=UTC)
    shown = standing(job(("w", 1), phase="Running"), now=now, lost_at=now - timedelta(seconds=20))
    assert shown.startswith("train  disconnected 20s ago  last known: Running")
