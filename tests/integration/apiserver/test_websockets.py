"""Every WebSocket protocol of every subresource, spoken by a client that is not ours, with a real kubelet behind."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import pytest
import yaml
from kubernetes import client, config
from kubernetes.stream import portforward, stream

from tests.integration.kubelet.world import no_process
from tests.support.up import RunningVcbatch

pytestmark = pytest.mark.xdist_group("websockets")

PATIENCE = 60.0
LONG = f"3{os.getpid()}.0"
"""A time to sleep that no other test run uses, so that a leftover is found by it."""

PODS = "/api/v1/namespaces/default/pods"
EVERY_BYTE = bytes(range(256)) * 256
NONE = ""
V1, V1_BASE64 = "channel.k8s.io", "base64.channel.k8s.io"
V4, V4_BASE64, V5 = "v4.channel.k8s.io", "v4.base64.channel.k8s.io", "v5.channel.k8s.io"
BEARER = "base64url.bearer.authorization.k8s.io."

ECHO = """
import socket, threading
def serve(connection):
    while data := connection.recv(65536):
        connection.sendall(data)
    connection.close()
listener = socket.create_server(("0.0.0.0", 7000))
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""


def pod(name: str, *command: str, **fields: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "any", "command": list(command), **fields}
    spec = {
        "nodeName": "local",
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


MANIFESTS = [
    pod("sleeper", "sleep", "3600"),
    pod("talker", "sh", "-c", 'while read line; do echo "got $line"; done', stdin=True),
    pod("printer", "python3", "-c", "import sys; sys.stdout.buffer.write(bytes(range(256)) * 256 + b'\\n')"),
    pod("echo", "python3", "-c", ECHO),
]


class Server:
    """A running `vcbatch up` and a client session."""

    def __init__(self, up: RunningVcbatch) -> None:
        self.up = up
        document = yaml.safe_load(up.kubeconfig.read_text())
        cluster = document["clusters"][0]["cluster"]
        self.url: str = cluster["server"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self.ssl = ssl.create_default_context(cadata=authority)
        self.token: str = document["users"][0]["user"]["token"]

    @asynccontextmanager
    async def connect(
        self, path: str, *protocols: str, query: Any = (), authorized: bool = True
    ) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        headers = {"Authorization": f"Bearer {self.token}"} if authorized else {}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.ws_connect(
                f"{self.url}{path}?{urlencode(query)}", ssl=self.ssl, protocols=[one for one in protocols if one]
            ) as socket,
        ):
            yield socket

    async def refusal(self, path: str, *protocols: str, **options: Any) -> aiohttp.WSServerHandshakeError:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            async with self.connect(path, *protocols, **options):
                pass
        return refused.value


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with RunningVcbatch(tmp_path_factory.mktemp("websockets")) as up:
        core = core_api(up.kubeconfig)
        for manifest in MANIFESTS:
            core.create_namespaced_pod("default", manifest)
        asyncio.run(until(lambda: all_started(core)))
        yield Server(up)


def core_api(kubeconfig: Path) -> client.CoreV1Api:
    configuration = client.Configuration()
    config.load_kube_config(str(kubeconfig), client_configuration=configuration)
    return client.CoreV1Api(client.ApiClient(configuration))


async def all_started(core: client.CoreV1Api) -> bool:
    phases = {one.metadata.name: one.status.phase for one in core.list_namespaced_pod("default").items}
    return phases.pop("printer") == "Succeeded" and set(phases.values()) == {"Running"}


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await holds():  # noqa: ASYNC110
            await asyncio.sleep(0.05)


def message(protocol: str, channel: int, data: bytes) -> bytes | str:
    if "base64." in protocol:
        return f"{channel}{base64.b64encode(data).decode()}"
    return bytes([channel]) + data


async def say(socket: aiohttp.ClientWebSocketResponse, protocol: str, channel: int, data: bytes) -> None:
    said = message(protocol, channel, data)
    await (socket.send_str(said) if isinstance(said, str) else socket.send_bytes(said))


def heard(protocol: str, received: aiohttp.WSMessage) -> tuple[int, bytes]:
    if "base64." in protocol:
        assert received.type is aiohttp.WSMsgType.TEXT
        return int(received.data[0]), base64.b64decode(received.data[1:], validate=True)
    assert received.type is aiohttp.WSMsgType.BINARY
    return received.data[0], received.data[1:]


async def everything(socket: aiohttp.ClientWebSocketResponse, protocol: str) -> dict[int, bytes]:
    """What comes on each channel until the server closes."""
    found: dict[int, bytes] = {}
    async with asyncio.timeout(PATIENCE):
        async for received in socket:
            channel, data = heard(protocol, received)
            found[channel] = found.get(channel, b"") + data
    assert socket.close_code == 1000
    return found


CHANNEL_PROTOCOLS = [NONE, V1, V1_BASE64, V4, V4_BASE64, V5]
COMMAND = f"head -c {len(EVERY_BYTE)}; printf oops >&2; exit 3"


@pytest.mark.parametrize("protocol", CHANNEL_PROTOCOLS)
async def test_exec_carries_any_byte_and_the_exit_code(server: Server, protocol: str) -> None:
    query = [("stdin", 1), ("stdout", 1), ("stderr", 1), *(("command", word) for word in ("sh", "-c", COMMAND))]
    async with server.connect(f"{PODS}/sleeper/exec", protocol, query=query) as socket:
        assert socket.protocol == (protocol or None)
        for start in range(0, len(EVERY_BYTE), 5000):
            await say(socket, protocol, 0, EVERY_BYTE[start : start + 5000])
        found = await everything(socket, protocol)
    failure = found.pop(3)
    assert found == {1: EVERY_BYTE, 2: b"oops"}
    words = "command terminated with non-zero exit code: exit status 3"
    if protocol in (V4, V4_BASE64, V5):
        status = json.loads(failure)
        assert (status["message"], status["details"]["causes"][0]["message"]) == (words, "3")
    else:
        assert failure.decode() == words


@pytest.mark.parametrize("protocol", CHANNEL_PROTOCOLS)
async def test_success_is_a_status_from_the_fourth_version_on(server: Server, protocol: str) -> None:
    query = [("stdout", 1), ("command", "echo"), ("command", "hi")]
    async with server.connect(f"{PODS}/sleeper/exec", protocol, query=query) as socket:
        found = await everything(socket, protocol)
    if protocol in (V4, V4_BASE64, V5):
        assert json.loads(found.pop(3))["status"] == "Success"
    assert found == {1: b"hi\n"}


@pytest.mark.parametrize("protocol", [V1, V4_BASE64])
async def test_streams_that_are_not_asked_for_are_not_carried(server: Server, protocol: str) -> None:
    query = [("stdout", 1), *(("command", word) for word in ("sh", "-c", "echo no >&2; echo yes; cat"))]
    async with server.connect(f"{PODS}/sleeper/exec", protocol, query=query) as socket:
        await say(socket, protocol, 0, b"input")
        found = await everything(socket, protocol)
    assert {channel: data for channel, data in found.items() if channel != 3} == {1: b"yes\n"}


async def test_messages_that_are_not_encoded_as_agreed_are_ignored(server: Server) -> None:
    query = [("stdin", 1), ("stdout", 1), ("command", "head"), ("command", "-c"), ("command", "5")]
    async with server.connect(f"{PODS}/sleeper/exec", V4_BASE64, query=query) as socket:
        for text in ("", "0", "0???", "0aGVsbG8", "9aGVsbG8=", "0aGVs\r\nbG8="):
            await socket.send_str(text)
        assert (await everything(socket, V4_BASE64))[1] == b"hello"


@pytest.mark.parametrize("protocol", CHANNEL_PROTOCOLS)
async def test_attach_joins_a_running_container(server: Server, protocol: str) -> None:
    query = [("stdin", 1), ("stdout", 1)]
    async with server.connect(f"{PODS}/talker/attach", protocol, query=query) as socket:
        await say(socket, protocol, 0, b"you\n")
        found = b""
        async with asyncio.timeout(PATIENCE):
            while b"got you\n" not in found:
                channel, data = heard(protocol, await socket.receive())
                assert channel == 1
                found += data


@pytest.mark.parametrize("protocol", [NONE, V1, V1_BASE64, V4, V4_BASE64])
async def test_ports_have_a_data_and_an_error_channel_each(server: Server, protocol: str) -> None:
    async with server.connect(f"{PODS}/echo/portforward", protocol, query=[("ports", "7000,7001")]) as socket:
        assert socket.protocol == (protocol or None)
        await say(socket, protocol, 0, EVERY_BYTE)
        found: dict[int, bytes] = dict.fromkeys(range(4), b"")
        async with asyncio.timeout(PATIENCE):
            while len(found[0]) < 2 + len(EVERY_BYTE) or b"refused" not in found[3]:
                channel, data = heard(protocol, await socket.receive())
                found[channel] += data
    seven, eight = struct.pack("<H", 7000), struct.pack("<H", 7001)
    assert (found[0], found[1], found[2]) == (seven + EVERY_BYTE, seven, eight)
    assert found[3].startswith(eight + b"error forwarding port 7001 to pod echo")


@pytest.mark.parametrize("protocol", [NONE, "binary.k8s.io", "base64.binary.k8s.io", "anything"])
async def test_a_watch_is_json_in_text_frames_under_any_protocol(server: Server, protocol: str) -> None:
    query = [("watch", 1), ("fieldSelector", "metadata.name=sleeper"), ("timeoutSeconds", 1)]
    async with server.connect(PODS, protocol, query=query) as socket:
        assert socket.protocol == (protocol or None)
        first = await socket.receive(PATIENCE)
        assert first.type is aiohttp.WSMsgType.TEXT
        event = json.loads(first.data)
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "sleeper")
        assert (await socket.receive(PATIENCE)).type is aiohttp.WSMsgType.CLOSE
        assert socket.close_code == 1000


