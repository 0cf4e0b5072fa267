"""A database that lacks what was committed to it is noticed, whatever happened to it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from vcbatch.local.apiserver.losses import Loss, forget_losses, is_lost, read_losses
from vcbatch.local.apiserver.persistence import Persistence, StoredObject
from vcbatch.local.apiserver.store import Store


def write(persistence: Persistence, *names: str) -> None:
    version = persistence.version()
    rows = [StoredObject("/configmaps", "default", name, version + 1 + i, b"{}") for i, name in enumerate(names)]
    persistence.write(rows, version + len(names))


def killed(folder: Path) -> None:
    """A server that wrote three objects and stopped, and one that wrote three more and was killed."""
    persistence = Persistence(folder)
    write(persistence, "a", "b", "c")
    persistence.close()
    persistence = Persistence(folder)
    write(persistence, "d")
    write(persistence, "e", "f")
    kept = folder.parent / "kept"
    shutil.copytree(folder, kept)
    persistence.close()
    shutil.rmtree(folder)
    kept.rename(folder)


def as_it_was(folder: Path) -> None:
    pass


def without_log(folder: Path) -> None:
    (folder / "state.db-wal").unlink()


def log_cut_off(folder: Path) -> None:
    log = folder / "state.db-wal"
    with log.open("r+b") as file:
        file.truncate(log.stat().st_size - 100)


def without_database(folder: Path) -> None:
    (folder / "state.db").unlink()


def with_an_empty_file(folder: Path) -> None:
    (folder / "state.db").write_bytes(b"")
    (folder / "state.db-wal").unlink()


@pytest.mark.parametrize(
    ("happens", "left", "losses"),
    [
        (as_it_was, "abcdef", []),
        (log_cut_off, "abcd", [Loss(after=5, through=7)]),
        (without_log, "abc", [Loss(after=4, through=7)]),
        (without_database, "", [Loss(after=1, through=7)]),
        (with_an_empty_file, "", [Loss(after=1, through=7)]),
    ],
)
def test_what_is_lost_is_noticed(
    tmp_path: Path, happens: Callable[[Path], None], left: str, losses: list[Loss]
) -> None:
    folder = tmp_path / "state"
    killed(folder)
    happens(folder)
    persistence = Persistence(folder)
    assert "".join(row.name for row in persistence.load()) == left
    assert list(persistence.losses) == losses
    assert persistence.version() == 7, "no resourceVersion is given out twice"
    write(persistence, "g")
    persistence.close()

    again = Persistence(folder)
    assert list(again.losses) == losses, "it is on record until it is settled"
    assert again.version() == 8
    again.close()
    forget_losses(folder)
    assert read_losses(folder) == []


def test_the_log_of_a_database_that_is_gone_is_kept(tmp_path: Path) -> None:
    killed(tmp_path / "state")
    content = (tmp_path / "state" / "state.db-wal").read_bytes()
    without_database(tmp_path / "state")
    Persistence(tmp_path / "state").close()
    assert (tmp_path / "state" / "state.db-wal.orphan").read_bytes() == content


def test_an_old_copy_is_noticed_by_what_else_is_known(tmp_path: Path) -> None:
    """Also where the file beside the database is as old as the database."""
    folder = tmp_path / "state"
    killed(folder)
    (folder / "newest-version").unlink()
    without_log(folder)
    persistence = Persistence(folder, known_version=6)
    assert list(persistence.losses) == [Loss(after=4, through=6)]
    persistence.close()


def test_a_state_directory_of_a_version_before_is_taken_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    killed(folder)
    (folder / "newest-version").unlink()
    persistence = Persistence(folder)
    assert list(persistence.losses) == []
    assert persistence.version() == 7
    persistence.close()


def test_a_second_loss_is_added(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    killed(folder)
    without_log(folder)
    first = Persistence(folder)
    write(first, "g")
    first.close()
    without_database(folder)
    second = Persistence(folder)
    assert list(second.losses) == [Loss(after=4, through=7), Loss(after=1, through=8)]
    second.close()


@pytest.mark.parametrize("text", ["", "[", "{}", '[{"after": 1}]', "null", '[{"after": "x", "through": 2}]'])
def test_a_record_of_losses_that_makes_no_sense_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "losses.json").write_text(text)
    assert read_losses(tmp_path) == []


@pytest.mark.parametrize("text", ["", "x", "-1", "\u0663", "9" * 20, "00000000000000000000"])
def test_a_version_that_makes_no_sense_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "newest-version").write_text(text)
    persistence = Persistence(tmp_path)
    assert list(persistence.losses) == []
    write(persistence, "a")
    persistence.close()
    assert (tmp_path / "newest-version").read_text() == f"{2:020}\n"


def test_watches_from_before_a_loss_are_told_to_list_again(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    killed(folder)
    without_database(folder)
    persistence = Persistence(folder)
    store = Store(persistence=persistence)
    assert store.version == 7
    persistence.close()


def test_a_range_ends_where_it_says() -> None:
    losses = [Loss(after=4, through=7), Loss(after=9, through=10)]
    assert [version for version in range(12) if is_lost(version, losses)] == [5, 6, 7, 10]
