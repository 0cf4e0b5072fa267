"""Follows a submitted job until its end: its log, its status, and Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from vcbatch.api import names
from vcbatch.api.messages import read_wait
from vcbatch.api.phases import Action, JobPhase
from vcbatch.api.reasons import WaitReason
from vcbatch.api.resources import JOBS, PODS
from vcbatch.cli.base.bus import request
from vcbatch.cli.base.exit_codes import IMPOSSIBLE
from vcbatch.cli.base.fields import objects, text
from vcbatch.cli.base.output import note
from vcbatch.cli.base.retry_notice import RetryNotice
from vcbatch.cli.base.terminal import terminal_of
from vcbatch.cli.logs.lines import Layout, Style, Writer, show
from vcbatch.cli.logs.watch import Waits, follow_status
from vcbatch.cli.resources.kinds import job_phase
from vcbatch.cli.resources.outcome import exit_code, sentence
from vcbatch.cli.run.progress import StatusLine, standing
from vcbatch.interfaces.api import ApiError
from vcbatch.sdk.logs import follow_job

if TYPE_CHECKING:
    from vcbatch.cli.base.reach import Access
    from vcbatch.runtime.client.http import HttpApi

Json = dict[str, Any]

INTERRUPTED: Final = 130
_EARLY: Final = 60.0
"""Seconds from the start in which a job that can't start is cancelled. Later it has waited for something else before,
and nodes may be missing for a while."""
_INTERVAL: Final = 0.5
"""Seconds between two updates of the status line."""
_PROBE_SECONDS: Final = 1.0
"""Seconds between two requests to a server that didn't respond."""


class Choice(StrEnum):
    """What to do with a job that the user doesn't want to wait for."""

    DETACH = "detach"
    CANCEL = "cancel"
    GO_ON = "go on"


async def follow(
    api: HttpApi,
    job: Json,
    *,
    next_commands: NextCommands,
    server: str,
    ended: Callable[[ApiError], None],
    end_impossible: bool = False,
) -> int:
    """Print the job's log until it ends; returns the exit code of `vcbatch run`. With `end_impossible`, a job that the
    scheduler reports as Impossible is cancelled. On the first Ctrl-C the user can choose what happens to the job;
    without a terminal, and on the second one, the job keeps running. `ended` is called for each failed retry, and
    raises where the server won't come back."""
    following = _Following(api, job, next_commands, server, ended, end_impossible=end_impossible)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, following.interrupt, number)
    try:
        return await following.run()
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
        following.status_line.clear()


def impossible(job: Json) -> str:
    """Why the scheduler reports that a new job can't start, whatever ends; empty for any other job. One that ran before
    could start, so its nodes are only missing for a while."""
    reason, sentence = read_wait(text(job, "status", "state", "message"))
    if reason is not WaitReason.IMPOSSIBLE or job_phase(job) != JobPhase.PENDING:
        return ""
    ran = any(text(entry, "status") == JobPhase.RUNNING for entry in objects(job, "status", "conditions"))
    return "" if ran else sentence


class NextCommands:
    """The commands to return to a running job, with the options by which this command chose its server."""

    def __init__(self, name: str, access: Access) -> None:
        self.logs = access.repeat(f"vcbatch job logs -f {name}")
        self.cancel = access.repeat(f"vcbatch job cancel {name}")
        self.impossible = access.repeat(
            "Reduce the request: `vcbatch cluster` shows the capacity. To wait for other nodes: --wait-impossible"
        )

    def say(self) -> None:
        note(f"  {self.logs}\n  {self.cancel}")


