"""Logs of deleted pods: moved once whatever happens between, and removed by age and size with the reason."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from vcbatch.local.kubelet import kept_logs
from vcbatch.local.kubelet.kept_logs import KeptLogs, Origin, Retention
from vcbatch.local.kubelet.records import PodRecord
from vcbatch.local.kubelet.supervisor import reserved

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def pod(uid: str, *, retry: int = 0, index: int = 0, owner: dict[str, str] | None = None) -> dict[str, Any]:
    reference = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train", "uid": "j1"}
    return {
        "metadata": {
            "name": f"train-worker-{index}",
            "namespace": "default",
            "uid": uid,
            "labels": {"volcano.sh/task-spec": "worker", "volcano.sh/task-index": str(index)},
            "annotations": {"volcano.sh/job-retry-count": str(retry), "volcano.sh/job-version": str(2 * retry)},
            "ownerReferences": [{**reference, "controller": True, **(owner or {})}],
        },
        "spec": {"containers": [{"name": "main"}]},
    }


class Disk:
    """A kubelet's root with kept logs."""

    def __init__(self, path: Path, retention: Retention | None = None) -> None:
        self.root = path / "kubelet"
        self.kept = KeptLogs(path / "logs", retention or Retention(), waiting=self.root / "ended")
        self.kept.open()

    def ran(self, uid: str, *texts: str, ended: datetime = NOW, **options: Any) -> PodRecord:
        """The record of a pod whose container `main` ran once for each text."""
        record = PodRecord(self.root / "pods" / uid)
        record.create()
        self.kept.note_origin(record, pod(uid, **options))
        for number, text in enumerate(texts):
            self.kept.keep_earlier(record, "main", at_most=1)
            run = record.new_run("main", started_at=ended, restarts=number, crashes=number)
            (run.path / "log").write_text(text)
            (run.path / "environment").write_text("SECRET=1")
            reserved.reserve(str(run.path / reserved.EXIT), {"exit_code": 3, "finished_at": ended.timestamp()})
        return record

    def texts(self) -> list[str]:
        return [(run.path / "log").read_text() for run in self.kept.runs("default", "train") if not run.removed]

    def removed(self) -> list[str]:
        return [run.removed for run in self.kept.runs("default", "train") if run.removed]


def test_the_logs_of_a_deleted_pod_and_nothing_else_of_it(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    record = disk.ran("u1", "first", "second", "third", retry=1)
    disk.kept.keep(record)
    assert not record.path.exists()
    assert disk.texts() == ["first", "second", "third"]
    run = disk.kept.runs("default", "train")[-1]
    assert (run.origin.retry, run.origin.version, run.restarts, run.exit_code) == (1, 2, 2, 3)
    assert run.path == tmp_path / "logs/default/train/j1/attempt-2/worker-0/u1/main/2"
    assert not list(tmp_path.rglob("environment"))
    assert tmp_path.joinpath("logs").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("owner", [{"kind": "Gang"}, {"apiVersion": "batch/v1"}, {"name": "../up"}, {"uid": ".."}])
def test_a_pod_that_is_not_of_a_job_leaves_nothing(tmp_path: Path, owner: dict[str, str]) -> None:
    disk = Disk(tmp_path)
    record = PodRecord(disk.root / "pods" / "u1")
    record.create()
    disk.kept.note_origin(record, pod("u1", owner=owner))
    record.new_run("main", started_at=NOW, restarts=0, crashes=0)
    disk.kept.keep(record)
    assert not record.path.exists()
    assert not list(disk.kept.root.iterdir())


class KilledError(BaseException):
    """The server was killed."""


@pytest.mark.parametrize("calls", range(60))
def test_a_kill_between_any_two_changes_of_the_disk_loses_and_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    disk = Disk(tmp_path)
    record = disk.ran("u1", "first", "second", "third")
    left = calls

    def killing(real: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            if left == 0:
                raise KilledError
            left -= 1
            return real(*arguments, **options)

        return call

    for name in ("mkdir", "rename", "replace", "unlink", "rmdir", "open"):
        monkeypatch.setattr(os, name, killing(getattr(os, name)))
    try:
        disk.kept.keep(record)
    except KilledError:
        pass
    monkeypatch.undo()
    next_server = Disk(tmp_path)
    next_server.kept.keep(PodRecord(record.path))
    assert next_server.texts() == ["first", "second", "third"]
    assert not record.path.exists()


def test_logs_that_cannot_be_moved_wait_until_they_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(tmp_path)
    record = disk.ran("u1", "said")
    (record.path / "volumes").mkdir()

    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kept_logs, "replace_file", refuse)
    disk.kept.keep(record)
    assert not record.path.exists()
    disk.kept.keep_waiting()
    assert not disk.texts()
    assert sorted(path.name for path in (disk.root / "ended" / "u1").iterdir()) == ["containers", "origin.json"]
    monkeypatch.undo()
    disk.kept.keep_waiting()
    assert disk.texts() == ["said"]
    assert not list((disk.root / "ended").iterdir())


def test_logs_are_removed_after_their_time_and_later_the_reason_is(tmp_path: Path) -> None:
    disk = Disk(tmp_path, Retention(age=timedelta(days=7)))
    disk.kept.keep(disk.ran("u1", "old", ended=NOW))
    disk.kept.keep(disk.ran("u2", "new", ended=NOW + timedelta(days=6), retry=1))
    disk.kept.prune(NOW + timedelta(days=7))
    assert disk.texts() == ["old", "new"]
    disk.kept.prune(NOW + timedelta(days=7, seconds=1))
    assert disk.texts() == ["new"]
    assert disk.removed() == ["it was kept for 7 days after its end"]
    disk.kept.prune(NOW + timedelta(days=14, seconds=1))
    assert not disk.texts()
    assert len(disk.removed()) == 1  # of the newer one
    disk.kept.prune(NOW + timedelta(days=30))
    assert not disk.kept.runs("default", "train")
    assert not list(disk.kept.root.iterdir())


def test_the_oldest_logs_go_where_all_together_are_too_large(tmp_path: Path) -> None:
    disk = Disk(tmp_path, Retention(size=250))
    for number in range(4):
        text = str(number) * 100
        disk.kept.keep(disk.ran(f"u{number}", text, index=number, ended=NOW + timedelta(minutes=number)))
    disk.kept.prune(NOW + timedelta(hours=1))
    assert disk.texts() == ["2" * 100, "3" * 100]
    assert set(disk.removed()) == {"all kept logs together were larger than 250 bytes"}


def test_a_container_that_restarts_for_ever_keeps_the_last_runs(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.kept.keep(disk.ran("u1", *map(str, range(40))))
    assert disk.texts() == [str(number) for number in range(40 - 2 - kept_logs.KEPT_RUNS, 40)]


def test_an_unreadable_record_of_a_pod_hides_no_other(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    for uid in ("u1", "u2"):
        disk.kept.keep(disk.ran(uid, uid))
    broken = next(disk.kept.root.rglob("u1"))
    (broken / "pod.json").write_text(json.dumps({"namespace": "default"}))
    assert disk.texts() == ["u2"]
    disk.kept.prune(NOW)
    assert disk.texts() == ["u2"]


def test_names_are_no_paths(tmp_path: Path) -> None:
    for name in ("..", ".", "", "a/b", "/etc"):
        with pytest.raises(ValueError, match="default"):
            Disk(tmp_path).kept.runs("default", name)
    assert Origin.read(tmp_path / "nothing") is None
