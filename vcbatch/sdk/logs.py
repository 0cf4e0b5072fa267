"""The log of a whole gang as one stream of lines.

Every container of every pod has a reader of its own (`log_reader`), and all of them put lines into one queue of bounded
size: a slow consumer slows down the readers, and with them the servers, so that memory stays constant. The lines of a
container are in order; between containers the order is that of arrival.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any

import msgspec

from vcbatch.api import names
from vcbatch.api.meta import ObjectMeta, Wire
from vcbatch.api.phases import JobPhase
from vcbatch.api.resources import JOBS, PODS
from vcbatch.interfaces.api import ApiError
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.client.kept_logs import KeptLogs, KeptRun
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.random import SystemRandom
from vcbatch.sdk.log_reader import ContainerReader, LogApi, LogLine
from vcbatch.sdk.past_logs import LogRequest, PastLogs, simulated
from vcbatch.sdk.pod_view import PodView
from vcbatch.sdk.watching import Change, changes

__all__ = ["MAX_STREAMS", "LogApi", "LogLine", "follow_job"]

MAX_STREAMS = 500
"""The maximum of containers that are followed at the same time. In a larger gang, the others wait until one of them
ends."""
_KEPT_SECONDS = 0.2
"""Seconds for which the list of kept logs is used again."""
_HELD_BYTES = 8 * 1024 * 1024
_LINE_COST = 300
"""The approximate memory in bytes that a line uses besides its text."""


async def follow_job(
    api: LogApi,
    *,
    namespace: str,
    name: str,
    follow: bool = True,
    tail: int | None = None,
    since: datetime | None = None,
    containers: Collection[str] | None = None,
    tasks: Collection[str] | None = None,
    indices: Collection[int] | None = None,
    attempt: int | None = None,
    previous: bool = False,
    clock: Clock | None = None,
    random: Random | None = None,
    on_trouble: Callable[[ApiError], None] | None = None,
    on_silence: Callable[[str], None] | None = None,
    on_unfinished: Callable[[LogLine], None] | None = None,
) -> AsyncGenerator[LogLine, None]:
    """Yield the log lines of all pods of a job.

    With `follow`, from the start of its pods until the job has finished (Completed, Failed, Terminated) or is deleted:
    over restarts of containers and pods, suspension, and broken connections, without losing or repeating a line.
    Otherwise the present contents of the logs, pod by pod: of the latest attempt that has any, of `attempt` (from 1),
    or of the one before the latest (`previous`); also those of deleted pods and jobs that the server keeps. `tail`
    (lines of each container) and `since` limit the earlier lines; `containers` and `tasks` select by name, by default
    every container except the init containers of every task, and `indices` select among a task's pods.

    An `HttpApi` needs `ClientLimits.streams` for the gang's containers, up to `MAX_STREAMS`. Raises `ApiError`: 404 for
    a job that doesn't exist, 403 where its logs may not be read, code 0 or 5xx for a server that stays unreachable;
    until then `on_trouble` is called. `on_silence` gets a sentence with the reason for missing lines: once where pods
    are on simulated nodes, for removed logs, and with `follow` for each pod that was deleted before its log could be
    read. Without `follow`, raises `NoSuchAttemptError`.
    `on_unfinished` gets the present text of a line that is redrawn by carriage returns, such as a progress bar. Close
    it (`contextlib.aclosing`) where it isn't read to its end.
    """
    if not follow:
        request = LogRequest(
            namespace=namespace, name=name, tail=tail, since=since, containers=containers, tasks=tasks, indices=indices,
            attempt=attempt, previous=previous,
        )  # fmt: skip
        past = await PastLogs.open(api, request)
        async with aclosing(past.lines(on_silence)) as lines:
            async for line in lines:
                yield line
        return
    clock, random = clock or SystemClock(), random or SystemRandom()
    job = await api.get(JOBS, name, namespace=namespace, model=_JobView)
    gang = _Gang(
        api,
        job,
        tail=tail,
        since=since,
        containers=containers,
        tasks=tasks,
        indices=indices,
        clock=clock,
        random=random,
        on_trouble=on_trouble,
        on_silence=on_silence,
        on_unfinished=on_unfinished,
    )
    lines = gang.follow()
    async with aclosing(lines):
        async for line in lines:
            yield line


class _JobState(Wire):
    phase: str = ""


class _JobStatus(Wire):
    state: _JobState = msgspec.field(default_factory=_JobState)


class _JobView(Wire):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    status: _JobStatus = msgspec.field(default_factory=_JobStatus)

    @property
    def finished(self) -> bool:
        phase = self.status.state.phase
        return any(phase == known and known.finished for known in JobPhase)


class _Funnel:
    """A queue of lines from many tasks to one reader, at most `_HELD_BYTES` of them at a time (and one more of each
    task)."""

    def __init__(self) -> None:
        self._lines: deque[LogLine] = deque()
        self._held = 0
        self._room = asyncio.Event()
        self._news = asyncio.Event()
        self._room.set()

    async def put(self, line: LogLine) -> None:
        while self._held >= _HELD_BYTES:
            await self._room.wait()
        self._lines.append(line)
        self._held += len(line.text) + _LINE_COST
        if self._held >= _HELD_BYTES:
            self._room.clear()
        self._news.set()

    def wake(self) -> None:
        """Wake up the reader even if there is no line."""
        self._news.set()

    def take(self) -> LogLine | None:
        if not self._lines:
            return None
        line = self._lines.popleft()
        self._held -= len(line.text) + _LINE_COST
        if self._held < _HELD_BYTES // 2:
            self._room.set()
        return line

    async def news(self) -> None:
        await self._news.wait()
        self._news.clear()


class _Place:
    """The state of one pod name: the successive pods that had it, and the readers of the latest one."""

    def __init__(self) -> None:
        self.uid = ""
        self.readers: list[ContainerReader] = []
        self.work: asyncio.Task[None] | None = None


class _Gang:
    """Runs a reader for each container of a job's pods."""

    def __init__(
        self,
        api: LogApi,
        job: _JobView,
        *,
        tail: int | None,
        since: datetime | None,
        containers: Collection[str] | None,
        tasks: Collection[str] | None,
        indices: Collection[int] | None,
        clock: Clock,
        random: Random,
        on_trouble: Callable[[ApiError], None] | None,
        on_silence: Callable[[str], None] | None,
        on_unfinished: Callable[[LogLine], None] | None,
    ) -> None:
        self._api = api
        self._job = job
        self._on_trouble = on_trouble
        self._on_silence = on_silence
        self._on_unfinished = on_unfinished
        self._pretends = False
        self._kept_logs: KeptLogs | None = None
        self._kept_at = 0.0
        self._tail = tail
        self._since = since
        self._containers = containers
        self._tasks = tasks
        self._indices = indices
        self._clock = clock
        self._random = random
        self._funnel = _Funnel()
        self._streams = asyncio.Semaphore(MAX_STREAMS)
        self._places: dict[str, _Place] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None
        self._listed = asyncio.Event()
        self._finished = False
        self._selector = f"{names.JOB_NAME}={job.metadata.name}"

    async def follow(self) -> AsyncGenerator[LogLine, None]:
        self._start(self._follow_pods())
        self._start(self._follow_job())
        try:
            async for line in self._until(self._all_reported):
                yield line
        finally:
            running = list(self._running)
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def _all_reported(self) -> bool:
        return self._finished and all(place.work is None or place.work.done() for place in self._places.values())

    async def _until(self, done: Callable[[], bool]) -> AsyncGenerator[LogLine, None]:
        """Yield the lines of the queue until `done()` is true and none is left. Raises the error of a failed task."""
        while True:
            last = done()
            while (line := self._funnel.take()) is not None:
                yield line
            if self._failure is not None:
                raise self._failure
            if last:
                return
            await self._funnel.news()

    # The job and its pods

    async def _list(self) -> Sequence[PodView]:
        metadata = self._job.metadata
        listing = await self._api.list(PODS, namespace=metadata.namespace, label_selector=self._selector, model=PodView)
        return [pod for pod in listing.items if self._ours(pod)]

    async def _follow_pods(self) -> None:
        pods = changes(
            self._api,
            PODS,
            namespace=self._job.metadata.namespace,
            label_selector=self._selector,
            model=PodView,
            clock=self._clock,
            random=self._random,
            on_trouble=self._on_trouble,
        )
        async with aclosing(pods) as batches:
            async for batch in batches:
                for change in batch:
                    self._observe(change)
                self._listed.set()

    async def _follow_job(self) -> None:
        name, uid = self._job.metadata.name, self._job.metadata.uid
        jobs = changes(
            self._api,
            JOBS,
            namespace=self._job.metadata.namespace,
            field_selector=f"metadata.name={name}",
            model=_JobView,
            clock=self._clock,
            random=self._random,
            on_trouble=self._on_trouble,
        )
        first = True
        async with aclosing(jobs) as batches:
            async for batch in batches:
                ours = [change for change in batch if change.object.metadata.uid == uid]
                if any(change.deleted or change.object.finished for change in ours) or (first and not ours):
                    break
                first = False
        await self._finish()

    async def _finish(self) -> None:
        """The job creates no more pods: list them once more, and let the readers finish."""
        await self._listed.wait()
        for pod in await self._list():
            self._observe(Change(object=pod))
        self._finished = True
        for place in self._places.values():
            for reader in place.readers:
                reader.finish()
        self._funnel.wake()

    def _ours(self, pod: PodView) -> bool:
        owner = pod.metadata.controller_owner()
        if owner is None or owner.uid != self._job.metadata.uid:
            return False
        if self._indices is not None and pod.index not in self._indices:
            return False
        return self._tasks is None or pod.task in self._tasks

    def _observe(self, change: Change[PodView]) -> None:
        pod = change.object
        if not self._ours(pod):
            return
        place = self._places.setdefault(pod.metadata.name, _Place())
        if change.deleted:
            if place.uid == pod.metadata.uid:
                for reader in place.readers:
                    reader.observe(pod)
                    reader.gone()
        elif place.uid == pod.metadata.uid:
            for reader in place.readers:
                reader.observe(pod)
        elif not self._finished:
            self._take_place(place, pod)

    def _take_place(self, place: _Place, pod: PodView) -> None:
        """Add a new pod: it is read after the earlier pods of its name."""
        for reader in place.readers:
            reader.gone()
        place.uid = pod.metadata.uid
        place.readers = [self._reader(pod, container) for container in self._chosen(pod)]
        place.work = self._start(_in_turn(place.work, place.readers))

    def _chosen(self, pod: PodView) -> list[str]:
        if self._containers is None:
            return pod.containers()
        return [container for container in pod.all_containers() if container in self._containers]

    def _reader(self, pod: PodView, container: str) -> ContainerReader:
        return ContainerReader(
            self._api,
            pod,
            container,
            emit=self._funnel.put,
            streams=self._streams,
            clock=self._clock,
            random=self._random,
            tail=self._tail,
            since=self._since,
            on_pretence=self._pretended,
            on_loss=self._lost,
            kept=self._kept,
            on_unfinished=self._on_unfinished,
        )

    def _pretended(self) -> None:
        if not self._pretends:
            self._pretends = True
            self._say(simulated(self._job.metadata.name))

    async def _kept(self, pod: PodView, container: str) -> Sequence[KeptRun] | None:
        """The kept runs of a container; None where the server keeps none. One list serves the pods of a gang that are
        deleted together."""
        now = self._clock.monotonic()
        if self._kept_logs is None or (self._kept_logs.enabled and now - self._kept_at >= _KEPT_SECONDS):
            metadata = self._job.metadata
            try:
                self._kept_logs = await self._api.kept_logs(metadata.name, namespace=metadata.namespace)
            except ApiError:
                return None
            self._kept_at = now
        if not self._kept_logs.enabled:
            return None
        uid = pod.metadata.uid
        return [run for run in self._kept_logs.runs if (run.pod_uid, run.container) == (uid, container)]

    def _lost(self, pod: PodView) -> None:
        attempt = f" in restart {pod.attempt}" if pod.attempt else ""
        where = f"{pod.task}/{pod.index}"
        self._say(f"what {where} printed{attempt} is lost: its pod was deleted before its log could be read")

    def _say(self, sentence: str) -> None:
        if self._on_silence is not None:
            self._on_silence(sentence)

    # Tasks

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = self._failure or error
        self._funnel.wake()


async def _in_turn(before: asyncio.Task[None] | None, readers: Sequence[ContainerReader]) -> None:
    """Read a pod after the earlier pod of its name was read."""
    if before is not None:
        await asyncio.wait((before,))
    try:
        async with asyncio.TaskGroup() as group:
            for reader in readers:
                group.create_task(reader.follow())
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
