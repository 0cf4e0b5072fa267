"""`pods/portforward`: connections to ports of a pod, as pairs of SPDY streams, inside a WebSocket or directly.

A client opens two streams for each connection, one for its data and one for an error, both with the same request id.
Source: kubernetes `staging/src/k8s.io/kubelet/pkg/cri/streaming/portforward`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass

from vcbatch.api.resources import PODS
from vcbatch.local.apiserver.apierrors import StatusError, bad_request
from vcbatch.local.apiserver.registry import HandlerRequest, Reply
from vcbatch.local.apiserver.subresources.channels import V1, V1_BASE64, V4, V4_BASE64
from vcbatch.local.apiserver.subresources.exec import kubelet_of, require_node
from vcbatch.local.apiserver.subresources.port_channels import (
    MAX_PORTS,
    ChannelForwarder,
    Dial,
    Streams,
    parse_port,
    refusal,
)
from vcbatch.local.apiserver.subresources.spdy import ResetReason, SpdyError
from vcbatch.local.apiserver.subresources.streams import Multiplexer, Send, Stream
from vcbatch.local.apiserver.subresources.tunnel import Connection, can_take_over, take_over
from vcbatch.local.apiserver.subresources.websocket import NO_PROTOCOL, WebSocket

log = logging.getLogger(__name__)

_STREAM_PROTOCOL = "portforward.k8s.io"
PROTOCOL = f"SPDY/3.1+{_STREAM_PROTOCOL}"
_CHANNEL_PROTOCOLS = (V4, V4_BASE64, V1, V1_BASE64, NO_PROTOCOL)
"""A kubelet refuses the two of v1, which differ from v4 for commands only."""

_PAIR_SECONDS = 30.0  # how long one stream of a pair waits for the other
_CHUNK = 32 * 1024


async def forward_ports(request: HandlerRequest) -> Reply | None:
    """Connects the client with ports of a pod, until it disconnects."""
    namespace, name = request.ctx.namespace or "", request.name
    request.operations.get(PODS, request.ctx.namespace, name)
    require_node(request)
    kubelet = kubelet_of(request)

    async def dial(port: int) -> Streams:
        return await kubelet.dial(namespace, name, port)

    if can_take_over(request):
        await _forward(take_over(request, (_STREAM_PROTOCOL,)), pod=name, dial=dial)
        return None
    socket = WebSocket(request)
    if PROTOCOL in socket.offered:
        await socket.accept(PROTOCOL)
        await _forward(socket, pod=name, dial=dial)
    else:
        protocol = socket.choose(_CHANNEL_PROTOCOLS)
        forwarder = ChannelForwarder(pod=name, ports=_asked_ports(request), dial=dial, socket=socket)
        await socket.accept(protocol)
        await forwarder.run()
        await socket.close()
    return None


def _asked_ports(request: HandlerRequest) -> list[int]:
    """The ports in the query: a client without streams lists them in advance."""
    texts = [text for value in request.query.get("ports") or () for text in value.split(",")]
    ports = [parse_port(text) for text in texts]
    if not ports or None in ports or len(ports) > MAX_PORTS:
        given = ",".join(texts)
        raise bad_request(f'query parameter "ports": {given!r} is not 1 to {MAX_PORTS} port numbers')
    return [port for port in ports if port is not None]


async def _forward(connection: Connection, *, pod: str, dial: Dial) -> None:
    forwarder = PortForwarder(pod=pod, dial=dial, send=connection.send)

    async def receive() -> None:
        async for message in connection.messages():
            await forwarder.feed(message)

    await serve(forwarder, receive(), connection.lost())
    await connection.close()


async def serve(forwarder: PortForwarder, receiving: Awaitable[None], lost: Awaitable[None]) -> None:
    """Serve until the client disconnects or violates the protocol; then close all connections."""
    tasks = [asyncio.ensure_future(receiving), asyncio.ensure_future(lost)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if tasks[0].done():
            tasks[0].result()
    except SpdyError as error:
        log.warning("port-forward: protocol error of the client: %s", error)
        with suppress(OSError):
            await forwarder.go_away()
    except OSError:
        pass  # the client has disconnected
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await forwarder.close()


@dataclass(slots=True, kw_only=True)
class _Pair:
    port: int
    data: Stream | None = None
    error: Stream | None = None
    expiry: asyncio.TimerHandle | None = None


class PortForwarder:
    """Pairs streams, and transfers the data of each pair over a connection that `dial` opens."""

    def __init__(self, *, pod: str, dial: Dial, send: Send) -> None:
        self._pod = pod
        self._dial = dial
        self._multiplexer = Multiplexer(send=send, opened=self._opened)
        self._waiting: dict[str, _Pair] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def feed(self, data: bytes) -> None:
        """Process received data. Raises `SpdyError`."""
        await self._multiplexer.feed(data)

    async def go_away(self) -> None:
        await self._multiplexer.go_away()

    async def close(self) -> None:
        self._multiplexer.close()
        for pair in self._waiting.values():
            if pair.expiry:
                pair.expiry.cancel()
        self._waiting.clear()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _opened(self, stream: Stream) -> None:
        kind, port = stream.headers.get("streamtype", ""), parse_port(stream.headers.get("port", ""))
        request = stream.headers.get("requestid", "")
        if port is None or kind not in ("data", "error"):
            self._spawn(stream.abandon(ResetReason.PROTOCOL_ERROR))
            return
        pair = self._waiting.get(request)
        if pair is None:
            pair = self._waiting[request] = _Pair(port=port)
            pair.expiry = asyncio.get_running_loop().call_later(_PAIR_SECONDS, self._expire, request)
        taken = pair.data if kind == "data" else pair.error
        if taken is not None or pair.port != port:
            self._spawn(stream.abandon(ResetReason.PROTOCOL_ERROR))
            return
        if kind == "data":
            pair.data = stream
        else:
            pair.error = stream
        if pair.data and pair.error:
            del self._waiting[request]
            if pair.expiry:
                pair.expiry.cancel()
            self._spawn(self._connect(pair.port, pair.data, pair.error))

    def _expire(self, request: str) -> None:
        pair = self._waiting.pop(request, None)
        stream = pair and (pair.data or pair.error)
        if stream:
            self._spawn(stream.abandon())

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(_quietly(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, port: int, data: Stream, error: Stream) -> None:
        try:
            reader, writer = await self._dial(port)
        except (OSError, StatusError) as failure:
            await error.write(refusal(self._pod, port, failure))
            await error.finish()
            await data.finish()
            return
        upload = asyncio.create_task(_upload(data, writer))
        try:
            # The pod's side decides when it ends: a client may close its half and continue to read.
            while chunk := await reader.read(_CHUNK):
                await data.write(chunk)
            await data.finish()
        except OSError:
            await data.abandon()
        finally:
            upload.cancel()
            await asyncio.gather(upload, return_exceptions=True)
            writer.transport.abort()
        await error.finish()


async def _quietly(work: Awaitable[None]) -> None:
    """Await `work`; an error of one connection doesn't affect the others."""
    with suppress(OSError):
        await work


async def _upload(data: Stream, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await data.read():
            writer.write(chunk)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:
        writer.transport.abort()  # wakes the reading side, which closes the connection
