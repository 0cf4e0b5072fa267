"""The remote command protocol on SPDY: a stream for each channel, opened by the client.

Source: kubernetes `client-go/tools/remotecommand/v4.go`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from vcbatch.local.apiserver.subresources.channels import Input, InputClosed, Message, decode_resize
from vcbatch.local.apiserver.subresources.spdy import ResetReason, SpdyError
from vcbatch.local.apiserver.subresources.streams import Multiplexer, Stream
from vcbatch.local.apiserver.subresources.tunnel import Tunnel

Json = dict[str, Any]

_OUTPUTS = {1: "stdout", 2: "stderr"}
_OPENING_SECONDS = 30.0
_QUEUED = 4
_RESIZE_LIMIT = 4096  # bytes of incomplete window sizes


class SpdyChannels:
    """Channels as streams of a tunnel. `wanted` names those that the client has to open."""

    def __init__(self, tunnel: Tunnel, *, wanted: set[str]) -> None:
        self._tunnel = tunnel
        self._wanted = wanted
        self._streams: dict[str, Stream] = {}
        self._complete = asyncio.Event()
        self._messages: asyncio.Queue[Message | None] = asyncio.Queue(_QUEUED)
        self._multiplexer = Multiplexer(send=tunnel.send, opened=self._opened)
        self._tasks = [asyncio.create_task(self._receive(), name="streams of a command")]

    async def ready(self) -> bool:
        """Whether the client has opened all its streams; waits up to half a minute."""
        waiting = asyncio.create_task(self._complete.wait())
        try:
            await asyncio.wait((waiting, self._tasks[0]), timeout=_OPENING_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            return self._complete.is_set()
        finally:
            waiting.cancel()

    async def messages(self) -> AsyncIterator[Message]:
        while (message := await self._messages.get()) is not None:
            yield message

    async def send(self, stream: int, data: bytes) -> None:
        target = self._streams.get(_OUTPUTS[stream])
        if target is not None:
            await target.write(data)

    async def finish(self, status: Json) -> None:
        with suppress(OSError):
            await self._streams["error"].write(json.dumps(status).encode())
            for stream in self._streams.values():
                await stream.finish()

    async def lost(self) -> None:
        await self._tunnel.lost()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._multiplexer.close()
        await self._tunnel.close()

    def _opened(self, stream: Stream) -> None:
        kind = stream.headers.get("streamtype", "")
        if kind not in self._wanted or kind in self._streams:
            self._tasks.append(asyncio.create_task(_refuse(stream)))
            return
        self._streams[kind] = stream
        if kind == "stdin":
            self._tasks.append(asyncio.create_task(self._read_input(stream), name="input of a command"))
        elif kind == "resize":
            self._tasks.append(asyncio.create_task(self._read_sizes(stream), name="window of a command"))
        if self._wanted == self._streams.keys():
            self._complete.set()

    async def _receive(self) -> None:
        """Process data until the client disconnects or violates the protocol."""
        with suppress(OSError, SpdyError):
            async for data in self._tunnel.messages():
                await self._multiplexer.feed(data)
        await self._messages.put(None)

    async def _read_input(self, stream: Stream) -> None:
        with suppress(OSError):
            while data := await stream.read():
                await self._messages.put(Input(data))
            await self._messages.put(InputClosed())

    async def _read_sizes(self, stream: Stream) -> None:
        pending = b""
        with suppress(OSError):
            while data := await stream.read():
                *documents, pending = (pending + data).split(b"\n")
                if len(pending) > _RESIZE_LIMIT:
                    return
                for document in documents:
                    size = decode_resize(document)
                    if size is not None:
                        await self._messages.put(size)


async def _refuse(stream: Stream) -> None:
    with suppress(OSError):
        await stream.abandon(ResetReason.PROTOCOL_ERROR)
