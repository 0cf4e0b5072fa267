"""`--state-dir` names a directory that is ours, or is refused and left as it is."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcbatch.cli.base.output import CliError
from vcbatch.cli.base.state import StateDir
from vcbatch.cli.base.state_ownership import MARKER, is_own
from vcbatch.cli.local import down
from vcbatch.local.apiserver.persistence import Persistence
from vcbatch.local.apiserver.pki import Pki


def picture(folder: Path) -> list[tuple[str, int, bytes]]:
    """Everything that could be changed: names, modes, contents."""
    entries = [folder, *sorted(folder.rglob("*"))]
    return [
        (str(entry), stat.S_IMODE(entry.lstat().st_mode), entry.read_bytes() if entry.is_file() else b"")
        for entry in entries
    ]


def mode(folder: Path) -> int:
    return stat.S_IMODE(folder.stat().st_mode)


def with_files(folder: Path) -> None:
    (folder / "thesis.tex").write_text("mine")


def with_a_kubelet_directory(folder: Path) -> None:
    (folder / "kubelet" / "pods" / "u").mkdir(parents=True)
    (folder / "pid").write_text(f"{os.getpid()} 1")


def with_a_marker_of_other_content(folder: Path) -> None:
    (folder / MARKER).write_text("something else")
    (folder / "thesis.tex").write_text("mine")


def with_a_link_for_a_marker(folder: Path) -> None:
    (folder / "target").write_text("mine")
    (folder / MARKER).symlink_to("target")


def open_to_all(folder: Path) -> None:
    folder.chmod(0o777)


def like_tmp(folder: Path) -> None:
    folder.chmod(0o1777)


def ours_and_open_to_all(folder: Path) -> None:
    StateDir(folder).create()
    (folder / "log").symlink_to("/somewhere")
    folder.chmod(0o777)


FOREIGN = [
    with_files,
    with_a_kubelet_directory,
    with_a_marker_of_other_content,
    with_a_link_for_a_marker,
    open_to_all,
    like_tmp,
    ours_and_open_to_all,
]


@pytest.mark.parametrize("spoil", FOREIGN)
def test_a_directory_that_is_not_ours_is_refused_and_unchanged(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o755)
    spoil(folder)
    before = picture(folder)
    with pytest.raises(CliError) as refused:
        StateDir(folder).create()
    assert str(folder) in str(refused.value) and "unchanged" in str(refused.value)
    assert refused.value.hint
    assert picture(folder) == before


def test_the_home_directory_is_refused_even_where_it_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    monkeypatch.setenv("HOME", str(home))
    (tmp_path / "link").symlink_to(home)
    for path in (home, Path("~"), tmp_path / "link"):
        with pytest.raises(CliError, match="not usable as a state directory"):
            StateDir(path).create()
    assert mode(home) == 0o755
    assert list(home.iterdir()) == []


def test_a_new_directory_is_for_its_owner_alone_and_marked(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    StateDir(folder).create()
    assert mode(folder) == 0o700
    assert is_own(folder)
    StateDir(folder).create()


@pytest.mark.parametrize("given", [0o755, 0o775, 0o700])
def test_an_empty_directory_becomes_ours(tmp_path: Path, given: int) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    folder.chmod(given)
    StateDir(folder).create()
    assert mode(folder) == 0o700
    assert is_own(folder)


def test_ours_stays_ours_with_whatever_is_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    StateDir(folder).create()
    (folder / "notes").write_text("mine")
    folder.chmod(0o755)
    StateDir(folder).create()
    assert mode(folder) == 0o700
    assert (folder / "notes").read_text() == "mine"


def old_state(folder: Path) -> None:
    """What a version before the marker left."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "up.lock").touch()
    Persistence(folder).close()
    Pki(folder / "pki", datetime.now(UTC))


def test_a_directory_of_a_version_without_marker_is_ours(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    old_state(folder)
    (folder / "notes").write_text("mine")
    StateDir(folder).create()
    assert (folder / MARKER).exists()
    assert mode(folder) == 0o700


@pytest.mark.parametrize(
    ("lacking", "instead"),
    [("up.lock", None), *((name, text) for name in ("state.db", "pki/ca.crt") for text in (None, "", "another's"))],
)
def test_the_contents_of_an_old_directory_decide(tmp_path: Path, lacking: str, instead: str | None) -> None:
    folder = tmp_path / "state"
    old_state(folder)
    (folder / lacking).unlink()
    if instead is not None:
        (folder / lacking).write_text(instead)
    assert not is_own(folder)
    folder.chmod(0o755)
    before = picture(folder)
    with pytest.raises(CliError):
        StateDir(folder).create()
    assert picture(folder) == before


@given(
    names=st.sets(
        st.sampled_from(["calls", "kubeconfig", "kubelet", "lock", "log", "log.1", "pid", "pid.new", "scheduler.json",
                         "state.db", "state.db-shm", "state.db-wal", "pki", "up.lock"]), min_size=1,
    )
)  # fmt: skip
def test_names_alone_never_make_a_directory_ours(names: set[str]) -> None:
    with tempfile.TemporaryDirectory() as above:
        folder = Path(above) / "folder"
        folder.mkdir(mode=0o755)
        for name in names:
            (folder / name).touch()
        before = picture(folder)
        with pytest.raises(CliError):
            StateDir(folder).create()
        assert picture(folder) == before


def test_a_marker_that_was_not_written_to_its_end_is_written_again(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    (folder / MARKER).write_text("This dir")
    StateDir(folder).create()
    assert is_own(folder)


def test_a_link_to_ours_is_followed_and_a_link_to_others_is_not(tmp_path: Path) -> None:
    ours, others = tmp_path / "ours", tmp_path / "others"
    StateDir(ours).create()
    others.mkdir()
    with_files(others)
    for name, target in (("a", ours), ("b", others), ("c", tmp_path / "nowhere")):
        (tmp_path / name).symlink_to(target)
    StateDir(tmp_path / "a").create()
    for name in ("b", "c"):
        with pytest.raises(CliError):
            StateDir(tmp_path / name).create()
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_what_belongs_to_another_user_is_refused(tmp_path: Path) -> None:
    other, mine = tmp_path / "other", tmp_path / "mine"
    other.mkdir()
    os.chown(other, 12345, 12345)
    mine.mkdir()
    link = tmp_path / "link"
    link.symlink_to(mine)
    os.chown(link, 12345, 12345, follow_symlinks=False)
    planted = tmp_path / "planted"
    StateDir(planted).create()
    (planted / "thesis.tex").touch()
    os.chown(planted / MARKER, 12345, 12345)
    for path in (other, link, planted):
        with pytest.raises(CliError):
            StateDir(path).create()
    assert list(other.iterdir()) == list(mine.iterdir()) == []


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(CliError, match="not a directory"):
        StateDir(tmp_path / "file").create()


def test_down_has_nothing_to_do_in_an_empty_directory(tmp_path: Path) -> None:
    assert down.command.main(["--state-dir", str(tmp_path)], standalone_mode=False) == 0
    assert list(tmp_path.iterdir()) == []


def test_down_touches_nothing_that_is_not_ours(tmp_path: Path) -> None:
    with_a_kubelet_directory(tmp_path)
    before = picture(tmp_path)
    with pytest.raises(CliError, match="is not a vcbatch state directory"):
        down.command.main(["--state-dir", str(tmp_path)], standalone_mode=False)
    assert picture(tmp_path) == before
