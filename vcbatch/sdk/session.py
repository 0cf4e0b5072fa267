"""The connection of one client, which opens when it is first needed."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.random import SystemRandom
from vcbatch.sdk.connecting import Place
from vcbatch.sdk.errors import translated

if TYPE_CHECKING:
    from vcbatch.runtime.client import HttpApi

_RETRIES = 4
_WATCHES = 64


class Session:
    """One server, and an HTTP client on it that belongs to one event loop."""

    def __init__(self, place: Place, *, namespace: str | None, timeout: float) -> None:
        self.place = place
        self.namespace = namespace or place.connection.namespace
        self.clock = SystemClock()
        self.random = SystemRandom()
        self._timeout = timeout
        self._api: HttpApi | None = None

    @property
    def server(self) -> str:
        return self.place.connection.server

    @property
    def state_dir(self) -> Path | None:
        """Where the server keeps its state, if that is on this machine."""
        return self.place.state_dir

    async def api(self) -> HttpApi:
        if self._api is None:
            # The HTTP library takes longer to import than everything else together.
            from vcbatch.runtime.client import HttpApi
            from vcbatch.runtime.rest import ClientLimits
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

    def translated(self) -> AbstractContextManager[None]:
        """What the transport raises inside, as errors of the SDK."""
        return translated(self.server)
