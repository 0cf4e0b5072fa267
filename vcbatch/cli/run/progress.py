"""The status line of a job, below its log in a terminal."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final, TextIO

from vcbatch.api.duration import human
from vcbatch.cli.base.fields import moment, text
from vcbatch.cli.base.terminal import Terminal, clean, cut
from vcbatch.cli.logs.watch import waits
from vcbatch.cli.resources.kinds import job_phase, job_pods, job_restarts

Json = dict[str, Any]

_WHEEL: Final = ("⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏")
_PLAIN_WHEEL: Final = ("|", "/", "-", "\\")


def standing(job: Json, *, now: datetime, lost_at: datetime | None = None) -> str:
    """The status of the job: its name, phase, pods and age, the number of restarts, and why it is pending. While the
    server doesn't respond, since `lost_at`: how long, and the last known phase and pods."""
    created = moment(job, "metadata", "creationTimestamp")
    parts = [text(job, "metadata", "name"), job_phase(job), f"{job_pods(job)} pods"]
    if lost_at is not None:
        ago = human(max(now - lost_at, timedelta()))
        return f"{parts[0]}  disconnected {ago} ago  last known: {job_phase(job)}, {parts[2]}"
    if created is not None:
        parts.append(human(max(now - created, timedelta())))
    if restarts := job_restarts(job):
        parts.append(f"{restarts} restart{'' if restarts == 1 else 's'}")
    why = waits(job).partition(": ")[2]
    return "  ".join([*parts, why] if why else parts)


class StatusLine:
    """One line that is drawn, removed before other output is written, and drawn again. Draws nothing where the output
    isn't a terminal."""

    def __init__(self, out: TextIO, terminal: Terminal) -> None:
        self._out = out
        self._terminal = terminal
        self._line = ""
        self._bar = ""
        self._turn = 0
        self._drawn = False
        self._hidden = False

    @property
    def off_screen(self) -> bool:
        return self._terminal.width is None

    def hide(self) -> None:
        """Remove the line while a question is shown."""
        self.clear()
        self._hidden = True

    def unhide(self) -> None:
        self._hidden = False

    def say(self, line: str) -> None:
        """Set the text of the line and advance its spinner."""
        wheel = _WHEEL if self._terminal.unicode else _PLAIN_WHEEL
        self._turn = (self._turn + 1) % len(wheel)
        self._line = f"{wheel[self._turn]} {clean(line)}"
        self.draw()

    def progress(self, line: str) -> None:
        """Show a progress bar of the program in place of the status; an empty line ends that."""
        if line or self._bar:
            self._bar = clean(line)
            self.draw()

    def draw(self) -> None:
        if self._line and not self.off_screen and not self._hidden:
            # One cell is left free: a full line would wrap on some terminals.
            self._out.write(f"\r\x1b[K{cut(self._bar or self._line, (self._terminal.width or 80) - 1)}")
            self._out.flush()
            self._drawn = True

    def clear(self) -> None:
        """Remove the line until it is drawn again."""
        if self._drawn:
            self._out.write("\r\x1b[K")
            self._out.flush()
            self._drawn = False
