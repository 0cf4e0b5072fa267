"""Reading the log of one container: once, or from its start to its end over restarts and broken connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol, cast

from vcbatch.api.resources import PODS
from vcbatch.hosting.backoff import Backoff
from vcbatch.interfaces.api import Api, ApiError
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.client.kept_logs import KeptLogs, KeptRun
from vcbatch.sdk.log_place import Place
from vcbatch.sdk.pod_view import PodView

_RECONNECT = Backoff(initial=0.1, limit=5.0)
DRAIN_SECONDS = 5.0
"""The maximum of seconds that a stream may be silent once its container has ended, before it counts as half-closed."""
SIMULATED = 405
"""The status code for logs of pods on a simulated node, where nothing runs."""
_KEPT_TRIES, _KEPT_PAUSE = 4, 0.25
"""How often the log of a deleted pod is looked up, and the seconds between."""
_END_TRIES = 6
"""How often the end of an unavailable log is requested before it counts as lost with its node."""


class LogApi(Api, Protocol):
    """An `Api` that also returns logs, as `vcbatch.runtime.client.http.HttpApi` does."""

    def log_lines(
        self,
        name: str,
        *,
        namespace: str,
        container: str = "",
        follow: bool = False,
        previous: bool = False,
        timestamps: bool = False,
        tail: int | None = None,
        since: datetime | None = None,
        on_unfinished: Callable[[bytes], None] | None = None,
    ) -> AsyncIterator[bytes]: ...

    async def kept_logs(self, job: str, *, namespace: str) -> KeptLogs: ...

    def kept_log_lines(
        self,
        run: KeptRun,
        *,
        namespace: str,
        job: str,
        tail: int | None = None,
        since: datetime | None = None,
    ) -> AsyncIterator[bytes]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line of a container's output.

    `restart` counts the earlier starts of the pod's work: restarts of the job before the pod was created, and of the
    container in it. `time` is when the line was written, by the clock of its node.
    """

    task: str
    index: int
    pod: str
    container: str
    restart: int
    text: str
    time: datetime | None

    def __str__(self) -> str:
        return f"{self.task}/{self.index} │ {self.text}"


Emit = Callable[[LogLine], Awaitable[None]]
Emitted = Callable[[LogLine], None]
Kept = Callable[[PodView, str], Awaitable[Sequence[KeptRun] | None]]


