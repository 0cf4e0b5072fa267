"""What an action is."""

from __future__ import annotations

from typing import Any, Protocol

from vcbatch.scheduler.framework.arguments import ArgumentSpec


class Action(Protocol):
    """One phase of a cycle. Has no state of its own: everything is in the cycle."""

    @property
    def arguments(self) -> ArgumentSpec:
        """What `configurations` may set for it."""
        ...

    def execute(self, cycle: Any, /) -> None:
        """Decide, on the session's snapshot. It is given what cycles consist of, which lies above this package."""
        ...
