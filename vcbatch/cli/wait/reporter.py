"""The output of `vcbatch wait` on standard error while it waits."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from vcbatch.api.resources import JOBS
from vcbatch.cli.base.output import note
from vcbatch.cli.run.progress import StatusLine, standing
from vcbatch.cli.wait.conditions import Condition, Kind

Json = dict[str, Any]


class Reporter:
    """Reports the objects that are still waited for, with their states: on a terminal in one line that is redrawn, else
    once for each object whose condition isn't met when it is first read."""

    def __init__(self, status_line: StatusLine) -> None:
        self._status_line = status_line
        self._waiting: dict[str, tuple[Kind, Json | None]] = {}

    def update(self, title: str, kind: Kind, awaited: Condition, obj: Json | None) -> None:
        """The object doesn't meet the condition yet; None is an object that doesn't exist."""
        if self._status_line.off_screen and title not in self._waiting:
            phase = "not found" if obj is None else kind.phase(obj)
            note(f"waiting for {title}: {awaited.said}{f' (currently {phase})' if phase else ''}")
        self._waiting[title] = (kind, obj)

    def reached(self, title: str) -> None:
        """The object meets its condition. The line is removed, as output follows."""
        self._waiting.pop(title, None)
        self._status_line.clear()

    def draw(self, now: datetime) -> None:
        """Redraw the line with the current state."""
        if not self._waiting:
            return
        title, (kind, obj) = next(iter(self._waiting.items()))
        stands = f"{title} {'<none>' if obj is None else kind.phase(obj)}".rstrip()
        if obj is not None and kind.resource == JOBS:
            stands = standing(obj, now=now)
        self._status_line.say(
            f"waiting for {len(self._waiting)}: {stands}" if len(self._waiting) > 1 else f"waiting: {stands}"
        )

    def aside(self, text: str) -> None:
        """Print another message."""
        self._status_line.clear()
        note(text)

    def close(self) -> None:
        """Remove the line permanently."""
        self._waiting.clear()
        self._status_line.clear()
