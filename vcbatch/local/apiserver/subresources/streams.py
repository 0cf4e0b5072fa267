"""Many streams on one connection: SPDY from the server's side. The client opens streams; either side closes its
half."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping

from vcbatch.local.apiserver.subresources.spdy import (
    Data,
    Decoder,
    Encoder,
    Frame,
    GoAway,
    Ping,
    Reset,
    ResetReason,
    SpdyError,
    SynReply,
    SynStream,
)

MAX_STREAMS = 512
_BUFFERED = 256 * 1024  # unread bytes of one stream; above, the whole connection waits
_LARGEST_WRITE = 32 * 1024

Send = Callable[[bytes], Awaitable[None]]


class StreamReset(OSError):
    """The other side has reset the stream."""


class Stream:
    """One stream. Reading ends with the client's half; writing is possible until `finish`."""

    def __init__(self, number: int, headers: Mapping[str, str], send: Callable[[Frame], Awaitable[None]]) -> None:
        self.number = number
        self.headers = headers
        self._send = send
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._ended = False
        self._finished = False
        self._reset = False
        self._changed = asyncio.Event()

    @property
    def over(self) -> bool:
        """Whether neither side will send any more."""
        return self._reset or (self._ended and self._finished)

    async def read(self) -> bytes:
        """The next chunk, or b"" once the client has closed its half; raises `StreamReset`."""
        while not self._chunks:
            if self._reset:
                raise StreamReset("the stream was reset")
            if self._ended:
                return b""
            await self._change()
        chunk = self._chunks.popleft()
        self._size -= len(chunk)
        self._changed.set()
        return chunk

    async def write(self, data: bytes) -> None:
        for start in range(0, len(data), _LARGEST_WRITE):
            if self._reset:
                raise StreamReset("the stream was reset")
            await self._send(Data(stream=self.number, data=data[start : start + _LARGEST_WRITE], fin=False))

    async def finish(self) -> None:
        """Close our half."""
        if not self._finished and not self._reset:
            self._finished = True
            await self._send(Data(stream=self.number, data=b"", fin=True))

    async def abandon(self, reason: ResetReason = ResetReason.CANCEL) -> None:
        """Close both halves at once."""
        if not self.over:
            self.drop()
            await self._send(Reset(stream=self.number, reason=reason))

    # Called by the connection ----------------------------------------------------------------------------------------

    async def deliver(self, data: bytes) -> None:
        """Queue data; returns once the buffer is below its limit."""
        if self._ended or self._reset or not data:
            return
        self._chunks.append(data)
        self._size += len(data)
        self._changed.set()
        while self._size > _BUFFERED and not self._reset:
            await self._change()

    def end(self) -> None:
        self._ended = True
        self._changed.set()

    def drop(self) -> None:
        self._reset = True
        self._chunks.clear()
        self._size = 0
        self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()


class Multiplexer:
    """The streams of one connection. `opened` is called with each new one and must not block."""

    def __init__(self, *, send: Send, opened: Callable[[Stream], None]) -> None:
        self._send_bytes = send
        self._opened = opened
        self._decoder = Decoder()
        self._encoder = Encoder()
        self._sending = asyncio.Lock()
        self._streams: dict[int, Stream] = {}
        self._last = 0

    async def feed(self, data: bytes) -> None:
        """Process data from the client; raises `SpdyError` where it isn't SPDY."""
        for frame in self._decoder.feed(data):
            await self._take(frame)

    async def go_away(self) -> None:
        await self._send(GoAway(last_stream=self._last))

    def close(self) -> None:
        """The connection is closed: reset every stream."""
        for stream in self._streams.values():
            stream.drop()
        self._streams.clear()

    async def _take(self, frame: Frame) -> None:
        match frame:
            case SynStream():
                await self._open(frame)
            case Data():
                stream = self._streams.get(frame.stream)
                if stream is None:
                    if frame.stream > self._last:
                        await self._send(Reset(stream=frame.stream, reason=ResetReason.INVALID_STREAM))
                    return
                await stream.deliver(frame.data)
                if frame.fin:
                    stream.end()
                self._forget_if_over(stream)
            case Reset():
                stream = self._streams.pop(frame.stream, None)
                if stream is not None:
                    stream.drop()
            case Ping():
                if frame.number % 2:  # the client's own; an even one would answer ours
                    await self._send(frame)
            case SynReply() | GoAway():
                return

    async def _open(self, frame: SynStream) -> None:
        if frame.stream % 2 == 0 or frame.stream <= self._last:
            raise SpdyError(f"stream {frame.stream} was opened after stream {self._last}")
        self._last = frame.stream
        if len(self._streams) >= MAX_STREAMS:
            await self._send(Reset(stream=frame.stream, reason=ResetReason.REFUSED_STREAM))
            return
        stream = Stream(frame.stream, frame.headers, self._send)
        if frame.fin:
            stream.end()
        self._streams[frame.stream] = stream
        await self._send(SynReply(stream=frame.stream, headers={}, fin=False))
        self._opened(stream)

    async def _send(self, frame: Frame) -> None:
        # Compressed headers must leave in the order in which they were encoded.
        async with self._sending:
            await self._send_bytes(self._encoder.encode(frame))
        if isinstance(frame, Data | Reset) and (stream := self._streams.get(frame.stream)):
            self._forget_if_over(stream)

    def _forget_if_over(self, stream: Stream) -> None:
        if stream.over:
            self._streams.pop(stream.number, None)
