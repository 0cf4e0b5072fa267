"""Commands in containers: the client's side of Kubernetes' remote command protocol over a WebSocket.

A message is the number of its channel followed by data; the last one, on the channel for errors, is a Status with the
result of the command. Source: kubernetes `staging/src/k8s.io/client-go/tools/remotecommand/websocket.go`;
`v5.channel.k8s.io` is `v4` with a message that closes a channel.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import aiohttp
import msgspec

from vcbatch.api.resources import PODS
from vcbatch.interfaces.api import ApiError
from vcbatch.runtime.client import wire
from vcbatch.runtime.client.http import HttpApi
from vcbatch.runtime.client.rest import no_answer

PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
STDOUT: Final = 1
STDERR: Final = 2

_STDIN: Final = 0
_STATUS: Final = 3
_RESIZE: Final = 4
_CLOSE: Final = 255
_PIECE: Final = 32 * 1024
_EXIT_CODE: Final = "NonZeroExitCode"


class NotRunError(Exception):
    """The command couldn't be run; the message is the node's."""


class RemoteCommand:
    """A running command. Close it in the end; after `output` has ended, `exit_code` is set."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self.exit_code: int | None = None

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """Chunks of output with their stream, until the command has ended. Raises `NotRunError` where it couldn't be
        run, and `ApiError` where the connection is lost before the result is known."""
        try:
            async for message in self._socket:
                if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                    continue
                channel, data = message.data[0], message.data[1:]
                if channel in (STDOUT, STDERR) and data:
                    yield channel, data
                elif channel == _STATUS:
                    self.exit_code = _exit_code(data)
        except (aiohttp.ClientError, OSError) as error:
            raise no_answer(error) from error
        if self.exit_code is None:
            raise ApiError(0, "ConnectionLost", "the connection ended before the command did")

    async def write(self, data: bytes) -> None:
        """Write bytes to its standard input. They are dropped once the command has ended."""
        for start in range(0, len(data), _PIECE):
            await self._send(bytes([_STDIN]) + data[start : start + _PIECE])

    async def close_input(self) -> None:
        """Close its standard input. A server that supports no more than v4 can't be notified."""
        if self._socket.protocol == PROTOCOLS[0]:
            await self._send(bytes([_CLOSE, _STDIN]))

    async def resize(self, *, columns: int, rows: int) -> None:
        """Set the size of the terminal."""
        await self._send(bytes([_RESIZE]) + json.dumps({"Width": columns, "Height": rows}).encode())

    async def close(self) -> None:
        """Close the connection: the server ends a command that still runs."""
        await self._socket.close()

    async def _send(self, data: bytes) -> None:
        try:
            await self._socket.send_bytes(data)
        except (aiohttp.ClientError, OSError):
            return  # the messages before have the result


async def run_command(
    api: HttpApi, pod: str, *, namespace: str, container: str, command: Sequence[str], stdin: bool, tty: bool
) -> RemoteCommand:
    """Start a command in a running container. A terminal has one stream for all output. Raises `ApiError`."""
    flags = {"stdin": stdin, "stdout": True, "stderr": not tty, "tty": tty}
    query = [("container", container), *((name, "true") for name, wanted in flags.items() if wanted)]
    query += [("command", word) for word in command]
    path = PODS.path(namespace=namespace, name=pod, subresource="exec")
    return RemoteCommand(await api.open_socket(path, query=query, protocols=PROTOCOLS))


def _exit_code(data: bytes) -> int:
    """The exit code in the final Status. Raises `NotRunError` where there is none."""
    try:
        status: dict[str, Any] = wire.decode_json(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ApiError(0, "ConnectionLost", f"how the command ended can't be read: {error}") from error
    if status.get("status") == "Success":
        return 0
    if status.get("reason") == _EXIT_CODE:
        causes = (status.get("details") or {}).get("causes") or ()
        for cause in causes:
            text = str(cause.get("message", ""))
            if cause.get("reason") == "ExitCode" and text.isdecimal():
                return int(text)
    raise NotRunError(str(status.get("message") or status.get("reason") or "the command failed"))
