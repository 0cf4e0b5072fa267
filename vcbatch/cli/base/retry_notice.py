"""The message of a long-running command whose server is unreachable."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from vcbatch.cli.base.output import note
from vcbatch.cli.base.terminal import clean
from vcbatch.interfaces.api import ApiError

_QUIET_SECONDS: Final = 60.0
"""Seconds until the message is repeated."""


class RetryNotice:
    """Reports at intervals that the server doesn't respond and that the request is retried. `ended` is called first; it
    raises where retrying is useless."""

    def __init__(
        self,
        server: str,
        report: Callable[[str], None] = note,
        *,
        clock: Callable[[], float] = time.monotonic,
        ended: Callable[[ApiError], None] | None = None,
    ) -> None:
        self._server = server
        self._report = report
        self._clock = clock
        self._ended = ended
        self._reported_at: float | None = None

    def __call__(self, error: ApiError) -> None:
        if self._ended is not None:
            self._ended(error)
        now = self._clock()
        if self._reported_at is None or now - self._reported_at >= _QUIET_SECONDS:
            self._reported_at = now
            self._report(f"{silence(self._server, error)}. Retrying ...")


def silence(server: str, error: ApiError) -> str:
    """The message that a server doesn't respond or is unavailable, with the error."""
    if error.code == 0:
        return f"{server} can't be reached: {clean(str(error))}"
    return f"{server} is unavailable ({error.code} {error.reason}): {clean(str(error))}"
