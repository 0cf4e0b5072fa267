"""Which background tasks of a program are failing, and why, as reported by readiness checks and `vcbatch doctor`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from vcbatch.interfaces.clock import Clock

STEADY_SECONDS = 5.0
"""Seconds that a restarted task has to run before it counts as healthy again: a task that crashes in a loop never
does."""
_LONGEST_REASON = 300


@dataclass(slots=True)
class _Error:
    reason: str
    """The error of the task's last failure."""
    running_since: float | None = None
    """When it was restarted; None while it waits for that."""


class Health:
    """The errors of the supervised tasks of one program. May be read from any thread.

    `on_failure` is called after each failure, in the thread of the task, with the name that all tasks of its kind
    share.
    """

    def __init__(self, clock: Clock, *, on_failure: Callable[[str], None] = lambda _: None) -> None:
        self.on_failure = on_failure
        self._clock = clock
        self._errors: dict[str, _Error] = {}
        self._tasks: set[str] = set()
        self._lock = threading.Lock()

    def started(self, name: str) -> None:
        """The task is supervised from now on, until it has `ended`."""
        with self._lock:
            self._tasks.add(name)

    def tasks(self) -> Sequence[str]:
        """The names of all supervised tasks."""
        with self._lock:
            return sorted(self._tasks)

    def failed(self, name: str, reason: str, *, kind: str = "") -> None:
        """The task has ended with an error and isn't running. `kind` is its name without that of an object."""
        with self._lock:
            self._errors[name] = _Error(" ".join(reason.split())[:_LONGEST_REASON])
        self.on_failure(kind or name)

    def restarted(self, name: str) -> None:
        """The task runs again; its error is reported for `STEADY_SECONDS` more."""
        with self._lock:
            if (error := self._errors.get(name)) is not None:
                error.running_since = self._clock.monotonic()

    def ended(self, name: str) -> None:
        """The task is done, or isn't needed any more."""
        with self._lock:
            self._tasks.discard(name)
            self._errors.pop(name, None)

    def errors(self) -> Mapping[str, str]:
        """The reason for each task that isn't healthy, sorted by name."""
        now = self._clock.monotonic()
        with self._lock:
            for name, error in list(self._errors.items()):
                if error.running_since is not None and now - error.running_since >= STEADY_SECONDS:
                    del self._errors[name]
            return {name: self._errors[name].reason for name in sorted(self._errors)}

    def error(self) -> str:
        """All errors in one line, "" where there are none: a readiness check."""
        return "; ".join(f"{name}: {reason}" for name, reason in self.errors().items())
