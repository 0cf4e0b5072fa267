"""The position in a log up to which it was read, so that reading resumes there after the connection broke.

A server can return the lines since a time, in whole seconds. So of the last second that was read, as many lines are
skipped as were read of it; they come in the same order again. Where the server was asked for the `tail` of a log, the
second in which that begins has lines that were never emitted: the lines of that second that were emitted are searched
in the new ones.
"""

from __future__ import annotations

from datetime import datetime


class Place:
    """The position after the last line of one run of a container. `tailed`: reading began in the middle of the run."""

    def __init__(self, *, tailed: bool = False) -> None:
        self._second = ""
        self._count = 0
        self._reported: list[int] | None = [] if tailed else None  # of the second in which the tail begins

    @property
    def begun(self) -> bool:
        return bool(self._second)

    def since(self) -> datetime | None:
        """The time from which to request lines again."""
        return datetime.fromisoformat(f"{self._second}+00:00") if self._second else None

    def passed(self, line: str, second: str) -> None:
        """The line was emitted; `second` is the text of its time up to the seconds."""
        if second > self._second:
            if self._second:
                self._reported = None
            self._second, self._count = second, 0
        if second == self._second:
            self._count += 1
            if self._reported is not None:
                self._reported.append(hash(line))

    def repeats(self) -> Repeats:
        """A checker that says, line by line in order, which lines of a new connection were emitted before."""
        return Repeats(second=self._second, count=self._count, reported=self._reported)


class Repeats:
    def __init__(self, *, second: str, count: int, reported: list[int] | None) -> None:
        self._second = second
        self._left = count
        self._reported = list(reported) if reported else None
        self._seen: list[int] = []

    def __contains__(self, line: tuple[str, str]) -> bool:
        """Whether this line, given with its second, was emitted before."""
        text, second = line
        if not self._left:
            return False
        if second > self._second:
            self._left = 0
            return False
        if self._reported is None:
            self._left -= 1
            return True
        self._seen.append(hash(text))
        if self._seen[-len(self._reported) :] == self._reported:
            self._left = 0
        return True
