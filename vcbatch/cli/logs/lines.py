"""The format of lines in a gang's log, and their output."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, TextIO

from vcbatch.api.loose import part
from vcbatch.api.timestamps import format_micro_time
from vcbatch.cli.base.fields import number, objects, text
from vcbatch.cli.base.output import note
from vcbatch.cli.base.terminal import Terminal, cells, clean, cut
from vcbatch.sdk.logs import LogLine

Json = Mapping[str, Any]

_COLOURS: Final = ("36", "33", "32", "35", "34", "96", "93", "92", "95", "94")
"""Base colours of a terminal, without red, which is for errors."""
_DIM: Final = "2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The prefix of lines. `width` is that of the longest `task/index`, `containers` whether the container is named
    too, `speakers` the number of containers that may print lines."""

    width: int = 0
    speakers: int = 0
    containers: bool = False
    tasks: tuple[str, ...] = ()
    """The tasks, in the order in which colours are assigned."""

    @staticmethod
    def of(
        job: Json, *, tasks: Collection[str] | None, indices: Collection[int] | None, containers: Collection[str] | None
    ) -> Layout:
        """The layout for these parts of a job."""
        found: list[tuple[str, int]] = []
        names: set[str] = set()
        for task in objects(job, "spec", "tasks"):
            name = text(task, "name")
            if tasks is not None and name not in tasks:
                continue
            replicas = number(task, "replicas")
            found += [(name, index) for index in (range(replicas) if indices is None else indices) if index < replicas]
            template = part(task, "template")
            kinds = ("containers",) if containers is None else ("containers", "initContainers")
            names |= {text(one, "name") for kind in kinds for one in objects(template, "spec", kind)}
        chosen = names if containers is None else names & set(containers)
        several = len(chosen) > 1
        longest = max((len(name) for name in chosen), default=0) + 1 if several else 0
        return Layout(
            width=max((cells(f"{name}/{index}") for name, index in found), default=0) + longest,
            speakers=len(found) * len(chosen),
            containers=several,
            tasks=tuple(dict.fromkeys(name for name, _ in found)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """`layout` None: no prefix."""

    layout: Layout | None = None
    timestamps: bool = False
    terminal: Terminal = field(default_factory=Terminal)

    def line(self, line: LogLine) -> str:
        """The formatted line, with its newline."""
        stamp = f"{format_micro_time(line.time)} " if self.timestamps and line.time is not None else ""
        prefix = "" if self.layout is None else _prefix(self.layout, self.terminal, *_place(line))
        return f"{prefix}{stamp}{line.text}\n"

    def started_again(self, line: LogLine) -> str:
        """The message that a container has restarted."""
        where = f"{line.task}/{line.index}" + (f" {line.container}" if self.layout and self.layout.containers else "")
        said = f"--- {where} restarted (attempt {line.restart + 1})"
        return f"\x1b[{_DIM}m{said}\x1b[0m" if self.terminal.colour else said


def _place(line: LogLine) -> tuple[str, int, str]:
    return line.task, line.index, line.container


@lru_cache(maxsize=4096)
def _prefix(layout: Layout, terminal: Terminal, task: str, index: int, container: str) -> str:
    words = f"{task}/{index} {container}" if layout.containers else f"{task}/{index}"
    padded = words + " " * (layout.width - cells(words)) + (" │ " if terminal.unicode else " | ")
    if not terminal.colour:
        return padded
    order = layout.tasks.index(task) if task in layout.tasks else 0
    return f"\x1b[{_COLOURS[(order * 3 + index) % len(_COLOURS)]}m{padded}\x1b[0m"


_BATCH: Final = 64 * 1024
_REDRAW_SECONDS: Final = 0.1
_PAUSE: Final = 0.05
"""Maximum delay in seconds of a line that waits for a batch."""


class Writer:
    """Writes lines in batches, since a system call for each line would be the largest cost. `before` and `after` are
    called around each batch, for callers that have other output on the screen."""

    def __init__(
        self, out: TextIO, *, before: Callable[[], None] | None = None, after: Callable[[], None] | None = None
    ) -> None:
        self._out = out
        self._before = before
        self._after = after
        self._held: list[str] = []
        self._size = 0
        self._timer: asyncio.TimerHandle | None = None
        self._failure: OSError | None = None
        self._open = asyncio.Event()
        self._open.set()

    def pause(self) -> None:
        """Hold back output; writers have to wait."""
        self.flush()
        self._open.clear()

    def resume(self) -> None:
        self._open.set()

    async def opened(self) -> None:
        """Return once output is allowed."""
        await self._open.wait()

    def write(self, text: str) -> None:
        """Add text to the batch. Raises `BrokenPipeError` where the reader has closed the output."""
        if self._failure is not None:
            raise self._failure
        self._held.append(text)
        self._size += len(text)
        if self._size >= _BATCH:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_PAUSE, self._in_time)

    def _in_time(self) -> None:
        try:
            self.flush()
        except OSError as error:
            self._failure = error  # for the next writer, since no caller awaits a timer

    def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._held:
            return
        text, self._held, self._size = "".join(self._held), [], 0
        if self._before is not None:
            self._before()
        self._emit(text)
        self._out.flush()
        if self._after is not None:
            self._after()

    def aside(self, text: str) -> None:
        """Print a message that isn't a line of the log."""
        self.flush()
        if self._before is not None:
            self._before()
        note(text)
        if self._after is not None:
            self._after()

    def _emit(self, text: str) -> None:
        try:
            self._out.write(text)
        except UnicodeEncodeError:
            encoding = self._out.encoding
            self._out.write(text.encode(encoding, "replace").decode(encoding))


class ProgressLine:
    """The present text of a line that a program redraws with carriage returns, such as a progress bar, at the end of
    the output; of several pods, the one that was redrawn last. Draws nothing where the output isn't a terminal."""

    def __init__(self, out: TextIO, style: Style, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._out = out
        self._style = style
        self._clock = clock
        self._drawn_at: float | None = None
        self._shown = False

    @property
    def on_screen(self) -> bool:
        return self._style.terminal.width is not None

    def draw(self, line: LogLine) -> None:
        """Replace the text, at most every `_REDRAW_SECONDS`."""
        now = self._clock()
        if not self.on_screen or (self._drawn_at is not None and now - self._drawn_at < _REDRAW_SECONDS):
            return
        self._drawn_at = now
        prefix = f"{line.task}/{line.index} " if self._style.layout is not None else ""
        # One cell is left free: a full line would wrap on some terminals.
        self._out.write(f"\r\x1b[K{cut(prefix + clean(line.text), (self._style.terminal.width or 80) - 1)}")
        self._out.flush()
        self._shown = True

    def clear(self) -> None:
        """Remove the text: other output follows, or the line has ended."""
        if self._shown:
            self._out.write("\r\x1b[K")
            self._out.flush()
            self._shown = False


async def show(lines: AsyncGenerator[LogLine, None], style: Style, writer: Writer, *, new: bool = False) -> int:
    """Write all lines, and report restarts on standard error: for a `new` job also where a container's first lines come
    after a restart. Returns the number of lines."""
    count = 0
    restarts: dict[tuple[str, int, str], int] = {}
    try:
        async with aclosing(lines) as stream:
            async for line in stream:
                await writer.opened()
                place = _place(line)
                if restarts.setdefault(place, 0 if new else line.restart) != line.restart:
                    restarts[place] = line.restart
                    writer.aside(style.started_again(line))
                writer.write(style.line(line))
                count += 1
    finally:
        writer.flush()
    return count
