"""Logs of deleted pods: every attempt of a job leaves the logs of its containers, for a time and up to a total size.

A container's run is kept at

    ROOT/NAMESPACE/JOB/JOB-UID/attempt-N/TASK-INDEX/POD-UID/CONTAINER/RUN/

with its log files, `run.json` and `exit.json`, as the kubelet wrote them; `pod.json` in the directory of the pod has
the pod's identity. There is no other index, so that nothing can contradict the files. A run is moved by one rename:
after a crash at any point it is in the record of its pod or here, never in both, and the next kubelet moves the rest.
Logs that can't be moved, because the disk is full, wait with the record of their pod in another directory.

A log that was removed for its age or the size of all logs leaves the file `removed.json` with the reason, for as long
again as logs are kept.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import shutil
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from vcbatch.api import names
from vcbatch.local.files import replace_file
from vcbatch.local.kubelet.records import PodRecord
from vcbatch.local.kubelet.supervisor import reserved

Json = dict[str, Any]
log = logging.getLogger(__name__)

KEPT_RUNS = 10
"""The number of earlier runs of one container, restarted in its pod, that are kept besides the last two."""
_MOST_RUNS = 20_000
_ORIGIN = "origin.json"
_POD = "pod.json"
_REMOVED = "removed.json"
_OWN_FILES = ("run.json", reserved.EXIT)
_SAFE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9._-]{0,251}[a-zA-Z0-9])?")
_JOB_GROUP = "batch.volcano.sh/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long logs of deleted pods are kept, and the maximum of bytes of all of them."""

    age: timedelta = timedelta(days=7)
    size: int = 1024**3


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The job and the place in it whose pod wrote a log. `retry` is the number of restarts of the job before the pod
    was created, `version` the job's `status.version` at that time."""

    namespace: str
    job: str
    job_uid: str
    task: str
    index: int
    retry: int
    version: int
    pod: str
    pod_uid: str
    created: str = ""
    init_containers: Sequence[str] = ()

    @staticmethod
    def of(pod: Json) -> Origin | None:
        """The origin of a job's pod; None for other pods, and for names that can't be those of a directory."""
        metadata = pod["metadata"]
        owner = next((one for one in metadata.get("ownerReferences") or () if one.get("controller")), {})
        if owner.get("kind") != "Job" or not str(owner.get("apiVersion", "")).startswith(_JOB_GROUP):
            return None
        labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
        origin = Origin(
            namespace=metadata.get("namespace", ""),
            job=str(owner.get("name", "")),
            job_uid=str(owner.get("uid", "")),
            task=labels.get(names.TASK_SPEC, ""),
            index=_number(labels.get(names.TASK_INDEX)),
            retry=_number(annotations.get(names.JOB_RETRY_COUNT)),
            version=_number(annotations.get(names.JOB_VERSION)),
            pod=metadata["name"],
            pod_uid=metadata["uid"],
            created=metadata.get("creationTimestamp", ""),
            init_containers=[one["name"] for one in pod["spec"].get("initContainers") or ()],
        )
        parts = (origin.namespace, origin.job, origin.job_uid, origin.task, origin.pod_uid)
        return origin if all(map(is_safe, parts)) else None

    @staticmethod
    def read(path: Path) -> Origin | None:
        """The origin in a file; None where there is none, or it isn't complete."""
        document = _read(path)
        try:
            return Origin(**document) if document is not None else None
        except TypeError:
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRun:
    """A kept run of a container. `removed` is the reason why its log was removed; "" while it exists. Times are None
    where they are unknown, `restarts` counts the earlier runs in the same pod."""

    origin: Origin
    container: str
    run: int
    restarts: int
    started: datetime | None
    finished: datetime | None
    exit_code: int | None
    size: int
    removed: str
    path: Path


def is_safe(part: str) -> bool:
    """Whether a name can be that of a directory: no separator, no leading or trailing dot."""
    return _SAFE.fullmatch(part) is not None


