"""Sends one HTTP request as it stands and reads the answer: no redirects, no header of a library's own."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.fidelity.servers import Server

TIMEOUT = 60.0
HANGS_UP = 0
"""The code of an answer that never came: the server closed the connection."""


@dataclass(frozen=True, slots=True)
class Answer:
    code: int
    headers: Sequence[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name), "")

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name]


class Stream:
    """A watch that is open. Events come as decoded lines."""

    def __init__(self, connection: http.client.HTTPSConnection, response: http.client.HTTPResponse) -> None:
        self._connection = connection
        self._response = response

    def read(self, events: int | str) -> list[Any]:
        """The next so many events, or `all` until the end. Raises TimeoutError when they don't come."""
        read: list[Any] = []
        while events == "all" or len(read) < int(events):
            line = self._response.readline()
            if not line:
                break
            read.append(json.loads(line))
        return read

    def close(self) -> None:
        self._response.close()
        self._connection.close()


class Client:
    """One keep-alive connection; streams have one each."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._connection = self._connect()
        self._anonymous: http.client.HTTPSConnection | None = None

    def _connect(self, *, anonymous: bool = False) -> http.client.HTTPSConnection:
        context = self._server.anonymous if anonymous else self._server.context
        return http.client.HTTPSConnection(self._server.host, self._server.port, context=context, timeout=TIMEOUT)

    def close(self) -> None:
        self._connection.close()
        if self._anonymous:
            self._anonymous.close()

    def send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, *, credentials: str | None = None
    ) -> Answer:
        """The whole answer. `credentials`: None the administrator's, "nobody" none, else a bearer token."""
        connection = self._connection
        if credentials is not None:
            connection = self._anonymous = self._anonymous or self._connect(anonymous=True)
        headers = {**self._authorization(credentials), **headers}
        for _ in range(2):  # the first may find a connection that the server ended after it had idled
            try:
                connection.request(method, path, body=body, headers=headers)
                response = connection.getresponse()
                return Answer(response.status, response.getheaders(), response.read())
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                connection.close()
        return Answer(HANGS_UP, [], b"")

    def stream(self, path: str, headers: Mapping[str, str]) -> tuple[Answer, Stream | None]:
        """A watch. Where it is refused the answer is whole and there is no stream."""
        connection = self._connect()
        connection.request("GET", path, headers={**self._authorization(None), **headers})
        response = connection.getresponse()
        if response.status != http.client.OK:
            answer = Answer(response.status, response.getheaders(), response.read())
            connection.close()
            return answer, None
        return Answer(response.status, response.getheaders(), b""), Stream(connection, response)

    def _authorization(self, credentials: str | None) -> dict[str, str]:
        token = self._server.token if credentials is None else "" if credentials == "nobody" else credentials
        return {"Authorization": f"Bearer {token}"} if token else {}
