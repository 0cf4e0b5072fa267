"""HTTP over raw sockets: request heads that are sent slowly, responses that are never read."""

from __future__ import annotations

import asyncio
import select
import socket
import ssl
from pathlib import Path

import yaml

_PATIENCE_MILLISECONDS = 60_000


def trusting(folder: Path) -> ssl.SSLContext:
    """A context that trusts the server of that state directory."""
    return ssl.create_default_context(cafile=str(folder / "pki" / "ca.crt"))


def token_of(folder: Path) -> str:
    """The administrator's token."""
    return yaml.safe_load((folder / "kubeconfig").read_text())["users"][0]["user"]["token"]


def head(method: str, path: str, token: str = "", *more: str) -> bytes:
    """The head of a request, with its empty line."""
    credentials = [f"Authorization: Bearer {token}"] if token else []
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *credentials, *more, "", ""]).encode()


class Stalled:
    """A connection whose responses are never read."""

    def __init__(self, plain: socket.socket, tls: ssl.SSLObject) -> None:
        self._plain = plain
        self._tls = tls

    @classmethod
    async def open(cls, port: int, context: ssl.SSLContext, path: str, token: str) -> Stalled:
        """Connect and send a GET."""
        loop = asyncio.get_running_loop()
        plain = socket.create_connection(("127.0.0.1", port))
        plain.setblocking(False)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                await loop.sock_sendall(plain, outgoing.read())
                incoming.write(await loop.sock_recv(plain, 65536))
        tls.write(head("GET", path, token))
        await loop.sock_sendall(plain, outgoing.read())
        return cls(plain, tls)

    async def cut_off(self) -> None:
        """Return once the server has closed the connection, without reading any of its data."""
        poll = select.poll()
        poll.register(self._plain, select.POLLHUP | select.POLLERR | select.POLLRDHUP)
        assert await asyncio.to_thread(poll.poll, _PATIENCE_MILLISECONDS), "the connection is still there"

    def abort(self) -> None:
        self._plain.close()