class KeptLogs:
    """The kept logs below one directory. `waiting` is the directory, on the file system of the pods' records, for
    records whose logs can't be moved yet."""

    def __init__(self, root: Path, retention: Retention, *, waiting: Path) -> None:
        self.root = root
        self.retention = retention
        self.dirty = True
        """Whether logs were added since the last `prune`."""
        self._waiting = waiting
        self._changing = threading.Lock()  # `prune` runs in another thread

    def open(self) -> None:
        """Create the directories. Raises `OSError`."""
        for path in (self.root, self._waiting):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)

    # Keeping ----------------------------------------------------------------------------------------------------------

    def note_origin(self, record: PodRecord, pod: Json) -> None:
        """Write the origin of the pod's logs into its record, before its first container starts: the pod object may be
        gone when the logs are moved. Raises `OSError`."""
        origin = Origin.of(pod)
        if origin is not None:
            replace_file(record.path / _ORIGIN, json.dumps(asdict(origin)).encode(), durable=False)

    def keep(self, record: PodRecord) -> None:
        """Move the logs of all runs of a pod that has ended, and remove the rest of its record. Without an origin
        nothing is kept. A record whose logs can't be moved waits for `keep_waiting`."""
        origin = Origin.read(record.path / _ORIGIN)
        if origin is not None:
            try:
                for container in record.containers():
                    for run in record.runs(container):
                        self._move(origin, container, run.number, run.path)
            except OSError as error:
                log.warning("the logs of pod %s/%s were not moved: %s", origin.namespace, origin.pod, error)
                if self._let_wait(record):
                    return
        record.remove()

    def _let_wait(self, record: PodRecord) -> bool:
        """Move the record of a deleted pod to those that wait; returns whether it is there."""
        target = self._waiting / record.path.name
        try:
            if record.path != target:
                record.path.rename(target)
            for path in target.iterdir():
                if path.name not in ("containers", _ORIGIN):
                    _remove(path)
        except OSError as error:
            log.warning("the logs in %s are lost: %s", record.path, error)
            return False
        return True

    def keep_earlier(self, record: PodRecord, container: str, *, at_most: int) -> None:
        """Move the earlier runs of a container that restarts in its pod, so that at most `at_most` are left in the
        record. Runs that can't be moved are left to be removed by `PodRecord.new_run`."""
        origin = Origin.read(record.path / _ORIGIN)
        runs = record.runs(container)
        earlier = runs[: max(0, len(runs) - at_most)]
        if origin is None or not earlier:
            return
        try:
            for run in earlier:
                self._move(origin, container, run.number, run.path)
            kept = sorted(_numbered(self._pod_directory(origin) / container), key=lambda path: int(path.name))
            for path in kept[:-KEPT_RUNS]:
                _remove(path)
        except OSError as error:
            log.warning("a log of pod %s/%s is lost: %s", origin.namespace, origin.pod, error)

    def keep_waiting(self) -> None:
        """Move the logs that couldn't be moved when their pods were deleted."""
        with contextlib.suppress(OSError):
            for path in sorted(self._waiting.iterdir()):
                self.keep(PodRecord(path))

    def _move(self, origin: Origin, container: str, run: int, source: Path) -> None:
        """Move the directory of one run. Raises `OSError`; it is still at `source` then."""
        directory = self._pod_directory(origin)
        target = directory / container / str(run)
        with self._changing:
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not (directory / _POD).exists():
                replace_file(directory / _POD, json.dumps(asdict(origin)).encode(), durable=False)
            source.rename(target)
            self.dirty = True
        for path in target.iterdir():
            if not _is_log(path) and path.name not in _OWN_FILES:
                _remove(path)  # such as its termination message, which is in the status of the pod

    def _pod_directory(self, origin: Origin) -> Path:
        job = self.job_directory(origin.namespace, origin.job) / origin.job_uid
        return job / f"attempt-{origin.retry + 1}" / f"{origin.task}-{origin.index}" / origin.pod_uid

    # Reading ----------------------------------------------------------------------------------------------------------

    def job_directory(self, namespace: str, job: str) -> Path:
        """The directory for all jobs of this name. Raises `ValueError` for a name that no object has."""
        if not is_safe(namespace) or not is_safe(job):
            raise ValueError(f"{namespace}/{job}")
        return self.root / namespace / job

    def runs(self, namespace: str, job: str) -> list[KeptRun]:
        """The kept runs of all jobs of this name, oldest first. Raises `ValueError` for a name that no object has."""
        found = list(_runs_below(self.job_directory(namespace, job).glob("*/attempt-*/*/*")))
        return sorted(found, key=lambda kept: (kept.origin.retry, _order(kept.started), kept.run))

    # Removing ---------------------------------------------------------------------------------------------------------

    def prune(self, now: datetime) -> None:
        """Remove logs that are older than the retention, then the oldest until the others are within its size; and the
        notes of logs that were removed as long ago."""
        self.dirty = False
        age, size = self.retention.age, self.retention.size
        runs = sorted(_runs_below(self.root.glob("*/*/*/attempt-*/*/*")), key=lambda kept: _order(kept.finished))
        left = sum(kept.size for kept in runs)
        excess = len(runs) - _MOST_RUNS
        for number, kept in enumerate(runs):
            old = now - (kept.finished or now)
            if old > 2 * age or number < excess:
                _remove(kept.path)
            elif kept.removed:
                continue
            elif old > age:
                _forget(kept.path, f"it was kept for {_days(age)} after its end")
            elif left > size:
                _forget(kept.path, f"all kept logs together were larger than {size} bytes")
            else:
                continue
            left -= kept.size
        self._remove_empty()

    def _remove_empty(self) -> None:
        """Remove the directories of pods without runs, and the empty ones above them."""
        for directory, _, _ in os.walk(self.root, topdown=False):
            path = Path(directory)
            with self._changing, contextlib.suppress(OSError):
                if path != self.root and {one.name for one in path.iterdir()} <= {_POD}:
                    (path / _POD).unlink(missing_ok=True)
                    path.rmdir()

    def clear(self) -> None:
        """Remove all kept logs."""
        _remove(self.root)
        _remove(self._waiting)


