"""Timing of the parts of a cycle: measured by the caller's clock, because the scheduler has none."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol


class Part(StrEnum):
    """A part of a cycle."""

    PLUGIN_OPENED = "plugin opened"
    """A plugin opened the session."""
    OPENED = "opened"
    """All plugins have, and actions can run; without a name."""
    ACTION = "action"
    PLUGIN_CLOSED = "plugin closed"
    """A plugin closed the session."""


class Laps(Protocol):
    """A stopwatch. No decision depends on it."""

    def start(self) -> None:
        """A cycle begins."""
        ...

    def lap(self, part: Part, name: str = "") -> None:
        """This part ends, which began at the end of the previous one."""
        ...


class NoLaps:
    """A stopwatch that measures nothing."""

    def start(self) -> None:
        return None

    def lap(self, part: Part, name: str = "") -> None:
        return None
