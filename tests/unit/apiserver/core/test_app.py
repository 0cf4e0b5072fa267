"""The ASGI face: who gets in, from where, and with how much."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.virtual_time import VirtualClock
from tests.unit.apiserver.core.servers import server, virtual
from vcbatch.hosting.health import Health
from vcbatch.local.apiserver.apierrors import StatusError
from vcbatch.local.apiserver.app import App
from vcbatch.local.apiserver.authn import Authenticator
from vcbatch.local.apiserver.request import BODY_LIMIT
from vcbatch.local.apiserver.websockets import take_token

TOKEN = "the-token"
SECRET = {"authorization": f"Bearer {TOKEN}"}


class Sent:
    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    async def __call__(self, message: dict[str, Any]) -> None:
        self.messages.append(message)

    @property
    def code(self) -> int:
        return self.messages[0]["status"]

    @property
    def body(self) -> Any:
        return json.loads(b"".join(message.get("body", b"") for message in self.messages[1:]))


async def call(
    path: str,
    *,
    method: str = "GET",
    headers: dict[str, str] | None = None,
    chunks: tuple[bytes, ...] = (b"",),
    certificate: dict[str, Any] | None = None,
    health: Health | None = None,
) -> Sent:
    sent = Sent()
    route, _, query = path.partition("?")
    fields = {"host": "127.0.0.1:6443", "content-type": "application/json", **(headers or {})}
    scope = {
        "type": "http",
        "method": method,
        "path": route,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
    }
    messages = [
        {"type": "http.request", "body": chunk, "more_body": index < len(chunks) - 1}
        for index, chunk in enumerate(chunks)
    ]

    async def receive() -> dict[str, Any]:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async with server(health=health) as client:
        app = App(client.kernel.handler, Authenticator(TOKEN), peer_certificate=lambda _scope: certificate)
        await app(scope, receive, sent)
    return sent


@pytest.mark.parametrize(
    ("path", "headers", "code"),
    [
        ("/healthz", {}, 200),
        ("/readyz", {}, 200),
        ("/livez", {}, 200),
        ("/version", {}, 200),
        ("/api/v1/namespaces", {}, 403),
        ("/api", {}, 403),
        ("/openapi/v3", {}, 403),
        ("/api/v1/namespaces", {"authorization": "Bearer wrong"}, 401),
        ("/healthz", {"authorization": "Bearer wrong"}, 401),
        ("/api/v1/namespaces", {"authorization": "Basic dTpw"}, 403),
        ("/api/v1/namespaces", SECRET, 200),
    ],
)
def test_who_gets_in(path: str, headers: dict[str, str], code: int) -> None:
    @virtual
    async def check() -> None:
        assert (await call(path, headers=headers)).code == code

    check()


@pytest.mark.parametrize(
    ("groups", "code"), [(("system:masters",), 200), (("others",), 403), ((), 403)], ids=["admin", "other", "none"]
)
def test_a_client_certificate_says_who_it_is(groups: tuple[str, ...], code: int) -> None:
    organizations = tuple(("organizationName", group) for group in groups)

    @virtual
    async def check() -> None:
        certificate = {"subject": ((("commonName", "someone"),), organizations)}
        assert (await call("/api/v1/namespaces", certificate=certificate)).code == code

    check()


@virtual
async def test_an_administrator_may_act_for_another() -> None:
    sent = await call("/api/v1/nodes", headers={**SECRET, "impersonate-user": "nobody"})

    assert sent.code == 403
    assert sent.body["message"] == (
        'nodes is forbidden: User "nobody" cannot list resource "nodes" in API group "" at the cluster scope'
    )


@virtual
async def test_half_an_impersonation_is_refused() -> None:
    sent = await call("/api/v1/nodes", headers={**SECRET, "impersonate-group": "others"})

    assert (sent.code, sent.body["message"]) == (
        400,
        (
            'requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"others"}, Extra:map[string][]string(nil)} '
            "without impersonating a user name"
        ),
    )


@pytest.mark.parametrize("host", ["evil.example.com", "evil.example.com:6443", "127.0.0.1.evil.example.com", ""])
def test_names_that_are_not_the_servers_are_refused(host: str) -> None:
    @virtual
    async def check() -> None:
        assert (await call("/api/v1/nodes", headers={**SECRET, "host": host})).code == 403

    check()


@virtual
async def test_web_pages_are_refused() -> None:
    assert (await call("/api/v1/nodes", headers={**SECRET, "origin": "https://evil.example.com"})).code == 403
    for other in ("http://127.0.0.1:6443", "https://127.0.0.1:8443", "null", ""):
        assert (await call("/api/v1/nodes", headers={**SECRET, "origin": other})).code == 403
    assert (await call("/api/v1/nodes", headers={**SECRET, "origin": "https://127.0.0.1:6443"})).code == 200


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, 403),
        ({"authorization": "Bearer wrong"}, 401),
        ({**SECRET, "host": "evil.example.com"}, 403),
        ({**SECRET, "origin": "https://evil.example.com"}, 403),
        ({**SECRET, "impersonate-user": "nobody"}, 403),
        (SECRET, 404),
    ],
)
def test_a_websocket_is_asked_who_it_is_before_its_handshake(headers: dict[str, str], code: int) -> None:
    @virtual
    async def check() -> None:
        sent = Sent()
        fields = {"host": "127.0.0.1:6443", **headers}
        scope = {
            "type": "websocket",
            "path": "/api/v1/namespaces/default/pods/p/exec",
            "query_string": b"command=true&stdout=1",
            "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
            "subprotocols": ["v5.channel.k8s.io"],
            "extensions": {"websocket.http.response": {}},
        }

        async def receive() -> dict[str, Any]:
            return {"type": "websocket.connect"}

        async with server() as client:
            await App(client.kernel.handler, Authenticator(TOKEN))(scope, receive, sent)
        assert [message["type"] for message in sent.messages] == [
            "websocket.http.response.start",
            "websocket.http.response.body",
        ]
        assert sent.code == code

    check()


@pytest.mark.parametrize("announced", [True, False], ids=["by its length", "by its chunks"])
def test_too_large_a_body_is_refused(announced: bool) -> None:
    chunk = b"x" * (BODY_LIMIT // 2)

    @virtual
    async def check() -> None:
        headers = {**SECRET, **({"content-length": str(2 * BODY_LIMIT)} if announced else {})}
        sent = await call("/api/v1/nodes", method="POST", headers=headers, chunks=(chunk, chunk, chunk))
        assert (sent.code, sent.body["reason"]) == (413, "RequestEntityTooLarge")

    check()


@virtual
async def test_a_client_that_goes_away_ends_its_watch() -> None:
    sent = await call("/api/v1/namespaces?watch=1", headers=SECRET)

    assert sent.code == 200
    lines = [line for message in sent.messages[1:] for line in message["body"].splitlines()]
    assert all(json.loads(line)["type"] == "ADDED" for line in lines)


@virtual
async def test_a_defect_is_a_500_for_its_request_alone(caplog: pytest.LogCaptureFixture) -> None:
    async with server() as client:
        original = client.kernel.handler.reader.get

        def broken(*_: Any) -> Any:
            raise ZeroDivisionError

        client.kernel.handler.reader.get = broken  # type: ignore[method-assign]
        answer = await client.get("/api/v1/namespaces/default")
        assert (answer.code, answer.body["reason"]) == (500, "InternalError")
        client.kernel.handler.reader.get = original  # type: ignore[method-assign]
        assert (await client.get("/api/v1/namespaces/default")).code == 200


@virtual
async def test_the_token_is_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(0):
        await call("/api/v1/namespaces", headers=SECRET)
        await call("/api/v1/namespaces", headers={"authorization": "Bearer wrong-secret"})

    assert TOKEN not in caplog.text and "wrong-secret" not in caplog.text


@pytest.mark.parametrize(
    ("path", "headers", "code", "text"),
    [
        ("/readyz", SECRET, 500, "[+]ping ok\n[-]a task failed: RuntimeError: no luck\nreadyz check failed\n"),
        ("/readyz", {}, 500, "[+]ping ok\n[-]a task failed: reason withheld\nreadyz check failed\n"),
        ("/readyz/ping", {}, 200, "ok"),
        ("/healthz", {}, 200, "ok"),
        ("/livez", {}, 200, "ok"),
        ("/livez?verbose", {}, 200, "[+]ping ok\nlivez check passed\n"),
    ],
)
def test_a_server_whose_background_task_fails_is_alive_and_not_ready(
    path: str, headers: dict[str, str], code: int, text: str
) -> None:
    @virtual
    async def check() -> None:
        health = Health(VirtualClock())
        health.failed("a task", "RuntimeError: no luck")
        sent = await call(path, headers=headers, health=health)
        assert (sent.code, sent.messages[1]["body"].decode()) == (code, text)

    check()


@virtual
async def test_the_body_of_somebody_unknown_is_not_read() -> None:
    async with server() as client:
        sent = Sent()
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/api/v1/namespaces/default/configmaps",
            "query_string": b"",
            "headers": [(b"host", b"127.0.0.1"), (b"content-length", b"100")],
        }

        async def receive() -> dict[str, Any]:
            raise AssertionError("the body was asked for")

        await App(client.kernel.handler, Authenticator(TOKEN))(scope, receive, sent)
        assert sent.code == 403


def _bearer(token: bytes) -> str:
    return "base64url.bearer.authorization.k8s.io." + base64.urlsafe_b64encode(token).decode().rstrip("=")


@given(st.text(min_size=1, max_size=40), st.lists(st.sampled_from(["a", "v4.channel.k8s.io"]), min_size=1, max_size=3))
def test_a_token_among_the_subprotocols_is_taken_out(token: str, others: list[str]) -> None:
    offered = [others[0], _bearer(token.encode()), *others[1:]]
    headers = [(b"host", b"x"), (b"Sec-WebSocket-Protocol", ", ".join(offered).encode())]
    scope, taken = take_token({"type": "websocket", "subprotocols": offered, "headers": headers})
    assert taken == token
    assert (scope["subprotocols"], scope["headers"]) == (others, [(b"host", b"x")])


@given(st.text(max_size=12))
def test_any_subprotocol_is_a_token_or_refused(text: str) -> None:
    offered = [f"base64url.bearer.authorization.k8s.io.{text}", "a"]
    try:
        scope, _ = take_token({"type": "websocket", "subprotocols": offered, "headers": []})
    except StatusError as refused:
        assert refused.code == 401
    else:
        assert scope["subprotocols"] == ["a"]
