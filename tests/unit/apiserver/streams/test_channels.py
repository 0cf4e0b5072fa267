"""The remote command protocol: channels of a WebSocket, and a command at its other end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.apiserver.core.servers import ADMIN, Client, server
from tests.unit.apiserver.kinds.support import PODS, bind, make_pod
from vcbatch.local.apiserver.apierrors import StatusError, bad_request
from vcbatch.local.apiserver.handler import Request
from vcbatch.local.apiserver.request import parse_query
from vcbatch.local.apiserver.subresources import websocket
from vcbatch.local.apiserver.subresources.channels import V4, V5, Input, InputClosed, Resize, decode, exit_status

WAIT = 60.0
QUERY = "?container=c&stdin=1&stdout=1&stderr=1&command=cmd"


class FakeSession:
    """A command that echoes its input in capitals, says `no` on standard error, and ends with its input."""

    def __init__(self, code: int = 0) -> None:
        self.code = code
        self.sizes: list[tuple[int, int]] = []
        self.closed = False
        self.input: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def output(self) -> AsyncGenerator[tuple[int, bytes]]:
        yield 2, b"no"
        while (data := await self.input.get()) is not None:
            yield 1, data.upper()

    async def write(self, data: bytes) -> None:
        self.input.put_nowait(data)

    def close_input(self) -> None:
        self.input.put_nowait(None)

    def resize(self, *, columns: int, rows: int) -> None:
        self.sizes.append((columns, rows))

    async def exit_code(self) -> int:
        return self.code

    def end(self) -> None:
        self.close_input()

    async def close(self) -> None:
        self.closed = True


class FakeKubelet:
    def __init__(self, session: FakeSession | StatusError) -> None:
        self.session = session
        self.asked: dict[str, Any] = {}

    async def exec(self, namespace: str, name: str, container: str, command: Any, **flags: bool) -> FakeSession:
        self.asked = {"where": (namespace, name, container), "command": list(command), **flags}
        if isinstance(self.session, StatusError):
            raise self.session
        return self.session


class Socket:
    """The client's end of an ASGI WebSocket."""

    def __init__(self, protocols: list[str]) -> None:
        self.gone = asyncio.Event()
        self.scope = {"type": "websocket", "subprotocols": protocols, "extensions": {"vcbatch.gone": self.gone}}
        self.to_server: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.sent: list[dict[str, Any]] = []
        self.closed = asyncio.Event()

    def say(self, message: bytes) -> None:
        self.to_server.put_nowait({"type": "websocket.receive", "bytes": message})

    def leave(self) -> None:
        self.to_server.put_nowait({"type": "websocket.disconnect", "code": 1006})

    async def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)

    @property
    def messages(self) -> list[bytes]:
        return [message["bytes"] for message in self.sent if message["type"] == "websocket.send"]

    @property
    def status(self) -> Any:
        return next(json.loads(message[1:]) for message in self.messages if message[0] == 3)


async def request(client: Client, socket: Socket, kubelet: Any, path: str = f"{PODS}/p/exec{QUERY}") -> Any:
    client.kernel.handler.kubelet = kubelet
    route, _, query = path.partition("?")
    asked = Request(
        method="GET",
        path=route,
        query=parse_query(query),
        headers={},
        body=b"",
        user=ADMIN,
        scope=socket.scope,
        receive=socket.to_server.get,
        send=socket.send,
    )
    return await asyncio.wait_for(client.kernel.handler.handle(asked), WAIT)


async def placed(client: Client) -> None:
    await make_pod(client)
    await bind(client)


