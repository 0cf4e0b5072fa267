"""A small HTTP server in a thread that answers by a function, for programs with their own client."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One received request."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return {key: values[0] for key, values in parse_qs(urlsplit(self.target).query).items()}

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response. `raw` replaces everything else, and the connection is closed after it."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None

    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


def refused(code: int, reason: str, message: str, **headers: str) -> Answer:
    """An error response with a Status object, as from an API server."""
    body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
    return Answer(status=code, body=body, headers=headers)


@dataclass(slots=True)
class Served:
    """A running server: its address and the received requests."""

    url: str
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0


@contextmanager
def scripted(answer: Callable[[Asked], Answer], *, tls: ssl.SSLContext | None = None) -> Iterator[Served]:
    served = Served("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            served.connections += 1
            super().setup()

        def _answer(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            asked = Asked(method=self.command, target=self.path, headers=dict(self.headers), body=self.rfile.read(size))
            served.asked.append(asked)
            given = answer(asked)
            if given.raw is not None:
                self.wfile.write(given.raw)
                self.close_connection = True
                return
            content = given.content()
            self.send_response(given.status)
            for name, value in given.headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base class
            return

    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        setattr(Handler, f"do_{method}", Handler._answer)

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False  # clients may keep connections open

        def handle_error(self, request: object, client_address: object) -> None:
            return  # clients that disconnect in the middle of a request

    server = Server(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    served.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
