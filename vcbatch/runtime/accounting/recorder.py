"""Writes the accounting records of jobs: open ones when attempts start, closed ones before anything of an attempt is
deleted.

A failing store delays no job: records are queued, within a bound, and written when the store works again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final, Protocol, TypeVar

from vcbatch.api import names
from vcbatch.api.loose import part
from vcbatch.api.pod import Pod
from vcbatch.api.resources import JOBS
from vcbatch.core.accounting import (
    Attempt,
    PodRun,
    attempt_of,
    closed_by,
    closed_by_deletion,
    closed_unseen,
    merged_run,
    run_of,
    started_or_ended,
)
from vcbatch.hosting.backoff import Backoff
from vcbatch.hosting.supervise import Part, pause
from vcbatch.interfaces.accounting import AccountingError, AccountingStore
from vcbatch.interfaces.api import Json
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.caches.cache import Cache, Change, identity
from vcbatch.runtime.metrics.meter import Meter, NoMeter

T = TypeVar("T")
log = logging.getLogger(__name__)

KEPT_DAYS: Final = 400
"""The default age at which records are deleted."""
MOST_QUEUED: Final = 100_000
"""The maximum of records that wait for a store that fails; then the oldest are dropped."""
_SEEN_SECONDS: Final = 15.0
"""How often the time of the last write is noted. An end that no controllers saw is recorded at this time."""
_GATHER_SECONDS: Final = 0.5
_WAIT_SECONDS: Final = 2.0
"""How long the end of an attempt waits for its record to be written."""
_BATCH: Final = 2_000
_PRUNE_SECONDS: Final = 3600.0
_DAY: Final = 86_400.0
_RETRY: Final = Backoff(initial=1.0, limit=30.0)

AttemptKey = tuple[str, int]


class Worker(Protocol):
    """Runs calls of the store one after the other."""

    async def run(self, work: Callable[[], T]) -> T: ...


class OneThread:
    """Runs calls in a thread of their own, so that no reconcile waits for the disk or the network."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="accounting")

    async def run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)


