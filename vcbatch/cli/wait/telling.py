"""What `vcbatch wait` says on standard error while it waits."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from vcbatch.api.resources import JOBS
from vcbatch.cli.base.output import note
from vcbatch.cli.run.progress import Foot, standing
from vcbatch.cli.wait.conditions import Condition, Kind

Json = dict[str, Any]


class Telling:
    """Tells what is still waited for and how it stands: on a terminal in one line that is drawn again and again, else
    once for each object, when it was seen not to be as asked."""

    def __init__(self, foot: Foot) -> None:
        self._foot = foot
        self._waiting: dict[str, tuple[Kind, Json | None]] = {}

    def look(self, title: str, kind: Kind, wish: Condition, obj: Json | None) -> None:
        """The object isn't as asked yet; None stands for one that doesn't exist."""
        if self._foot.nobody_looks and title not in self._waiting:
            phase = "not found" if obj is None else kind.phase(obj)
            note(f"waiting for {title}: {wish.said}{f' (currently {phase})' if phase else ''}")
        self._waiting[title] = (kind, obj)

    def reached(self, title: str) -> None:
        """It is waited for no more. The line is taken away: something is about to be said."""
        self._waiting.pop(title, None)
        self._foot.clear()

    def draw(self, now: datetime) -> None:
        """Bring the line up to date."""
        if not self._waiting:
            return
        title, (kind, obj) = next(iter(self._waiting.items()))
        stands = f"{title} {'<none>' if obj is None else kind.phase(obj)}".rstrip()
        if obj is not None and kind.resource == JOBS:
            stands = standing(obj, now=now)
        self._foot.say(
            f"waiting for {len(self._waiting)}: {stands}" if len(self._waiting) > 1 else f"waiting: {stands}"
        )

    def aside(self, text: str) -> None:
        """Something else that is to be known."""
        self._foot.clear()
        note(text)

    def close(self) -> None:
        """Take the line away for good."""
        self._waiting.clear()
        self._foot.clear()
