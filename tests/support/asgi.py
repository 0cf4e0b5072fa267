"""One HTTP request to an ASGI application, without a socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

JSON_TYPE = {"content-type": "application/json"}


@dataclass(frozen=True, kw_only=True)
class Reply:
    """The response."""

    code: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def ask(
    app: Any,
    method: str,
    path: str,
    body: Any = None,
    *,
    headers: Mapping[str, str] = JSON_TYPE,
    chunks: Iterable[bytes] | None = None,
) -> Reply:
    """Send the request. `body`: bytes as they are, anything else as JSON. `chunks` replace it; after the last one the
    client sends nothing more, not even the end of the body."""
    content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    waiting = [{"type": "http.request", "body": content, "more_body": False}]
    if chunks is not None:
        waiting = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    sent: list[Any] = []

    async def receive() -> Any:
        if waiting:
            return waiting.pop(0)
        return await asyncio.get_running_loop().create_future()

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "path": path,
        "raw_path": path.encode(), "query_string": b"", "root_path": "", "scheme": "https", "client": None,
        "server": ("test", 443), "headers": [(key.encode(), value.encode()) for key, value in headers.items()],
    }  # fmt: skip
    await app(scope, receive, send)
    start = next(message for message in sent if message["type"] == "http.response.start")
    return Reply(
        code=start["status"],
        headers={key.decode().lower(): value.decode() for key, value in start["headers"]},
        body=b"".join(message.get("body", b"") for message in sent if message["type"] == "http.response.body"),
    )
