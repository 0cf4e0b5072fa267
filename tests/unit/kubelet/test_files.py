"""A file is replaced as a whole, or stays as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from vcbatch.local.files import replace_file


def test_the_new_content_is_there_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in (b"one", b"two"):
        replace_file(path, content)
        assert path.read_bytes() == content
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("durable", [True, False])
def test_a_full_disk_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durable: bool) -> None:
    path = tmp_path / "file"
    replace_file(path, b"old")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(OSError, match="No space left"):
        replace_file(path, b"new", durable=durable)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_what_a_process_left_that_ended_meanwhile_is_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / ".file.new").write_text("half")
    replace_file(tmp_path / "file", b"whole")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