async def test_each_event_of_a_watch_is_a_message(server: Server) -> None:
    async with server.connect(PODS, query=[("watch", 1), ("timeoutSeconds", 1)]) as socket:
        names = {json.loads((await socket.receive(PATIENCE)).data)["object"]["metadata"]["name"] for _ in MANIFESTS}
    assert names == {manifest["metadata"]["name"] for manifest in MANIFESTS}


@pytest.mark.parametrize("protocol", [NONE, "binary.k8s.io", "base64.binary.k8s.io"])
async def test_a_log_carries_any_byte(server: Server, protocol: str) -> None:
    found = b""
    async with server.connect(f"{PODS}/printer/log", protocol) as socket, asyncio.timeout(PATIENCE):
        assert socket.protocol == (protocol or None)
        async for received in socket:
            assert received.type is (aiohttp.WSMsgType.TEXT if "base64" in protocol else aiohttp.WSMsgType.BINARY)
            assert len(received.data) <= 64 * 1024
            found += base64.b64decode(received.data) if "base64" in protocol else received.data
        assert socket.close_code == 1000
    assert found == EVERY_BYTE + b"\n"


@pytest.mark.parametrize(
    ("path", "protocols", "code"),
    [
        ("sleeper/exec?stdout=1&command=true", ("v1.channel.k8s.io",), 403),
        ("sleeper/exec?stdout=1&command=true", ("binary.k8s.io",), 403),
        ("talker/attach?stdout=1", ("v2.channel.k8s.io", "x"), 403),
        ("echo/portforward?ports=7000", (V5,), 403),
        ("echo/portforward", (V4,), 400),
        ("printer/log", (V4,), 403),
        ("?watch=1", ("binary.k8s.io", "base64.binary.k8s.io"), 400),
        ("nobody/exec?stdout=1&command=true", (V4,), 404),
        ("nobody/log", (), 404),
        ("?watch=1&timeoutSeconds=x", (), 400),
    ],
)
async def test_what_cannot_be_served_refuses_the_handshake(
    server: Server, path: str, protocols: tuple[str, ...], code: int
) -> None:
    path, _, query = path.partition("?")
    asked = [tuple(one.split("=")) for one in query.split("&") if one]
    refused = await server.refusal(f"{PODS}/{path}".rstrip("/"), *protocols, query=asked)
    assert refused.status == code


