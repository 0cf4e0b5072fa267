"""A Service in small: connections to one port go to the backends in turn, and past one that doesn't answer."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Self

_PROBE_SECONDS = 0.2


class Balancer:
    """Runs in a thread of its own. As with a Service, a backend that isn't ready gets no new connections; one that
    refuses a connection is passed over at once, and connections that are open when it dies are lost."""

    def __init__(self, backends: Mapping[int, Callable[[], bool]]) -> None:
        """Ports, and whether what listens there is ready."""
        self._ready = dict(backends)
        self._backends = list(backends)
        self._turn = itertools.count()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(30)
        self._watching = asyncio.run_coroutine_threadsafe(self._watch(), self._loop)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    async def _listen(self) -> asyncio.Server:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _watch(self) -> None:
        while True:
            answers = {port: await asyncio.to_thread(ready) for port, ready in self._ready.items()}
            self._backends = [port for port, ready in answers.items() if ready]
            await asyncio.sleep(_PROBE_SECONDS)

    async def _close(self) -> None:
        self._server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        backend = await self._backend()
        # Cancelled only when the balancer ends; a task that says so would be reported by asyncio's streams.
        with suppress(asyncio.CancelledError):
            if backend is not None:
                there, to = backend
                await asyncio.gather(_pour(reader, to), _pour(there, writer))
        writer.close()

    async def _backend(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        first, backends = next(self._turn), self._backends
        for number in range(len(backends)):
            port = backends[(first + number) % len(backends)]
            with suppress(OSError):
                return await asyncio.open_connection("127.0.0.1", port)
        return None


async def _pour(source: asyncio.StreamReader, into: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await source.read(65536):
            into.write(chunk)
            await into.drain()
    with suppress(OSError):
        into.close()
