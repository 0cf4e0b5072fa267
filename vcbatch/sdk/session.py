"""The connection of one client, which is opened by its first request."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from vcbatch.interfaces.api import ApiError
from vcbatch.runtime.client.local_server import running_server
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.random import SystemRandom
from vcbatch.sdk.connecting import Place
from vcbatch.sdk.errors import Unavailable, translated

if TYPE_CHECKING:
    from vcbatch.runtime.client.http import HttpApi

_log = logging.getLogger("vcbatch")
_RETRIES = 4
_WATCHES = 64
_QUIET_SECONDS = 60.0
"""The minimum of seconds between two warnings about an unreachable server."""


class Session:
    """One server, and an HTTP client for it that belongs to one event loop."""

    def __init__(self, place: Place, *, namespace: str | None, timeout: float) -> None:
        self.place = place
        self.namespace = namespace or place.connection.namespace
        self.clock = SystemClock()
        self.random = SystemRandom()
        self._timeout = timeout
        self._api: HttpApi | None = None
        self._reported: float | None = None

    @property
    def server(self) -> str:
        return self.place.connection.server

    @property
    def state_dir(self) -> Path | None:
        """The directory of the server's state, if it is a local server; else None."""
        return self.place.state_dir

    async def api(self) -> HttpApi:
        if self._api is None:
            # The HTTP library takes longer to import than everything else together.
            from vcbatch.runtime.client.http import HttpApi
            from vcbatch.runtime.client.rest import ClientLimits
            from vcbatch.sdk.logs import MAX_STREAMS

            limits = ClientLimits(
                request_timeout=self._timeout,
                list_timeout=4 * self._timeout,
                connect_timeout=min(10.0, self._timeout),
                retries=_RETRIES,
                streams=MAX_STREAMS + _WATCHES,
            )
            self._api = HttpApi(self.place.connection, clock=self.clock, random=self.random, limits=limits)
        return self._api

    async def close(self) -> None:
        api, self._api = self._api, None
        if api is not None:
            await api.close()

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Raise errors of the transport within the block as errors of the SDK."""
        try:
            with translated(self.server):
                yield
        except Unavailable as error:
            if error.code == 0 and self._is_down():
                error.hint = f"vcbatch isn't running on {self.state_dir}: `vcbatch up --detach` starts it again."
            raise

    def trouble(self, error: ApiError) -> None:
        """Log, at most once per period, that a call takes longer because the server is unreachable."""
        now = self.clock.monotonic()
        if self._reported is None or now - self._reported >= _QUIET_SECONDS:
            self._reported = now
            down = f" (vcbatch isn't running on {self.state_dir})" if self._is_down() else ""
            _log.warning("%s doesn't answer%s: %s. Trying again ...", self.server, down, error)

    def _is_down(self) -> bool:
        """Whether the server is a local one that doesn't run."""
        return self.state_dir is not None and running_server(self.state_dir) is None
