"""A log is bounded on disk, complete for its readers, and cut where they ask."""

from __future__ import annotations

import asyncio
import os
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vcbatch.local.kubelet.logs import LogOptions, last_lines, read
from vcbatch.local.kubelet.supervisor.logfile import MAX_LINE, LogFile


class StillClock:
    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


def writer(directory: Path, *, size: int = 1 << 20, files: int = 5) -> LogFile:
    return LogFile(dir_fd=os.open(directory, os.O_RDONLY), name="log", max_bytes=size, max_files=files)


async def printed(directory: Path, **options: object) -> bytes:
    chunks = read(directory, LogOptions(**options), clock=StillClock(), has_ended=lambda: True)  # type: ignore[arg-type]
    return b"".join([chunk async for chunk in chunks])


@settings(max_examples=60)
@given(st.lists(st.binary(max_size=60), max_size=30))
def test_what_is_printed_comes_back_whatever_the_chunks(chunks: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as name:
        log = writer(Path(name), size=10**9)
        for chunk in chunks:
            log.write(chunk)
        log.close()
        text = b"".join(chunks)
        want = text if not text or text.endswith(b"\n") else text + b"\n"
        assert asyncio.run(printed(Path(name))) == want


async def test_a_line_of_any_length_comes_back_whole(tmp_path: Path) -> None:
    log = writer(tmp_path)
    line = b"x" * (3 * MAX_LINE + 7)
    log.write(line[:5])
    log.write(line[5:] + b"\nnext\n")
    log.close()
    assert await printed(tmp_path) == line + b"\nnext\n"


def sizes(directory: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in directory.iterdir()}


async def test_the_log_never_grows_beyond_its_bound_and_keeps_the_newest(tmp_path: Path) -> None:
    log = writer(tmp_path, size=2000, files=3)
    for index in range(1000):
        log.write(b"line %d\n" % index)
    log.close()
    assert sorted(sizes(tmp_path)) == ["log", "log.1", "log.2"]
    assert sum(sizes(tmp_path).values()) <= 6100
    lines = (await printed(tmp_path)).splitlines()
    assert lines[-1] == b"line 999"
    first = int(lines[0].split()[1])
    assert lines == [b"line %d" % index for index in range(first, 1000)]


async def test_following_goes_across_rotations_without_losing_a_line(tmp_path: Path) -> None:
    log = writer(tmp_path, size=1000, files=50)
    state = {"next": 0}

    def print_more() -> bool:
        for _ in range(40):
            if state["next"] < 400:
                log.write(b"line %d\n" % state["next"])
                state["next"] += 1
        return state["next"] >= 400

    chunks = read(tmp_path, LogOptions(follow=True), clock=StillClock(), has_ended=print_more)
    text = b"".join([chunk async for chunk in chunks])
    log.close()
    assert text.splitlines() == [b"line %d" % index for index in range(400)]


@pytest.mark.parametrize(
    ("options", "want"),
    [
        ({"tail_lines": 2}, b"b\nc\n"),
        ({"tail_lines": 0}, b""),
        ({"limit_bytes": 3}, b"a\nb"),
        ({"since_time": datetime(2100, 1, 1, tzinfo=UTC)}, b""),
        ({"since_time": datetime(2000, 1, 1, tzinfo=UTC)}, b"a\nb\nc\n"),
    ],
)
async def test_the_part_that_was_asked_for(tmp_path: Path, options: dict, want: bytes) -> None:
    log = writer(tmp_path)
    log.write(b"a\nb\nc\n")
    log.close()
    assert await printed(tmp_path, **options) == want


async def test_timestamps_are_those_of_the_lines(tmp_path: Path) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    log = writer(tmp_path)
    log.write(b"hello\n")
    log.close()
    stamp, _, text = (await printed(tmp_path, timestamps=True)).partition(b" ")
    assert text == b"hello\n"
    assert before <= datetime.fromisoformat(stamp.decode()[:26] + "+00:00") <= datetime.now(UTC)


def test_the_last_lines_are_bounded(tmp_path: Path) -> None:
    log = writer(tmp_path)
    log.write(b"".join(b"line %d\n" % index for index in range(100)))
    log.close()
    assert last_lines(tmp_path, lines=2, size=100) == "line 98\nline 99\n"
    assert last_lines(tmp_path, lines=50, size=8) == "line 99\n"


async def test_a_line_that_is_drawn_anew_is_given_before_it_ends(tmp_path: Path) -> None:
    log = writer(tmp_path)
    log.write(b"\rbar 1")
    log.write(b"\rbar 2")
    assert await printed(tmp_path) == b"\rbar 1"
    log.write(b"\rbar 3\ndone\r\n")
    log.close()
    assert await printed(tmp_path) == b"\rbar 1\rbar 2\rbar 3\ndone\r\n"


async def test_a_line_in_parts_has_one_time_and_counts_once(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(
        "2026-01-01T00:00:01.000000000Z stdout F first\n"
        "2026-01-01T00:00:02.000000000Z stdout P a\n"
        "2026-01-01T00:00:05.000000000Z stdout P b\n"
        "2026-01-01T00:00:06.000000000Z stdout F c\n"
        "2026-01-01T00:00:06.000000000Z stdout F last\n"
    )
    assert await printed(tmp_path, timestamps=True, tail_lines=2) == (
        b"2026-01-01T00:00:02.000000000Z abc\n2026-01-01T00:00:06.000000000Z last\n"
    )
    since = datetime(2026, 1, 1, 0, 0, 4, tzinfo=UTC)
    assert await printed(tmp_path, since_time=since) == b"last\n"