class ContainerReader:
    """Reads one container of one pod to its end, over restarts and broken connections.

    `observe` passes newer states of the pod, `gone` that it was deleted, `finish` that its job has ended. `on_pretence`
    is called where there is no log since the pod's node is simulated, `on_loss` where the pod was deleted before
    anything of its log could be read, and the server keeps no logs. `kept` returns the kept runs of the container,
    oldest first, or None where the server keeps none. `on_unfinished` gets the present text of a line that is redrawn,
    such as a progress bar; the whole line is emitted when it ends.
    """

    def __init__(
        self,
        api: LogApi,
        pod: PodView,
        container: str,
        *,
        emit: Emit,
        streams: asyncio.Semaphore,
        clock: Clock,
        random: Random,
        tail: int | None = None,
        since: datetime | None = None,
        on_pretence: Callable[[], None],
        on_loss: Callable[[PodView], None],
        kept: Kept,
        on_unfinished: Emitted | None = None,
    ) -> None:
        self._api = api
        self._pod = pod
        self._container = container
        self._emit = emit
        self._streams = streams
        self._on_pretence = on_pretence
        self._on_loss = on_loss
        self._kept = kept
        self._on_unfinished = on_unfinished
        self._answered = False  # whether the server ever returned a log, even an empty one
        self._clock = clock
        self._random = random
        self._tail = tail
        self._since = since.astimezone(UTC) if since is not None else None
        self._run = 0 if not pod.run_of(container).begun else pod.run_of(container).number
        self._place = Place(tailed=tail is not None)
        self._all_read = False
        self._read = 0  # lines, which show progress
        self._gone = False
        self._finished = False
        self._changed = asyncio.Event()

    def observe(self, pod: PodView) -> None:
        """Take over a newer state of the pod."""
        self._pod = pod
        self._changed.set()

    def gone(self) -> None:
        """Note that the pod was deleted."""
        self._gone = True
        self._changed.set()

    def finish(self) -> None:
        """Note that the job has ended."""
        self._finished = True
        self._changed.set()

    @property
    def _over(self) -> bool:
        """Whether no container of the pod will run again."""
        return self._gone or self._finished or self._pod.ended

    @property
    def _complete(self) -> bool:
        """Whether the log of the present run is complete."""
        latest = self._pod.run_of(self._container)
        return self._over or latest.number > self._run or latest.ended

    async def follow(self) -> None:
        """Emit the log to its end. Raises `ApiError` for an error that no retry resolves."""
        await self._follow()
        if not self._gone or self._all_read:
            return
        begun = self._pod.run_of(self._container).begun
        if not await self._kept_rest(tries=_KEPT_TRIES if begun else 1) and begun and not self._answered:
            self._on_loss(self._pod)

    async def _kept_rest(self, *, tries: int) -> bool:
        """Emit what of the deleted pod's log wasn't read, where the server keeps it; returns whether it does."""
        runs: Sequence[KeptRun] | None = ()
        for attempt in range(tries):
            runs = await self._kept(self._pod, self._container)
            if runs is None:
                return False
            if runs:
                break
            if attempt < tries - 1:  # it is moved when the pod has been deleted
                await self._clock.sleep(_KEPT_PAUSE)
        for run in runs:
            if run.restarts >= self._run and not run.removed:
                self._turn_to(run.restarts)
                with suppress(ApiError):
                    async with self._streams:
                        await self._emit_all(self._kept_lines(run), self._run)
        return bool(runs)

    def _kept_lines(self, run: KeptRun) -> AsyncIterator[bytes]:
        owner, place = self._pod.metadata.controller_owner(), self._place
        return self._api.kept_log_lines(
            run,
            namespace=self._pod.metadata.namespace,
            job=owner.name if owner is not None else "",
            tail=None if place.begun else self._tail,
            since=place.since() or self._since,
        )

    async def _follow(self) -> None:
        while await self._begun():
            latest = self._pod.run_of(self._container).number
            if latest > self._run:
                if not self._all_read:
                    self._turn_to(max(self._run, latest - 1))
                    await self._to_the_end(previous=True)
                self._turn_to(latest)
            self._all_read = await self._to_the_end(previous=False)
            while self._all_read and self._pod.run_of(self._container).number == self._run:
                if self._over:
                    return
                await self._news()
            if self._gone or (self._over and self._pod.run_of(self._container).number == self._run):
                return

    def _turn_to(self, run: int) -> None:
        """Read that run from its start, unless it is already being read."""
        if run != self._run:
            self._run, self._place, self._all_read = run, Place(), False
            self._tail = self._since = None

    async def _begun(self) -> bool:
        """Wait until there is a log to read; False where there never will be."""
        while not self._pod.run_of(self._container).begun:
            if self._over:
                return False
            await self._news()
        return True

    async def _news(self, seconds: float | None = None) -> None:
        """Return when the state of the pod changes, or after this number of seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        self._changed.clear()

    async def _to_the_end(self, *, previous: bool) -> bool:
        """Read the present run until a connection that was opened after its end has returned all of it: then True.
        False where the server can't return all of it in this way (any more).

        `previous`: it is no longer the container's latest run.
        """
        failures = 0
        while True:
            complete = previous or self._complete
            clean, refused = False, None
            try:
                clean = await self._stream(previous=previous)
            except ApiError as error:
                refused = error
                if error.code == SIMULATED:
                    self._answered = True
                    self._on_pretence()
                    return True
                if error.code == 404 or (previous and error.code == 400):
                    return False
                if not error.transient and error.code != 400:
                    raise
            self._answered = self._answered or clean
            if clean and complete:
                return True
            if self._gone:
                return False
            if clean and self._complete:
                failures = 0  # it ended while it was followed: one more attempt, which is the last
            else:
                failures += 1
                if complete and failures >= _END_TRIES:
                    return False
                pause = _RECONNECT.delay(failures, self._random)
                await self._news(max(pause, (refused.retry_after if refused else None) or 0.0))
            if not await self._refresh():
                return False
            if not previous and self._pod.run_of(self._container).number > self._run:
                return False

    async def _refresh(self) -> bool:
        """Read the pod again before its log is requested again: another pod may have its name now."""
        try:
            pod = await self._api.get(
                PODS, self._pod.metadata.name, namespace=self._pod.metadata.namespace, model=PodView
            )
        except ApiError as error:
            if error.transient:
                return True
            if error.not_found:
                return False
            raise
        if pod.metadata.uid != self._pod.metadata.uid:
            return False
        self._pod = pod
        return True

    async def _stream(self, *, previous: bool) -> bool:
        """Read over one connection, and return whether the server ended it."""
        follow = not previous and not self._complete
        async with self._streams:
            reading = asyncio.create_task(self._connect(follow=follow, previous=previous))
            try:
                if follow:
                    reading.add_done_callback(lambda _: self._changed.set())
                    while not reading.done() and not self._complete:
                        await self._news()
                    if not await self._drained(reading):
                        return False
                await reading
                return True
            finally:
                if not reading.done():
                    reading.cancel()
                    with suppress(asyncio.CancelledError, ApiError):
                        await reading

    async def _drained(self, reading: asyncio.Task[None]) -> bool:
        """Whether the stream of an ended container ends too, instead of staying open in silence."""
        while not reading.done():
            before = self._read
            await asyncio.wait((reading,), timeout=DRAIN_SECONDS)
            if not reading.done() and self._read == before:
                return False
        return True

    async def _connect(self, *, follow: bool, previous: bool) -> None:
        """Emit the lines from the present position until the response ends."""
        pod, place, run = self._pod, self._place, self._run

        def unfinished(data: bytes) -> None:
            if self._on_unfinished is not None:
                self._on_unfinished(self._line(run, data.decode(errors="replace"), None))

        lines = self._api.log_lines(
            pod.metadata.name,
            namespace=pod.metadata.namespace,
            container=self._container,
            follow=follow,
            previous=previous,
            timestamps=True,  # needed to resume reading after a broken connection
            tail=None if place.begun else self._tail,
            since=place.since() or self._since,
            **({} if self._on_unfinished is None else {"on_unfinished": unfinished}),
        )
        await self._emit_all(lines, run)

    def _line(self, run: int, text: str, time: datetime | None) -> LogLine:
        pod = self._pod
        return LogLine(
            task=pod.task,
            index=pod.index,
            pod=pod.metadata.name,
            container=self._container,
            restart=pod.attempt + run,
            text=text,
            time=time,
        )

    async def _emit_all(self, lines: AsyncIterator[bytes], run: int) -> None:
        """Emit the lines of a run that weren't emitted before."""
        place, repeats = self._place, self._place.repeats()
        async with aclosing(cast("Any", lines)) as stream:
            async for data in stream:
                line = data.decode(errors="replace")
                time, text = parse_line(data)
                if time is not None and self._since is not None and time < self._since:
                    continue
                second = line[:19] if time is not None else ""
                if (line, second) in repeats:
                    continue
                await self._emit(self._line(run, text, time))
                # Only now: a line that was not accepted is read again.
                place.passed(line, second)
                self._read += 1
                self._answered = True


def parse_line(data: bytes) -> tuple[datetime | None, str]:
    """The time and the text of a line with a timestamp; None for the time of a line without."""
    line = data.decode(errors="replace")
    stamp, _, text = line.partition(" ")
    time = _time(stamp)
    return (None, line) if time is None else (time, text)


def _time(stamp: str) -> datetime | None:
    if len(stamp) < 20 or not stamp[:4].isdecimal():
        return None
    try:
        return datetime.fromisoformat(stamp)
    except ValueError:
        return None