class _Following:
    def __init__(
        self,
        api: HttpApi,
        job: Json,
        next_commands: NextCommands,
        server: str,
        ended: Callable[[ApiError], None],
        *,
        end_impossible: bool,
    ) -> None:
        self._api = api
        self._job = job
        self._name: str = job["metadata"]["name"]
        self._namespace: str = job["metadata"]["namespace"]
        self._next_commands = next_commands
        self._deleted = False
        self._waits = Waits(note)
        self._signals: list[int] = []
        self._interrupted = asyncio.Event()
        self._cancelled = False
        self._end_impossible = end_impossible
        self._impossible = ""
        self._began = asyncio.get_running_loop().time()
        self._asks = sys.stdin.isatty() and sys.stderr.isatty()
        self.status_line = StatusLine(sys.stderr, terminal_of(sys.stderr))
        self._writer = Writer(sys.stdout, before=self._clear_status_line, after=self.status_line.draw)
        self._retry_notice = RetryNotice(server, self._writer.aside, ended=ended)
        self._lost_at: datetime | None = None
        self._probing: asyncio.Task[None] | None = None

    def interrupt(self, number: int) -> None:
        self._signals.append(number)
        self._interrupted.set()

    def _clear_status_line(self) -> None:
        self.status_line.progress("")  # a line of the log follows, so the bar has ended or will be drawn again
        self.status_line.clear()

    async def run(self) -> int:
        ended = asyncio.create_task(self._watch())
        drawing = asyncio.create_task(self._draw())
        try:
            code = await self._until(ended)
            self.status_line.clear()
            return await self._result() if code is None else code
        except (ApiError, OSError):  # the server is lost, or the reader of the log has closed it
            self._leave()
            raise
        finally:
            self._waits.close()
            tasks = [task for task in (ended, drawing, self._probing) if task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch(self) -> None:
        tasks = [
            asyncio.create_task(follow_status(self._api, self._job, self._report, on_trouble=self._trouble)),
            asyncio.create_task(self._show_log()),
        ]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _until(self, ended: asyncio.Future[None]) -> int | None:
        """None once the job has ended, else the exit code with which the command detaches from it."""
        while True:
            if self._impossible:
                return await self._give_up()
            signalled = asyncio.ensure_future(self._interrupted.wait())
            await asyncio.wait((ended, signalled), return_when=asyncio.FIRST_COMPLETED)
            signalled.cancel()
            if ended.done():
                ended.result()
                return None
            self._interrupted.clear()
            if self._impossible:
                continue
            choice = await self._choose(ended)
            if choice is Choice.CANCEL and not self._cancelled:
                await self._cancel()
            elif choice is Choice.DETACH:
                self._leave()
                return 128 + self._signals[0] if self._signals else 0

    def _leave(self) -> None:
        self.status_line.clear()
        note(f"{self._name} is still running. To follow or cancel it:")
        self._next_commands.say()

    async def _choose(self, ended: asyncio.Future[None]) -> Choice:
        if not self._asks or self._cancelled or signal.SIGTERM in self._signals:
            return Choice.DETACH
        self._writer.pause()
        self.status_line.hide()
        sys.stderr.write(f"\n{self._name} is running. [d]etach, [c]ancel, or Enter to keep watching: ")
        sys.stderr.flush()
        answer = await self._answer(ended)
        self.status_line.unhide()
        self._writer.resume()
        if answer is None:
            return Choice.GO_ON if ended.done() else Choice.DETACH
        word = answer.strip().lower()
        if word and Choice.CANCEL.startswith(word):
            return Choice.CANCEL
        if word and Choice.DETACH.startswith(word):
            self._signals.clear()  # the user requested it, so it isn't an error
            return Choice.DETACH
        self._signals.clear()
        return Choice.GO_ON

    async def _answer(self, ended: asyncio.Future[None]) -> str | None:
        """A line from the terminal; None where Ctrl-C, the end of input or of the job came first."""
        loop = asyncio.get_running_loop()
        typed: asyncio.Future[bytes] = loop.create_future()

        def read() -> None:
            loop.remove_reader(sys.stdin.fileno())
            if not typed.done():
                typed.set_result(os.read(sys.stdin.fileno(), 1024))

        loop.add_reader(sys.stdin.fileno(), read)
        again = asyncio.ensure_future(self._interrupted.wait())
        try:
            await asyncio.wait((typed, again, ended), return_when=asyncio.FIRST_COMPLETED)
            return (typed.result().decode(errors="replace") or None) if typed.done() else None
        finally:
            loop.remove_reader(sys.stdin.fileno())
            again.cancel()
            typed.cancel()

    async def _cancel(self, *, quiet: bool = False) -> None:
        self._cancelled = True
        try:
            await request(
                self._api, JOBS, self._name, Action.TERMINATE_JOB, namespace=self._namespace, at=self._namespace
            )
        except ApiError as error:
            note(f"{self._name} could not be cancelled: {error.sentence}")
            self._cancelled = False
            return
        if not quiet:
            self._writer.aside(f"Cancelling {self._name} (Ctrl-C to stop waiting)")

    async def _give_up(self) -> int:
        """Cancel a job that can't start; returns the exit code."""
        self.status_line.clear()
        await self._cancel(quiet=True)
        note(f"{self._name} can't start on this cluster: {self._impossible}")
        note(f"It was cancelled.\n{self._next_commands.impossible}" if self._cancelled else self._next_commands.cancel)
        return IMPOSSIBLE

    def _report(self, job: Json | None) -> None:
        if job is None:
            self._deleted = True
            return
        self._job = job
        early = asyncio.get_running_loop().time() < self._began + _EARLY
        if self._end_impossible and early and (sentence := impossible(job)):
            self._impossible = sentence
            self._interrupted.set()
            return
        if self.status_line.off_screen:
            self._waits.update(job)
        self._say_standing()

    def _say_standing(self) -> None:
        self.status_line.say(standing(self._job, now=datetime.now(UTC), lost_at=self._lost_at))

    def _trouble(self, error: ApiError) -> None:
        """The server doesn't respond: the status line says so until it does."""
        self._retry_notice(error)
        if self._lost_at is None:
            self._lost_at = datetime.now(UTC)
            self._probing = asyncio.create_task(self._until_reached())

    async def _until_reached(self) -> None:
        while self._lost_at is not None:
            await asyncio.sleep(_PROBE_SECONDS)
            with suppress(ApiError):
                await self._api.version()
                self._lost_at = None

    async def _draw(self) -> None:
        while True:
            self._say_standing()
            await asyncio.sleep(_INTERVAL)

    async def _show_log(self) -> None:
        """Print the log. If it can't be read, the command still waits for the job."""
        layout = Layout.of(self._job, tasks=None, indices=None, containers=None)
        style = Style(layout=layout if layout.speakers > 1 else None, terminal=terminal_of(sys.stdout))
        try:
            lines = follow_job(
                self._api,
                namespace=self._namespace,
                name=self._name,
                on_trouble=self._trouble,
                on_silence=self._writer.aside,
                on_unfinished=lambda line: self.status_line.progress(
                    str(line) if style.layout is not None else line.text
                ),
            )
            await show(lines, style, self._writer, new=True)
        except ApiError as error:
            if not error.not_found:
                self._writer.aside(f"logs unavailable: {error.sentence}")

    async def _result(self) -> int:
        if self._deleted:
            note(f"{self._name} was deleted before it finished")
            return INTERRUPTED if self._cancelled else 1
        if self._cancelled and job_phase(self._job) == JobPhase.TERMINATED:
            note(f"{self._name} was cancelled")
            return INTERRUPTED
        note(sentence(self._job, now=datetime.now(UTC)))
        code = exit_code(self._job)
        if code != 1:
            return code
        pods: list[Json] = []
        with suppress(ApiError):
            listing = await self._api.list(
                PODS, namespace=self._namespace, label_selector=f"{names.JOB_NAME}={self._name}"
            )
            pods = list(listing.items)
        return exit_code(self._job, pods)
