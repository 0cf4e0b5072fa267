"""What is on record is whole, and what couldn't be written isn't there at all."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from vcbatch.local.kubelet import records, unaccounted
from vcbatch.local.kubelet.ports import PortTable
from vcbatch.local.kubelet.records import PodFacts, PodRecord
from vcbatch.local.kubelet.supervisor import reserved
from vcbatch.local.kubelet.unaccounted import UnaccountedPod

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def facts(uid: str, version: int) -> PodFacts:
    return PodFacts(namespace="default", name=f"pod-{uid}", uid=uid, start_time=NOW, version=version, group="g")


def recorded(root: Path, uid: str, version: int) -> PodRecord:
    record = PodRecord(root / "pods" / uid)
    record.create()
    record.write_facts(facts(uid, version))
    return record


def test_a_run_that_cannot_be_recorded_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = PodRecord(tmp_path)
    record.new_run("main", started_at=NOW, restarts=0, crashes=0)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(records, "replace_file", refuse)
    for _ in range(3):
        with pytest.raises(OSError, match="No space left"):
            record.new_run("main", started_at=NOW, restarts=1, crashes=1)
    monkeypatch.undo()
    assert [run.number for run in record.runs("main")] == [0]
    assert record.new_run("main", started_at=NOW, restarts=1, crashes=1).number == 1


def test_a_port_that_cannot_be_recorded_is_not_given(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    table = PortTable(folder / "ports.json", is_free=lambda _: True)
    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            table.rewrite("gang", {"MASTER_PORT": "2222"})
    table.release("gang")
    folder.mkdir()
    assert table.rewrite("gang", {"MASTER_PORT": "2222"})[0] == {"MASTER_PORT": "2222"}
    assert PortTable(folder / "ports.json").rewrite("gang", {"MASTER_PORT": "2222"})[0] == {"MASTER_PORT": "2222"}
    (folder / "ports.json").unlink()
    folder.rmdir()
    table.release("gang")


@pytest.mark.parametrize("text", ["", " " * 4096, "{", '{"exit_code": 0', "[]", "null"])
def test_a_reserved_record_that_says_nothing_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "exit.json").write_text(text)
    assert reserved.read(str(tmp_path / "exit.json")) is None
    assert reserved.read(str(tmp_path / "missing")) is None


@pytest.mark.parametrize("message", ["short", "x" * 5000, "\u20ac" * 5000, '"' * 5000, "\x00" * 5000, "\udcff"])
def test_a_reserved_record_keeps_its_size(tmp_path: Path, message: str) -> None:
    path = tmp_path / "exit.json"
    reserved.reserve(str(path))
    assert path.stat().st_size == reserved.SIZE
    with path.open("r+b") as file:
        reserved.put(file.fileno(), {"exit_code": 1, "error": message})
        assert path.stat().st_size == reserved.SIZE
        found = reserved.read(str(path))
        assert found is not None and found["exit_code"] == 1
        assert message.encode(errors="replace").decode().startswith(found["error"])
        reserved.put(file.fileno(), {"exit_code": 0})
    assert reserved.read(str(path)) == {"exit_code": 0}


def test_the_newest_version_of_recorded_pods(tmp_path: Path) -> None:
    assert records.newest_version(tmp_path) == 0
    recorded(tmp_path, "a", 7)
    recorded(tmp_path, "b", 19)
    (PodRecord(tmp_path / "pods" / "c")).create()
    assert records.newest_version(tmp_path) == 19


def test_pods_of_lost_versions_are_unaccounted_unless_they_are_known(tmp_path: Path) -> None:
    for uid, version in (("old", 7), ("lost", 19), ("known", 20), ("new", 31)):
        recorded(tmp_path, uid, version)
    PodRecord(tmp_path / "pods" / "blank").create()
    assert unaccounted.find(tmp_path, known={"known"}, lost=()) == []
    found = unaccounted.find(tmp_path, known={"known"}, lost=[range(15, 30)])
    assert found == [
        UnaccountedPod(uid="blank"),
        UnaccountedPod(uid="lost", namespace="default", name="pod-lost", group="g"),
    ]
    assert list(map(str, found)) == ["uid blank", "default/pod-lost"]
    unaccounted.write(tmp_path, found)
    assert unaccounted.read(tmp_path) == found
    assert unaccounted.running(tmp_path, found) == []
    unaccounted.write(tmp_path, ())
    assert unaccounted.read(tmp_path) == []


def test_a_record_without_a_version_counts_as_the_oldest(tmp_path: Path) -> None:
    record = recorded(tmp_path, "a", 7)
    text = (record.path / "pod.json").read_text()
    (record.path / "pod.json").write_text(text.replace('"version": 7, ', ""))
    read = record.read_facts()
    assert read is not None and read.version == 2
    assert [pod.uid for pod in unaccounted.find(tmp_path, known=(), lost=[range(2, 5)])] == ["a"]
    assert unaccounted.find(tmp_path, known=(), lost=[range(3, 5)]) == []
