"""`OneShotApi`: the `Api` interface for a command that sends some requests and exits.

Loading asyncio and aiohttp takes longer than most such commands run. So this one speaks HTTP/1.1 by the standard
library and blocks inside its coroutines; `drive` runs them without an event loop.
"""

from __future__ import annotations

import select
import socket
import ssl
import zlib
from collections.abc import Coroutine
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any, Self, TypeVar
from urllib.parse import SplitResult, quote, unquote, urlencode, urlsplit

from vcbatch._version import __version__
from vcbatch.interfaces.api import ApiError
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.client.kubeconfig import CertificateRefusedError, Connection, KubeconfigError
from vcbatch.runtime.client.rest import (
    MAX_REFUSAL,
    ClientLimits,
    Request,
    RestApi,
    no_answer,
    no_credentials,
    refusal,
    too_large,
)
from vcbatch.runtime.client.timed_socket import TimedSocket
from vcbatch.runtime.clock import BlockingClock
from vcbatch.runtime.random import SystemRandom

T = TypeVar("T")

_CHUNK = 256 * 1024
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


class OneShotApi(RestApi):
    """`vcbatch.interfaces.Api` except for watches, over one connection that is kept between requests. Close it, or
    use it as a context manager. One thread at a time."""

    def __init__(
        self,
        connection: Connection,
        *,
        limits: ClientLimits | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
    ) -> None:
        super().__init__(connection, clock=clock or BlockingClock(), random=random or SystemRandom(), limits=limits)
        self._server = urlsplit(connection.server)
        self._open: HTTPConnection | None = None
        self._timed: TimedSocket
        self._tls: ssl.SSLContext | None = None
        self.server_date = ""
        """The header `Date` of the last response: the server's clock, in whole seconds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            opened.close()

    async def _exchange(self, request: Request) -> bytes:
        try:
            authorization = self._connection.credentials.header(now=self._clock.now())
        except Exception as error:  # any error of a credential plugin
            raise no_credentials(self._connection, error) from error
        deadline = self._clock.monotonic() + request.timeout
        opened = self._opened(deadline)
        try:
            opened.request(
                request.method,
                self._target(request),
                body=request.payload,
                headers=self._all_headers(request, authorization),
            )
            response = opened.getresponse()
            code, refused = response.status, response.status >= 300
            self.server_date = response.headers.get("Date") or ""
            data = self._read(response, MAX_REFUSAL if refused else self._limits.max_answer)
        except (OSError, HTTPException, zlib.error) as error:
            self.close()  # no later request may read the rest of this response
            raise no_answer(error) from error
        except ApiError:
            self.close()
            raise
        if refused:
            raise refusal(self._connection, code, data, retry_after=response.headers.get("Retry-After"))
        return data

    # Connection

    def _opened(self, deadline: float) -> HTTPConnection:
        if self._open is not None and _gone(self._open):
            self.close()
        if self._open is None:
            self._open = self._connected(deadline)
        self._timed.deadline = deadline
        return self._open

    def _connected(self, deadline: float) -> HTTPConnection:
        """The open connection. Raises `KubeconfigError` for invalid certificates and unsupported proxies, and
        `CertificateRefusedError`."""
        connection, server = self._connection, self._server
        context = self._tls = self._tls or connection.ssl_context()
        seconds = max(0.001, min(self._limits.connect_timeout, deadline - self._clock.monotonic()))
        host, port = _address(server)
        opened = HTTPConnection(host, port, timeout=seconds)
        proxy = _proxy(connection.proxy_url)
        if proxy is not None:
            opened = HTTPConnection(*_address(proxy), timeout=seconds)
            if context is not None:
                opened.set_tunnel(host, port, _proxy_headers(proxy))
        try:
            opened.connect()
            sock: socket.socket = opened.sock
            if context is not None:
                sock = context.wrap_socket(sock, server_hostname=connection.tls_server_name or host)
        except ssl.SSLCertVerificationError as error:
            opened.close()
            raise CertificateRefusedError.by(connection, error) from error
        except (OSError, HTTPException) as error:
            opened.close()
            raise no_answer(error, sent=False) from error
        self._timed = TimedSocket(sock, deadline=deadline, monotonic=self._clock.monotonic)
        opened.sock = self._timed  # type: ignore[assignment]
        return opened

    # Sending and receiving

    def _target(self, request: Request) -> str:
        target = quote(self._server.path + request.path, safe="/:")
        if request.query:
            target += f"?{urlencode(request.query, quote_via=quote)}"
        if self._connection.proxy_url and self._server.scheme == "http":
            return f"http://{self._server.netloc}{target}"
        return target

    def _all_headers(self, request: Request, authorization: str | None) -> dict[str, str]:
        headers = {"User-Agent": f"vcbatch/{__version__}", **self._connection.headers}
        # For a local server, compression costs more than it saves.
        headers["Accept-Encoding"] = "identity" if self._server.hostname in _LOCAL else "gzip"
        proxy = _proxy(self._connection.proxy_url)
        if proxy is not None and self._server.scheme == "http":
            headers |= _proxy_headers(proxy)
        return headers | self._headers(request, authorization)

    def _read(self, response: HTTPResponse, limit: int) -> bytes:
        unpack = zlib.decompressobj(16 + zlib.MAX_WBITS) if response.headers.get("Content-Encoding") == "gzip" else None
        parts: list[bytes] = []
        size = 0
        while chunk := response.read(_CHUNK):
            # One byte more than allowed, so that a decompression bomb is detected before it is unpacked.
            part = chunk if unpack is None else unpack.decompress(chunk, limit - size + 1)
            size += len(part)
            if size > limit:
                raise too_large(limit)
            parts.append(part)
        if response.length or (unpack is not None and not unpack.eof):
            raise ConnectionError("the connection ended in the midst of the answer")
        return b"".join(parts)


def drive(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits for an event loop, such as one that only uses a `OneShotApi`."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    work.close()
    raise RuntimeError(f"{work!r} waits for an event loop, and there is none")


def _gone(opened: HTTPConnection) -> bool:
    """Whether the server has closed a kept connection, or sent unrequested data."""
    with suppress(OSError, ValueError):
        return opened.sock is None or bool(select.select([opened.sock], [], [], 0)[0])
    return True


def _address(url: SplitResult) -> tuple[str, int]:
    try:
        port = url.port
    except ValueError as error:
        raise KubeconfigError(f"{url.geturl()!r} has no usable port: {error}") from None
    if not url.hostname:
        raise KubeconfigError(f"{url.geturl()!r} names no host")
    return url.hostname, port or (443 if url.scheme == "https" else 80)


def _proxy(text: str | None) -> SplitResult | None:
    if not text:
        return None
    url = urlsplit(text)
    if url.scheme != "http":
        raise KubeconfigError(f"proxy-url: {url.scheme}:// isn't supported here, only http:// (it carries https too)")
    return url


def _proxy_headers(proxy: SplitResult) -> dict[str, str]:
    if not proxy.username:
        return {}
    from base64 import b64encode

    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
