"""What an action is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from vcbatch.scheduler.arguments import Argument, ArgumentSpec

if TYPE_CHECKING:
    from vcbatch.scheduler.session import Session

ERROR_CACHE = ArgumentSpec(named={"predicateErrorCacheEnable": Argument(default=True)}, prefixed={})
"""Volcano's switch of a cache. Answers here are the same either way, so files that have it work unchanged."""


class Action(Protocol):
    """One phase of a cycle. Has no state of its own: everything is in the session."""

    @property
    def arguments(self) -> ArgumentSpec:
        """What `configurations` may set for it."""
        ...

    def execute(self, session: Session) -> None:
        """Decide, on the session's picture."""
        ...