class Accounting:
    """The records of the jobs in a cache. `ending` is called before a decision is applied; everything else follows from
    the changes of the caches. `days`: the age at which records are deleted."""

    def __init__(
        self,
        store: AccountingStore,
        *,
        jobs: Cache[Json],
        pods: Cache[Pod],
        clock: Clock,
        random: Random,
        meter: Meter | None = None,
        worker: Worker | None = None,
        days: int = KEPT_DAYS,
        most_queued: int = MOST_QUEUED,
    ) -> None:
        self._store = store
        self._jobs = jobs
        self._pods = pods
        self._clock = clock
        self._random = random
        self._meter = meter or NoMeter()
        self._worker = worker or OneThread()
        self._days = days
        self._most_queued = most_queued
        self._open: dict[str, int] = {}
        """Job UID -> the attempt whose open record is queued or written."""
        self._ended: dict[str, int] = {}
        """Job UID -> the attempt whose closed record is; its pods don't count any more."""
        self._attempts: dict[AttemptKey, Attempt] = {}
        self._runs: dict[str, PodRun] = {}
        """Pod UID -> the record that is to be written."""
        self._woken = asyncio.Event()
        self._urgent = asyncio.Event()
        self._waiting: set[asyncio.Future[None]] = set()
        self._failing = ""
        self._pruned: float | None = None
        jobs.listen(self._on_job)
        pods.listen(self._on_pod)

    def part(self) -> Part:
        """The background task that writes."""
        return Part(name="writing accounting records", run=self.run)

    @property
    def error(self) -> str:
        """Why the store can't be written at present; "" where it can."""
        return self._failing

    # Observations

    def _on_job(self, change: Change[Json]) -> None:
        if change.keeps(_current):
            return
        job = change.current
        uid = identity(job).uid
        if change.new is None or part(job, "metadata").get("deletionTimestamp"):
            closed = closed_by_deletion(job, now=self._clock.now())
            if closed is not None and self._ended.get(uid, -1) < closed.attempt:
                self._ended[uid] = closed.attempt
                self._put(closed)
            if change.new is None:
                self._open.pop(uid, None)
                self._ended.pop(uid, None)
            return
        opened = attempt_of(job)
        if opened is None:
            return
        if self._ended.get(uid) == opened.attempt:
            del self._ended[uid]  # the decision that was to end the attempt wasn't applied
        if self._open.get(uid) != opened.attempt:
            self._open[uid] = opened.attempt
            self._put(opened)

    def _read_pods(self) -> None:
        """Queue the records of all pods that have started: some may have been listed before their jobs."""
        for pod in self._pods:
            for uid in _job_of(pod):
                run = self._run_of(pod, uid)
                if run is not None:
                    self._put_run(run)

    def _on_pod(self, change: Change[Pod]) -> None:
        if change.keeps(started_or_ended):
            return
        pod = change.current
        for uid in _job_of(pod):
            run = self._run_of(pod, uid, deleted=change.new is None)
            if run is not None:
                self._put_run(run)

    def _run_of(self, pod: Pod, uid: str, *, deleted: bool = False) -> PodRun | None:
        """The record of a pod of an attempt that hasn't ended."""
        job = self._jobs.get(uid)
        attempt = _number((pod.metadata.annotations or {}).get(names.JOB_VERSION))
        if job is None or attempt is None or attempt < _version(job) or attempt <= self._ended.get(uid, -1):
            return None
        return run_of(pod, uid, deleted_at=self._clock.now().timestamp() if deleted else None)

    async def ending(self, job: Json, status: Json, pods: Sequence[Pod]) -> None:
        """Called before a decision with that status is applied: if it ends the attempt, the record of the attempt is
        written first. Returns after some seconds even if that fails; it is written later then."""
        closed = closed_by(job, status, now=self._clock.now())
        if closed is None:
            return
        for pod in pods:
            run = run_of(pod, closed.job_uid)
            if run is not None and run.attempt == closed.attempt:
                self._put_run(run)
        self._ended[closed.job_uid] = closed.attempt
        self._put(closed)
        if self._failing:
            return
        written = asyncio.get_running_loop().create_future()
        self._waiting.add(written)
        self._urgent.set()
        self._woken.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(_WAIT_SECONDS):
                await written
        self._waiting.discard(written)

    def _put(self, attempt: Attempt) -> None:
        self._attempts[attempt.job_uid, attempt.attempt] = attempt
        self._bound()
        self._woken.set()

    def _put_run(self, run: PodRun) -> None:
        self._runs[run.uid] = merged_run(self._runs.get(run.uid), run)
        self._bound()
        self._woken.set()

    def _bound(self) -> None:
        queued = len(self._attempts) + len(self._runs)
        if queued <= self._most_queued:
            return
        oldest: dict[AttemptKey, Attempt] | dict[str, PodRun] = self._runs or self._attempts
        del oldest[next(iter(oldest))]  # type: ignore[arg-type]
        self._meter.count("accounting_records_dropped")

    # Writing

    async def run(self) -> None:
        """Write until cancelled, and once more then. Called when the caches are complete."""
        self._read_pods()
        await self._until_done(self._recover)
        try:
            while True:
                await self._until_done(self._write)
                if self._attempts or self._runs:
                    continue
                self._woken.clear()
                await pause(self._clock, _SEEN_SECONDS, woken=self._woken)
                if not self._urgent.is_set():
                    await pause(self._clock, _GATHER_SECONDS, woken=self._urgent)
                await self._until_done(self._prune)
        finally:
            if not self._failing and (self._attempts or self._runs):
                with suppress(AccountingError, TimeoutError):
                    async with asyncio.timeout(_WAIT_SECONDS):
                        await self._write()

    async def _until_done(self, work: Callable[[], Awaitable[None]]) -> None:
        """Repeat the work until the store works."""
        failures = 0
        while True:
            try:
                await work()
            except AccountingError as error:
                failures += 1
                if str(error) != self._failing:
                    log.warning("accounting records can't be stored, and are kept in memory: %s", error)
                self._failing = str(error)
                self._meter.gauge("accounting_store_failing", 1)
                self._release()
                await self._clock.sleep(_RETRY.delay(failures, self._random))
            else:
                if self._failing:
                    log.info("accounting records are stored again")
                self._failing = ""
                self._meter.gauge("accounting_store_failing", 0)
                return

    async def _recover(self) -> None:
        """Close the records of attempts and pods that ended while no controllers ran. Nothing is written before: the
        time of the last write is that of the last controllers."""
        store = self._store
        last, attempts, runs = await self._worker.run(
            lambda: (store.last_seen(), store.open_attempts(), store.open_runs())
        )
        if last is None:
            return
        lost = [
            closed_unseen(stored, self._jobs.get(stored.job_uid), last_seen=last)
            for stored in attempts
            if not self._is_current(stored)
        ]
        gone = [_ended_at(run, last) for run in runs if self._pods.get(run.uid) is None]
        if lost or gone:
            await self._worker.run(lambda: store.close_unseen(lost, gone))
        for attempt in lost:
            log.warning(
                "an attempt ended while no controllers ran",
                extra={"job": f"{attempt.namespace}/{attempt.job}", "attempt": attempt.attempt, "state": attempt.state},
            )

    def _is_current(self, stored: Attempt) -> bool:
        job = self._jobs.get(stored.job_uid)
        if job is None:
            return (stored.job_uid, stored.attempt) in self._attempts  # its deletion is about to be written
        now = attempt_of(job)
        return (now is not None and now.attempt == stored.attempt) or self._ended.get(stored.job_uid) == stored.attempt

    async def _write(self) -> None:
        """Write what is queued, or a part of it, and the time. What isn't written stays in the queue."""
        store, now = self._store, self._clock.now().timestamp()
        self._urgent.clear()
        runs = dict(list(self._runs.items())[:_BATCH])
        # An attempt is closed with its pods, so these are written first.
        attempts = dict(list(self._attempts.items())[:_BATCH]) if len(runs) == len(self._runs) else {}
        waiting = set(self._waiting) if len(attempts) == len(self._attempts) else set()
        await self._worker.run(lambda: store.write(list(attempts.values()), list(runs.values()), now=now))
        for key, attempt in attempts.items():
            if self._attempts.get(key) is attempt:
                del self._attempts[key]
        for uid, run in runs.items():
            if self._runs.get(uid) is run:
                del self._runs[uid]
        self._meter.count("accounting_records", len(attempts))
        self._meter.gauge("accounting_queue_depth", len(self._attempts) + len(self._runs))
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def _prune(self) -> None:
        now = self._clock.now().timestamp()
        if self._pruned is not None and now - self._pruned < _PRUNE_SECONDS:
            return
        before = now - self._days * _DAY
        deleted = await self._worker.run(lambda: self._store.prune(before=before, now=now))
        self._pruned = now
        if deleted:
            log.info("deleted old accounting records", extra={"records": deleted, "days": self._days})

    def _release(self) -> None:
        self._meter.gauge("accounting_queue_depth", len(self._attempts) + len(self._runs))
        for future in self._waiting:
            if not future.done():
                future.set_result(None)


def _ended_at(run: PodRun, last: float) -> PodRun:
    return PodRun(
        uid=run.uid,
        job_uid=run.job_uid,
        attempt=run.attempt,
        pod=run.pod,
        ended=max(last, run.started or last),
    )


def _current(job: Json) -> object:
    """The fields of a job that decide which attempt is current."""
    metadata, status = part(job, "metadata"), part(job, "status")
    return metadata.get("deletionTimestamp"), status.get("version"), part(status, "state").get("phase")


def _version(job: Json) -> int:
    version = part(job, "status").get("version")
    return version if isinstance(version, int) else 0


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else None


def _job_of(pod: Pod) -> Iterable[str]:
    owner = pod.metadata.controller_owner()
    if owner is not None and owner.kind == JOBS.kind and owner.api_version == JOBS.api_version:
        yield owner.uid