@pytest.mark.parametrize("offered", [(V1_BASE64, V4), (V4, V1_BASE64), ("x", V1), (V4, V5)])
async def test_the_client_prefers_its_first_protocol_and_the_server_the_fifth(
    server: Server, offered: tuple[str, ...]
) -> None:
    query = [("stdout", 1), ("command", "true")]
    async with server.connect(f"{PODS}/sleeper/exec", *offered, query=query) as socket:
        assert socket.protocol == (V5 if V5 in offered else next(one for one in offered if one != "x"))


async def test_a_client_that_leaves_ends_its_command(server: Server) -> None:
    query = [("stdin", 1), ("stdout", 1), *(("command", word) for word in ("sh", "-c", f"echo begun; sleep {LONG}"))]
    async with server.connect(f"{PODS}/sleeper/exec", V1, query=query) as socket:
        assert heard(V1, await socket.receive(PATIENCE)) == (1, b"begun\n")

    await no_process(LONG)


# -- the token of a browser ------------------------------------------------------------------------------------------


def bearer(token: str | bytes) -> str:
    data = token.encode() if isinstance(token, str) else token
    return BEARER + base64.urlsafe_b64encode(data).decode().rstrip("=")


@pytest.mark.parametrize(
    ("path", "protocol"),
    [
        (f"{PODS}/sleeper/exec?stdout=1&command=true", V4_BASE64),
        (f"{PODS}?watch=1&timeoutSeconds=1", "base64.binary.k8s.io"),
        (f"{PODS}/printer/log", "base64.binary.k8s.io"),
        (f"{PODS}/echo/portforward?ports=7000", V4),
    ],
)
@pytest.mark.parametrize("token_first", [True, False])
async def test_the_token_may_be_a_subprotocol_and_is_never_sent_back(
    server: Server, path: str, protocol: str, token_first: bool
) -> None:
    route, _, query = path.partition("?")
    asked = [tuple(one.split("=")) for one in query.split("&") if one]
    token = bearer(server.token)
    offered = (token, protocol) if token_first else (protocol, token)
    async with server.connect(route, *offered, query=asked, authorized=False) as socket:
        assert socket.protocol == protocol
    for log in server.up.state.rglob("*.log"):
        text = log.read_text(errors="replace")
        assert token not in text and server.token not in text


