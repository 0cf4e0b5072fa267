"""The store of accounting records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from vcbatch.core.accounting import Attempt, Filter, PodRun


class AccountingError(Exception):
    """The store can't be used now; the message has no passwords."""


class AccountingStore(Protocol):
    """Records by job UID and attempt. All calls block, and raise `AccountingError`. Not thread-safe."""

    def write(self, attempts: Sequence[Attempt], runs: Sequence[PodRun], *, now: float) -> None:
        """Merge these records into the store, in one transaction, and note `now` as the time of the last write."""
        ...

    def last_seen(self) -> float | None:
        """The time of the last write; None for a new store."""
        ...

    def close_unseen(self, attempts: Sequence[Attempt], runs: Sequence[PodRun]) -> None:
        """Store closed records, each only if its record is still open."""
        ...

    def open_attempts(self) -> Sequence[Attempt]:
        """The open records, without usage."""
        ...

    def open_runs(self) -> Sequence[PodRun]:
        """The pods of open records that haven't ended."""
        ...

    def page(self, chosen: Filter, *, limit: int, after: str = "", now: float) -> tuple[Sequence[Attempt], str]:
        """At most `limit` of the selected records, in the order of their ends, open ones last with their usage until
        `now`; and the token for the next page, "" after the last one."""
        ...

    def prune(self, *, before: float, now: float) -> int:
        """Delete the records of attempts that ended before that time, and the pods of closed records. Returns the
        number of deleted records."""
        ...

    def close(self) -> None: ...
