"""Records cycles on disk for `vcbatch replay`: a ring of files, each of which begins with the objects and has the
cycles after them.

A diagnosis aid: it costs a copy of all objects per file, and a line for everything that is passed to the scheduler.
"""

from __future__ import annotations

import gzip
import logging
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import msgspec

from vcbatch.api.resources import Resource
from vcbatch.scheduler import Policy, Scheduler
from vcbatch.scheduler.model.reads import MEASURED, READS
from vcbatch.scheduler.model.result import CycleResult
from vcbatch.scheduler.policy.text import effective
from vcbatch.scheduler.simulation.recording import (
    Settings,
    cycle_line,
    event_line,
    first_line,
    object_line,
    other_line,
)

log = logging.getLogger(__name__)

PREFIX, SUFFIX = "cycles-", ".jsonl.gz"
_NAME = re.compile(r"cycles-\d{8}T\d{6}-\d{8,}\.jsonl\.gz")
"""Matches the files of the ring: no others are removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RingSize:
    """The limits: the number of files, and the cycles or bytes (before compression) after which each is ended."""

    files: int = 8
    cycles: int = 200
    size: int = 64 << 20


class RecordedScheduler(Scheduler):
    """A scheduler that records its inputs and results."""

    def __init__(self, policy: Policy | None, recorder: CycleRecorder) -> None:
        settings = recorder.settings
        super().__init__(
            policy,
            scheduler_names=settings.scheduler_names,
            default_queue=settings.default_queue,
            share=settings.share,
            queue_gates=settings.queue_gates,
        )
        self.recorder = recorder
        self._objects: dict[tuple[type[msgspec.Struct], str], msgspec.Struct] = {}
        recorder.objects = self._known

    def _known(self) -> Iterable[msgspec.Struct]:
        return [obj for read in (*READS, *MEASURED) for (kind, _), obj in self._objects.items() if kind is read.struct]

    def apply(self, resource: Resource, event: str, obj: msgspec.Struct) -> None:
        super().apply(resource, event, obj)
        meta = cast("Any", obj).metadata
        key = (type(obj), str(meta.uid or meta.key))
        if event == "DELETED":
            self._objects.pop(key, None)
        else:
            self._objects[key] = obj
        self.recorder.event(event, obj)

    def bind_failed(self, uid: str, error: str) -> None:
        super().bind_failed(uid, error)
        self.recorder.other("bindFailed", uid=uid, error=error)

    def eviction_failed(self, uid: str, error: str) -> None:
        super().eviction_failed(uid, error)
        self.recorder.other("evictionFailed", uid=uid, error=error)

    def gate_removal_failed(self, uid: str) -> None:
        super().gate_removal_failed(uid)
        self.recorder.other("gateRemovalFailed", uid=uid)

    def podgroup_write_failed(self, uid: str) -> None:
        super().podgroup_write_failed(uid)
        self.recorder.other("podGroupFailed", uid=uid)

    def shard_write_failed(self, uid: str) -> None:
        super().shard_write_failed(uid)
        self.recorder.other("shardFailed", uid=uid)

    def set_policy(self, policy: Policy) -> None:
        super().set_policy(policy)
        self.recorder.policy(effective(policy, metrics=False))

    def cycle(self, now: datetime) -> CycleResult:
        self.recorder.before(self, now)
        result = super().cycle(now)
        self.recorder.after(result, now)
        return result


class CycleRecorder:
    """Records everything that is passed to the scheduler. A disk that can't be written ends the recording, nothing
    else."""

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        *,
        ring: RingSize | None = None,
    ) -> None:
        """Raises `ValueError` for settings that can't be recorded."""
        settings.line()
        self._folder = folder
        self.settings = settings
        self.objects: Callable[[], Iterable[msgspec.Struct]] = tuple
        """Returns all objects that the scheduler knows, in the order in which a recording lists them."""
        self._ring = ring or RingSize()
        self._stream: gzip.GzipFile | None = None
        self._cycles = 0
        self._size = 0
        self._works = True

    def event(self, event: str, obj: msgspec.Struct) -> None:
        """Record a change of an object."""
        if self._stream is not None:
            self._write(event_line(event, obj))

    def other(self, kind: str, **arguments: str) -> None:
        """Record another input; see `recording`."""
        if self._stream is not None:
            self._write(other_line(kind, **arguments))

    def policy(self, text: str) -> None:
        """Record that another scheduler configuration applies from now on."""
        self.settings = replace(self.settings, policy=text)
        if self._stream is not None:
            self._stop()  # the next file begins with it

    def before(self, scheduler: Scheduler, at: datetime) -> None:
        """Called before a cycle: starts a new file where needed."""
        full = self._cycles >= self._ring.cycles or self._size >= self._ring.size
        if self._works and (self._stream is None or full):
            self._stop()
            self._start(scheduler, at)

    def after(self, result: CycleResult, at: datetime) -> None:
        """Called after a cycle: records its result."""
        if self._stream is None:
            return
        self._cycles += 1
        self._write(cycle_line(at, result))
        with self._guarded():
            if self._stream is not None:
                self._stream.flush()

    def close(self) -> None:
        """End the file."""
        self._stop()

    def _start(self, scheduler: Scheduler, at: datetime) -> None:
        self._cycles = self._size = 0
        name = f"{PREFIX}{at:%Y%m%dT%H%M%S}-{scheduler.cycles:08}{SUFFIX}"
        settings = replace(self.settings, taken=at, cycles=scheduler.cycles, assumed=scheduler.assumed())
        with self._guarded():
            self._folder.mkdir(parents=True, exist_ok=True)
            self._stream = gzip.GzipFile(self._folder / name, "wb", compresslevel=1)
            self._write(first_line(settings))
            for obj in self.objects():
                self._write(object_line(obj))
            self._size = 0  # bytes after the objects
            kept = sorted(path for path in self._folder.glob(f"{PREFIX}*{SUFFIX}") if _NAME.fullmatch(path.name))
            for old in kept[: -self._ring.files]:
                old.unlink()

    def _write(self, line: bytes) -> None:
        with self._guarded():
            if self._stream is not None:
                self._stream.write(line)
                self._size += len(line)

    def _stop(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            with suppress(OSError):
                stream.close()

    def _guarded(self) -> _Guard:
        return _Guard(self._failed)

    def _failed(self, error: OSError) -> None:
        log.error("recording of cycles stopped: %s can't be written: %s", self._folder, error.strerror or error)
        self._works = False
        self._stop()


class _Guard:
    """Passes an `OSError` to `failed`, and suppresses it."""

    def __init__(self, failed: Callable[[OSError], None]) -> None:
        self._on = failed

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, OSError):
            self._on(error)
            return True
        return False