def _runs_below(pods: Iterable[Path]) -> Iterator[KeptRun]:
    for pod in pods:
        origin = Origin.read(pod / _POD)
        if origin is None:
            continue
        with contextlib.suppress(OSError):
            for container in sorted(pod.iterdir()):
                if container.is_dir():
                    for path in _numbered(container):
                        if (kept := _kept(origin, container.name, path)) is not None:
                            yield kept


def _kept(origin: Origin, container: str, path: Path) -> KeptRun | None:
    """The run in a directory; None where it was removed meanwhile."""
    try:
        logs = [file.stat() for file in path.iterdir() if _is_log(file)]
        changed = max((found.st_mtime for found in logs), default=path.stat().st_mtime)
    except OSError:
        return None
    run, removed = _read(path / "run.json") or {}, _read(path / _REMOVED) or {}
    ended: Mapping[str, Any] = {}
    with contextlib.suppress(OSError, ValueError):
        ended = reserved.read(str(path / reserved.EXIT)) or {}
    return KeptRun(
        origin=origin,
        container=container,
        run=int(path.name),
        restarts=run.get("restarts", 0),
        started=_time(run.get("started_at")),
        finished=_time(ended.get("finished_at")) or _time(changed),
        exit_code=ended.get("exit_code"),
        size=sum(found.st_size for found in logs),
        removed=removed.get("why", ""),
        path=path,
    )


def _forget(path: Path, why: str) -> None:
    """Remove the log of a run, and leave the reason; on a full disk, remove the run."""
    try:
        replace_file(path / _REMOVED, json.dumps({"why": why}).encode(), durable=False)
    except OSError:
        _remove(path)
        return
    for file in path.iterdir():
        if _is_log(file):
            _remove(file)


def _numbered(directory: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return [path for path in directory.iterdir() if path.name.isdecimal()]
    return []


def _is_log(path: Path) -> bool:
    return path.name == "log" or path.name.startswith("log.")


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


def _order(moment: datetime | None) -> float:
    return moment.timestamp() if moment is not None else 0.0


def _time(seconds: object) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if isinstance(seconds, (int, float)) else None


def _days(age: timedelta) -> str:
    hours = age.total_seconds() / 3600
    return f"{hours / 24:g} days" if hours >= 48 else f"{hours:g} hours"


def _number(text: object) -> int:
    return int(text) if isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) < 10 else 0


def _read(path: Path) -> Json | None:
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None