@pytest.mark.parametrize(("protocols", "chosen"), [([V4], V4), (["v1.x", V4, V5], V5)])
async def test_a_command_is_connected_from_its_input_to_its_exit_code(protocols: list[str], chosen: str) -> None:
    async with server() as client:
        await placed(client)
        session, socket = FakeSession(code=7), Socket(protocols)
        kubelet = FakeKubelet(session)
        for message in (b"\x00hello", b'\x04{"Width": 80, "Height": 24}', b"\x09?", b"", b"\xff\x00"):
            socket.say(message)
        assert await request(client, socket, kubelet) is None
        assert kubelet.asked == {
            "where": ("default", "p", "c"),
            "command": ["cmd"],
            "stdin": True,
            "tty": False,
        }
        assert socket.sent[0] == {"type": "websocket.accept", "subprotocol": chosen}
        assert socket.messages[:2] == [b"\x02no", b"\x01HELLO"]
        assert socket.status == {
            "metadata": {},
            "status": "Failure",
            "message": "command terminated with non-zero exit code: exit status 7",
            "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": "7"}]},
        }
        assert socket.sent[-1] == {"type": "websocket.close", "code": 1000}
        assert session.sizes == [(80, 24)]
        assert session.closed


async def test_a_refusal_of_the_kubelet_is_the_final_status() -> None:
    async with server() as client:
        await placed(client)
        socket = Socket([V5])
        await request(client, socket, FakeKubelet(bad_request("no")))
        assert (socket.status["message"], socket.status["code"]) == ("no", 400)
        assert socket.sent[-1]["type"] == "websocket.close"


async def test_a_client_that_leaves_ends_the_command() -> None:
    async with server() as client:
        await placed(client)
        session, socket = FakeSession(), Socket([V5])
        socket.leave()
        await request(client, socket, FakeKubelet(session))
        assert session.closed


async def test_a_lost_connection_ends_a_command_that_reads_no_input() -> None:
    async with server() as client:
        await placed(client)
        session, socket = FakeSession(), Socket([V5])
        blocked = asyncio.Event()

        async def write(_: bytes) -> None:
            blocked.set()
            await asyncio.Event().wait()

        session.write = write  # type: ignore[method-assign]
        socket.say(b"\x00much")
        running = asyncio.create_task(request(client, socket, FakeKubelet(session)))
        await asyncio.wait_for(blocked.wait(), WAIT)
        socket.gone.set()
        await running
        assert session.closed


async def test_a_silent_connection_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "IDLE_SECONDS", 0.05)
    async with server() as client:
        await placed(client)
        session = FakeSession()
        await request(client, Socket([V5]), FakeKubelet(session))
        assert session.closed


async def test_unknown_protocols_are_refused_with_those_there_are() -> None:
    async with server() as client:
        await placed(client)
        socket = Socket(["v1.channel.k8s.io", "spdy"])
        answer = await request(client, socket, FakeKubelet(FakeSession()))
        assert answer.code == 403
        assert f"{V5}, {V4}" in json.loads(answer.body)["message"]
        assert socket.sent == []


async def test_a_plain_request_is_asked_to_upgrade() -> None:
    async with server() as client:
        await placed(client)
        client.kernel.handler.kubelet = FakeKubelet(FakeSession())  # type: ignore[assignment]
        for answer in (await client.get(f"{PODS}/p/exec{QUERY}"), await client.post(f"{PODS}/p/exec{QUERY}", None)):
            assert (answer.code, answer.message) == (400, "Upgrade request required")


@pytest.mark.parametrize(
    ("message", "meaning"),
    [
        (b"\x00abc", Input(b"abc")),
        (b"\x00", None),
        (b"\x01abc", None),
        (b"\xff\x00", InputClosed()),
        (b"\xff\x01", None),
        (b'\x04{"Width":1,"Height":65535}', Resize(columns=1, rows=65535)),
        (b'\x04{"Width":0,"Height":1}', None),
        (b'\x04{"Width":65536,"Height":1}', None),
        (b'\x04{"Width":true,"Height":1}', None),
        (b'\x04{"Width":1}', None),
        (b"\x04[1,2]", None),
        (b"\x04" + b" " * 1000 + b'{"Width":1,"Height":1}', None),
        (b"", None),
    ],
)
def test_what_a_message_means(message: bytes, meaning: Any) -> None:
    assert decode(message) == meaning


@settings(max_examples=100)
@given(st.binary(max_size=60))
def test_no_message_is_too_strange(message: bytes) -> None:
    decode(message)
    decode(b"\x04" + message)


def test_success_has_no_code() -> None:
    assert exit_status(0) == {"metadata": {}, "status": "Success"}
