"""Calls the server of the extender plugin over HTTP.

A cycle waits for the response, and so does everything else on its event loop: each response is bounded in time and
size, and all of them together in their share of the time.
"""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit

import msgspec

from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.tls import client_context
from vcbatch.scheduler.framework.consultant import ConsultError

LARGEST_ANSWER = 10 << 20
WINDOW = 10.0
MOST_OF_WINDOW = 5.0
"""Seconds of any ten that may be spent waiting for responses."""
_CHUNK = 64 << 10


class HttpConsultant:
    """Calls one server at a time, over a persistent connection. Not thread-safe."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._connection: http.client.HTTPConnection | None = None
        self._to = ""
        self._window = 0.0
        self._spent = 0.0

    def ask(self, url: str, question: Mapping[str, Any], *, timeout: float) -> object:
        """See `vcbatch.scheduler.framework.consultant.Consultant`."""
        started = self._clock.monotonic()
        if started - self._window > WINDOW:
            self._window, self._spent = started, 0.0
        if self._spent >= MOST_OF_WINDOW:
            raise ConsultError(f"its answers took {self._spent:.1f} s of the last {WINDOW:g} s, so it is given a rest")
        try:
            data = self._exchange(urlsplit(url), msgspec.json.encode(question), started + timeout)
            return msgspec.json.decode(data) if data.strip() else None
        except TimeoutError as error:
            self.close()
            raise ConsultError(f"no answer within {timeout:g} s") from error
        except (http.client.HTTPException, OSError) as error:
            self.close()
            raise ConsultError(str(error) or type(error).__name__) from error
        except (msgspec.DecodeError, RecursionError) as error:
            raise ConsultError(f"its answer isn't JSON: {error}") from error
        finally:
            self._spent += self._clock.monotonic() - started

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _exchange(self, url: SplitResult, body: bytes, deadline: float) -> bytes:
        """Send the request; once more on a new connection where a kept one turns out to be closed."""
        kept = self._connection is not None and self._to == f"{url.scheme}://{url.netloc}"
        try:
            return self._once(url, body, deadline)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            if not kept:
                raise
            self.close()
            return self._once(url, body, deadline)

    def _once(self, url: SplitResult, body: bytes, deadline: float) -> bytes:
        connection = self._connected(url, deadline)
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        connection.request("POST", url.path + (f"?{url.query}" if url.query else ""), body=body, headers=headers)
        self._limit(connection, deadline)
        answer = connection.getresponse()
        data = bytearray()
        while True:
            self._limit(connection, deadline)
            chunk = answer.read1(_CHUNK)
            if not chunk:
                break
            data += chunk
            if len(data) > LARGEST_ANSWER:
                self.close()
                raise ConsultError(f"its answer is larger than {LARGEST_ANSWER} bytes")
        answer.close()
        if answer.status != 200:
            raise ConsultError(f"HTTP {answer.status}")
        return bytes(data)

    def _connected(self, url: SplitResult, deadline: float) -> http.client.HTTPConnection:
        to = f"{url.scheme}://{url.netloc}"
        if self._connection is None or self._to != to:
            self.close()
            host, port = url.hostname or "", url.port
            left = self._left(deadline)
            if url.scheme == "https":
                self._connection = http.client.HTTPSConnection(host, port, timeout=left, context=client_context())
            else:
                self._connection = http.client.HTTPConnection(host, port, timeout=left)
            self._to = to
        else:
            self._limit(self._connection, deadline)
        return self._connection

    def _limit(self, connection: http.client.HTTPConnection, deadline: float) -> None:
        """Limit the next operation of the socket to the deadline."""
        if connection.sock is not None:
            connection.sock.settimeout(self._left(deadline))

    def _left(self, deadline: float) -> float:
        left = deadline - self._clock.monotonic()
        if left <= 0:
            raise TimeoutError
        return left
