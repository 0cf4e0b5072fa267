"""How long the parts of a cycle take: measured by whoever has a clock, since the scheduler has none."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol


class Part(StrEnum):
    """A part of a cycle."""

    PLUGIN_OPENED = "plugin opened"
    """A plugin saw the snapshot."""
    OPENED = "opened"
    """All have, and the session can be worked on; no name."""
    ACTION = "action"
    PLUGIN_CLOSED = "plugin closed"
    """A plugin saw what was decided."""


class Laps(Protocol):
    """A stopwatch. Nothing that is decided depends on it."""

    def start(self) -> None:
        """A cycle begins."""
        ...

    def lap(self, part: Part, name: str = "") -> None:
        """This part ends, which began when the one before it did end."""
        ...


class NoLaps:
    """Where nobody wants to know."""

    def start(self) -> None:
        return None

    def lap(self, part: Part, name: str = "") -> None:
        return None
