"""What the disk doesn't take of a log is counted, and the log says so where it is missing."""

from __future__ import annotations

import json
import re
import resource
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.kubelet.test_logs import printed, writer
from vcbatch.local.kubelet.records import output_lost_at_the_end
from vcbatch.local.kubelet.supervisor.logfile import MAX_LINE
from vcbatch.local.kubelet.supervisor.reserved import EXIT

MARK = re.compile(rb"\[vcbatch: (\d+) bytes? of output in (\d+) lines? (?:is|are) missing here: ([^\]]+)\]\n")


@contextmanager
def no_file_grows_beyond(size: int) -> Iterator[None]:
    """A file of this process that would become larger is refused with EFBIG, after as much as fits."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def files(directory: Path) -> list[Path]:
    return list(directory.iterdir())


async def test_lost_lines_leave_a_mark_where_they_are_missing(tmp_path: Path) -> None:
    log = writer(tmp_path)
    log.write(b"before\n")
    with no_file_grows_beyond((tmp_path / "log").stat().st_size):
        log.write(b"lost 1\nlost 2\n")
    log.write(b"after\n")
    assert log.close() is None
    mark = b"[vcbatch: 14 bytes of output in 2 lines are missing here: File too large]\n"
    assert await printed(tmp_path) == b"before\n" + mark + b"after\n"


async def test_a_line_of_which_a_part_was_written_is_completed(tmp_path: Path) -> None:
    log = writer(tmp_path)
    with no_file_grows_beyond(45):
        log.write(b"begun and interrupted\nlost\n")
    log.write(b"after\n")
    assert log.close() is None
    mark = b"[vcbatch: 5 bytes of output in 1 line are missing here: File too large]\n"
    assert await printed(tmp_path) == b"begun and interrupted\n" + mark + b"after\n"


async def test_what_is_missing_at_the_end_is_told_by_the_exit_record(tmp_path: Path) -> None:
    log = writer(tmp_path)
    log.write(b"before\n")
    with no_file_grows_beyond((tmp_path / "log").stat().st_size):
        log.write(b"lost\nand the rest")
        missing = log.close()
    assert missing == {"bytes": 18, "lines": 2, "why": "File too large"}
    (tmp_path / EXIT).write_text(json.dumps({"exit_code": 0, "finished_at": 1.5, "log_lost": missing}))
    said = b"[vcbatch: 18 bytes of output in 2 lines are missing here: File too large]"
    assert output_lost_at_the_end(tmp_path) == b"1970-01-01T00:00:01.500000000Z stdout F " + said
    assert await printed(tmp_path) == b"before\n" + said + b"\n"
    assert await printed(tmp_path, follow=True) == b"before\n" + said + b"\n"
    assert await printed(tmp_path, tail_lines=1) == said + b"\n"


async def test_a_log_that_cannot_be_rotated_goes_on(tmp_path: Path) -> None:
    log = writer(tmp_path, size=300, files=3)
    blocked = tmp_path / ".log.new"
    blocked.mkdir()
    for number in range(20):
        log.write(b"line %d\n" % number)
    blocked.rmdir()
    for number in range(20, 25):
        log.write(b"line %d\n" % number)
    assert log.close() is None
    assert await printed(tmp_path) == b"".join(b"line %d\n" % number for number in range(25))
    assert sorted(path.name for path in files(tmp_path)) == ["log", "log.1"]


CHUNKS = st.lists(
    st.tuples(st.lists(st.sampled_from([b"a", b"\n", b"some words", b"x" * 3000, b"y" * (MAX_LINE + 9)]), max_size=6),
              st.one_of(st.none(), st.integers(0, 9000))),
    max_size=8,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(CHUNKS)
@example([([b"a", b"\n", b"a", b"\n"], 41), ([b"a", b"\n"], 60), ([b"\n"], 130), ([b"a", b"\n"], None)])
def test_every_byte_is_in_the_log_or_counted(chunks: list[tuple[list[bytes], int | None]]) -> None:
    """Each chunk meets a disk with room for so many more bytes, or for all."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "log"
        log = writer(Path(name), size=10**9)
        text = b""
        for parts, room in chunks:
            chunk = b"".join(parts)
            text += chunk
            limit = resource.RLIM_INFINITY if room is None else path.stat().st_size + room
            with no_file_grows_beyond(limit):
                log.write(chunk)
        log.close()
        found = b"".join(_texts(path))
    if text and not text.endswith(b"\n"):
        text += b"\n"
    marks = MARK.findall(found)
    kept = MARK.sub(b"", found)
    assert len(kept) + sum(int(size) for size, _, _ in marks) == len(text)
    assert kept.count(b"\n") + sum(int(lines) for _, lines, _ in marks) == text.count(b"\n")
    assert _is_part_of(kept, text)


def _texts(path: Path) -> Iterator[bytes]:
    for line in path.read_bytes().splitlines():
        _, _, kind, text = line.split(b" ", 3)
        yield text if kind == b"P" else text + b"\n"


def _is_part_of(kept: bytes, text: bytes) -> bool:
    """Whether `kept` is `text` with some of its bytes left out."""
    place = 0
    for byte in kept:
        place = text.find(byte, place) + 1
        if not place:
            return False
    return True
