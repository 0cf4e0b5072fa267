"""Space that is kept for deletions: given up on a full disk, and taken again when there is room."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.small_disk import fill, small_disk
from vcbatch.local.apiserver.persistence import Persistence, StoredObject, WriteFailed
from vcbatch.local.apiserver.reserve import NAME, Reserve, give_up_reserve

BIG = b"x" * 100_000


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", megabytes=16) as folder:
        yield folder


def row(name: str, body: bytes | None = BIG, *, deleting: bool = False) -> StoredObject:
    return StoredObject("/configmaps", "default", name, 2, body, deleting)


def names(persistence: Persistence) -> set[str]:
    return {found.name for found in persistence.load()}


def filled(persistence: Persistence) -> set[str]:
    """Write until nothing more is taken; the names of what was."""
    taken: set[str] = set()
    for number in range(1000):
        try:
            persistence.write([row(f"c{number}")], 2)
        except WriteFailed as error:
            assert error.full
            return taken
        taken.add(f"c{number}")
        if persistence.wants_checkpoint():
            with suppress(sqlite3.Error):
                persistence.checkpoint()
    pytest.fail("the disk is never full")


def test_a_reserve_is_taken_given_up_and_taken_again(tmp_path: Path) -> None:
    reserve = Reserve(tmp_path, size=8192)
    assert reserve.take()
    assert (tmp_path / NAME).stat().st_size == 8192
    assert reserve.give_up() and reserve.given_up
    assert not (tmp_path / NAME).exists()
    assert not reserve.give_up()
    assert reserve.take() and not reserve.given_up
    assert Reserve(tmp_path, size=8192).take()
    assert give_up_reserve(tmp_path)
    assert not give_up_reserve(tmp_path)


def test_it_never_takes_the_last_of_the_space(disk: Path) -> None:
    reserve = Reserve(disk, size=16 * 1024 * 1024)
    assert not reserve.take()
    assert list(disk.iterdir()) == []


def test_objects_can_be_deleted_on_a_full_disk_and_others_written_when_there_is_room(disk: Path) -> None:
    persistence = Persistence(disk)
    persistence.write([row("before")], 2)
    filler = fill(disk)
    taken = filled(persistence)
    assert names(persistence) == taken | {"before"}

    persistence.write([row("before", b"{}", deleting=True)], 3)
    persistence.write([row("before", None)], 4)
    for name in sorted(taken):
        persistence.write([row(name, None)], 5)
    assert names(persistence) == set()
    with pytest.raises(WriteFailed) as refused:
        persistence.write([row("small", b"{}")], 6)
    assert refused.value.full and "kept for deletions" in str(refused.value)

    filler.unlink()
    persistence.write([row("after")], 6)
    assert (disk / NAME).exists()
    persistence.close()
    again = Persistence(disk)
    assert names(again) == {"after"}
    again.close()


def test_space_of_deleted_objects_goes_back_to_the_disk(disk: Path) -> None:
    """The database itself fills the disk: nothing else can be removed."""
    persistence = Persistence(disk)
    taken = filled(persistence)
    for name in sorted(taken):
        persistence.write([row(name, None)], 3)
    for _ in range(10):
        persistence.reclaim()
    assert (disk / NAME).exists()
    persistence.write([row("after")], 4)
    assert names(persistence) == {"after"}
    persistence.close()


def test_no_refused_write_harms_the_database(disk: Path) -> None:
    persistence = Persistence(disk)
    filler = fill(disk)
    taken = filled(persistence)
    for number in range(200):
        with pytest.raises(WriteFailed):
            persistence.write([row(f"more{number}", BIG * (1 + number % 7))], 3)
        persistence.write([row(f"gone{number}", None)], 3)
    assert names(persistence) == taken
    filler.unlink()
    persistence.close()
    with sqlite3.connect(disk / "state.db") as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    database.close()
