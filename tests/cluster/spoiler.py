"""A proxy before the API server that spoils some of the requests: refusals, delays, connections cut in the middle.

It ends TLS with a certificate of the test's authority and passes everything else on as it is, the credentials
included. What is spoiled is decided by one function of the request, so that a test reads as a rule.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Self

import aiohttp
from aiohttp import web
from yarl import URL

from tests.cluster.controlplane import ControlPlane

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "te", "upgrade", "host", "content-length"}
_REASONS = {409: "Conflict", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request. `number` counts those of its kind (writes, watches, other reads), from 1."""

    method: str
    path: str
    watch: bool
    number: int

    @property
    def write(self) -> bool:
        return self.method not in ("GET", "HEAD")

    @property
    def lease(self) -> bool:
        return "/leases" in self.path


@dataclass(frozen=True, slots=True)
class Refuse:
    """An answer in place of the server's, which isn't asked."""

    code: int
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Cut:
    """The server is asked, and the connection ends after so many bytes of its answer; with 0 nothing comes back."""

    after: int = 0


@dataclass(frozen=True, slots=True)
class Wait:
    """The request is passed on after so many seconds."""

    seconds: float


Fault = Refuse | Cut | Wait
Rule = Callable[[Ask], Fault | None]


class Spoiler:
    """Runs from `__enter__` to `__exit__` in a thread of its own. `rule` may be changed at any time."""

    def __init__(self, plane: ControlPlane, rule: Rule) -> None:
        self.rule = rule
        self.spoiled: Counter[str] = Counter()
        """How many requests met each kind of fault."""
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.url = f"https://127.0.0.1:{self.port}"
        self._plane = plane
        self._numbers = {"write": itertools.count(1), "watch": itertools.count(1), "read": itertools.count(1)}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="spoiler", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _start(self) -> None:
        pair = self._plane.authority.serving("spoiler")
        serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        serving.load_cert_chain(str(pair.certificate), str(pair.key))
        trust = ssl.create_default_context(cafile=str(self._plane.authority.certificate))
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=trust, limit=0), auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None),
        )  # fmt: skip
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5, handle_signals=False)
        await self._runner.setup()
        await web.SockSite(self._runner, self._socket, ssl_context=serving).start()

    async def _stop(self) -> None:
        await self._session.close()
        await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        watch = request.query.get("watch") in ("1", "true")
        kind = "watch" if watch else "read" if request.method in ("GET", "HEAD") else "write"
        number = next(self._numbers[kind])
        error = self.rule(Ask(method=request.method, path=request.path, watch=watch, number=number))
        if error is not None:
            self.spoiled[type(error).__name__] += 1
        if isinstance(error, Refuse):
            await request.read()
            return _status(error)
        if isinstance(error, Wait):
            await asyncio.sleep(error.seconds)
        return await self._pass_on(request, error.after if isinstance(error, Cut) else None)

    async def _pass_on(self, request: web.Request, cut_after: int | None) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP}
        url = URL(self._plane.server + request.raw_path, encoded=True)
        try:
            body = await request.read()
            async with self._session.request(
                request.method, url, headers=headers, data=body or None, allow_redirects=False
            ) as answer:
                kept = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP_BY_HOP}
                response = web.StreamResponse(status=answer.status, headers=kept)
                left = cut_after
                if left != 0:
                    await response.prepare(request)
                async for chunk in answer.content.iter_any():
                    if left is not None and len(chunk) >= left:
                        if left:
                            await response.write(chunk[:left])
                        break
                    left = None if left is None else left - len(chunk)
                    await response.write(chunk)
                else:
                    await response.write_eof()
                    return response
        except (aiohttp.ClientError, ConnectionError):
            pass  # one of the two ends is gone; so be the other
        if request.transport is not None:
            request.transport.abort()
        return web.Response()


def _status(error: Refuse) -> web.Response:
    body = {
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "reason": _REASONS[error.code],
        "message": f"spoiled: {HTTPStatus(error.code).phrase}",
        "code": error.code,
    }
    return web.Response(
        status=error.code, text=json.dumps(body), content_type="application/json", headers=dict(error.headers)
    )