@pytest.mark.parametrize(
    ("offered", "code"),
    [
        (lambda token: (bearer(token),), 401),
        (lambda token: (bearer(token), bearer(token), V4), 401),
        (lambda token: (bearer("wrong"), V4), 401),
        (lambda token: (bearer(b"\xff\xfe"), V4), 401),
        (lambda token: (BEARER + "a", V4), 401),
        (lambda token: (BEARER, V4), 403),
        (lambda token: (V4,), 403),
    ],
)
async def test_a_token_that_is_wrong_or_alone_is_refused(
    server: Server, offered: Callable[[str], tuple[str, ...]], code: int
) -> None:
    query = [("stdout", 1), ("command", "true")]
    refused = await server.refusal(f"{PODS}/sleeper/exec", *offered(server.token), query=query, authorized=False)
    assert refused.status == code
    assert server.token not in str(refused.headers)


# -- the official client ----------------------------------------------------------------------------------------------


def test_the_python_client_runs_commands_and_reaches_ports(server: Server) -> None:
    core = core_api(server.up.kubeconfig)
    command = ["sh", "-c", "read line; echo $line; exit 4"]
    session = stream(
        core.connect_get_namespaced_pod_exec,
        "sleeper", "default", command=command, stdin=True, stdout=True, stderr=True, _preload_content=False,
    )  # fmt: skip
    session.write_stdin("hello\n")
    session.run_forever(timeout=PATIENCE)
    assert (session.read_stdout(), session.returncode) == ("hello\n", 4)
    forward = portforward(
        core_api(server.up.kubeconfig).connect_get_namespaced_pod_portforward, "echo", "default", ports="7000"
    )
    connection = forward.socket(7000)
    connection.settimeout(PATIENCE)
    connection.sendall(EVERY_BYTE)
    found = b""
    while len(found) < len(EVERY_BYTE):
        found += connection.recv(65536)
    connection.close()
    assert found == EVERY_BYTE
