"""The interface of actions."""

from __future__ import annotations

from typing import Any, Protocol

from vcbatch.scheduler.framework.arguments import ArgumentSpec


class Action(Protocol):
    """One action of a cycle. Actions are stateless: all state is in the cycle."""

    @property
    def arguments(self) -> ArgumentSpec:
        """The arguments that `configurations` may set for the action."""
        ...

    def execute(self, cycle: Any, /) -> None:
        """Decide on the session's snapshot. `cycle` is a `Cycle`, a type of a layer above this package."""
        ...
