"""The client of one-shot commands, against servers and networks at their worst."""

from __future__ import annotations

import base64
import gzip
import json
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.scripted_http import Answer, Asked, refused, scripted
from tests.support.virtual_time import SeededRandom
from vcbatch.api.pod import Pod
from vcbatch.api.resources import JOBS, NODES, PODS
from vcbatch.interfaces.api import ApiError, PatchKind
from vcbatch.runtime.client.credentials import StaticToken
from vcbatch.runtime.client.kubeconfig import CertificateRefusedError, Connection, KubeconfigError
from vcbatch.runtime.client.oneshot import OneShotApi, drive
from vcbatch.runtime.client.rest import ClientLimits, Unsent
from vcbatch.runtime.clock import BlockingClock


class Impatient(BlockingClock):
    """Waits between tries are remembered, not waited for."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def opened(url: str, *, clock: Impatient | None = None, limits: ClientLimits | None = None, **more: Any) -> OneShotApi:
    connection = Connection(server=url, credentials=StaticToken(token="secret"), **more)
    return OneShotApi(connection, clock=clock or Impatient(), random=SeededRandom(1), limits=limits)


def in_turn(*answers: Answer) -> Callable[[Asked], Answer]:
    """The answers one after the other; the last one again and again."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


NAMED = Answer(body={"metadata": {"name": "x"}})


def test_requests_go_out_as_kubernetes_has_them():
    with scripted(lambda _: NAMED) as served, opened(served.url, headers={"Impersonate-User": "eve"}) as api:
        assert drive(api.get(JOBS, "x", namespace="ns")) == {"metadata": {"name": "x"}}
        drive(api.create(JOBS, {"metadata": {"name": "é"}}, namespace="ns"))
        drive(api.patch(JOBS, "x", {"spec": {}}, namespace="ns", subresource="status", kind=PatchKind.JSON))
        drive(api.replace(NODES, {"metadata": {"name": "n"}}))
        drive(api.delete(JOBS, "x", namespace="ns", uid="u", propagation="Background", grace_seconds=0))
        drive(api.list(PODS, label_selector="a in (b,c)", field_selector="x=y"))
    path = "/apis/batch.volcano.sh/v1alpha1/namespaces/ns/jobs"
    assert [(asked.method, asked.path) for asked in served.asked] == [
        ("GET", f"{path}/x"),
        ("POST", path),
        ("PATCH", f"{path}/x/status"),
        ("PUT", "/api/v1/nodes/n"),
        ("DELETE", f"{path}/x"),
        ("GET", "/api/v1/pods"),
    ]
    first, create, patch, _, delete, listing = served.asked
    assert first.headers["Authorization"] == "Bearer secret"
    assert first.headers["Impersonate-User"] == "eve"
    assert first.headers["User-Agent"].startswith("vcbatch/")
    assert "Content-Type" not in first.headers
    assert create.json() == {"metadata": {"name": "é"}} and create.headers["Content-Type"] == "application/json"
    assert patch.headers["Content-Type"] == "application/json-patch+json"
    assert delete.json() == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u"},
        "propagationPolicy": "Background",
        "gracePeriodSeconds": 0,
    }
    assert listing.query == {"labelSelector": "a in (b,c)", "fieldSelector": "x=y", "limit": "500"}
    assert served.connections == 1


def test_lists_are_read_page_by_page():
    def pages(asked: Asked) -> Answer:
        first = "continue" not in asked.query
        metadata = {"resourceVersion": "7", "continue": "more/="} if first else {"resourceVersion": "9"}
        return Answer(body={"metadata": metadata, "items": [{"metadata": {"name": "a" if first else "b"}}]})

    with scripted(pages) as served, opened(served.url, limits=ClientLimits(page_size=1)) as api:
        listing = drive(api.list(PODS, model=Pod))
    assert [pod.metadata.name for pod in listing.items] == ["a", "b"]
    assert listing.resource_version == "7"
    assert [asked.query.get("continue") for asked in served.asked] == [None, "more/="]


def test_a_list_that_never_ends_is_refused():
    page = Answer(body={"metadata": {"continue": "here"}, "items": [{}]})
    with scripted(lambda _: page) as served, opened(served.url) as api, pytest.raises(ApiError, match="has no end"):
        drive(api.list(PODS))


def test_a_list_whose_snapshot_expired_is_read_in_one_go():
    def answer(asked: Asked) -> Answer:
        if "continue" in asked.query:
            return refused(410, "Expired", "too old")
        token = {"continue": "more"} if "limit" in asked.query else {}
        return Answer(body={"metadata": {"resourceVersion": "8", **token}, "items": [{}]})

    with scripted(answer) as served, opened(served.url) as api:
        assert drive(api.list(PODS)).resource_version == "8"


def test_a_refusal_carries_what_the_status_says():
    with scripted(lambda _: refused(404, "NotFound", 'jobs "x" not found')) as served, opened(served.url) as api:
        with pytest.raises(ApiError) as caught:
            drive(api.get(JOBS, "x", namespace="ns"))
        assert (caught.value.code, caught.value.reason, str(caught.value)) == (404, "NotFound", 'jobs "x" not found')


@pytest.mark.parametrize("body", [b"<html>log in</html>", b"[]", b"", b'{"metadata":', b"\xff\xfe"])
def test_what_is_no_object_is_refused_by_name(body: bytes):
    with scripted(lambda _: Answer(body=body)) as served, opened(served.url) as api:
        for work in (api.get(JOBS, "x", namespace="n"), api.list(JOBS), api.create(JOBS, {}, namespace="n")):
            with pytest.raises(ApiError) as caught:
                drive(work)
            assert caught.value.code == 406


READ = ("get", lambda api: api.get(JOBS, "x", namespace="n"))
SAFE_DELETE = ("delete with a UID", lambda api: api.delete(JOBS, "x", namespace="n", uid="u"))
CREATE = ("create", lambda api: api.create(JOBS, {}, namespace="n"))
PATCH = ("patch", lambda api: api.patch(JOBS, "x", {}, namespace="n"))
DELETE = ("delete", lambda api: api.delete(JOBS, "x", namespace="n"))


@pytest.mark.parametrize("work", [work for _, work in (READ, SAFE_DELETE)], ids=[READ[0], SAFE_DELETE[0]])
@pytest.mark.parametrize("code", [408, 429, 500, 503, 504])
def test_what_may_happen_twice_is_tried_again(work: Any, code: int):
    clock = Impatient()
    answers = in_turn(refused(code, "Some", "trouble"), refused(code, "Some", "trouble"), NAMED)
    with scripted(answers) as served, opened(served.url, clock=clock) as api:
        drive(work(api))
    assert len(served.asked) == 3
    assert len(clock.slept) == 2 and clock.slept[1] > clock.slept[0]


@pytest.mark.parametrize("work", [CREATE[1], PATCH[1], DELETE[1]], ids=[CREATE[0], PATCH[0], DELETE[0]])
@pytest.mark.parametrize(
    ("answer", "tries"),
    [
        (refused(500, "InternalError", "who knows"), 1),
        (Answer(raw=b""), 1),
        (refused(409, "Conflict", "changed"), 1),
        (refused(429, "TooManyRequests", "slow down"), 3),
        (refused(503, "ServiceUnavailable", "later", Retry_After="1"), 3),
    ],
    ids=["500", "no answer", "409", "429", "503 with Retry-After"],
)
def test_a_write_is_sent_again_only_where_nothing_was_done(work: Any, answer: Answer, tries: int):
    with (
        scripted(lambda _: answer) as served,
        opened(served.url, limits=ClientLimits(retries=2)) as api,
        pytest.raises(ApiError),
    ):
        drive(work(api))
    assert len(served.asked) == tries


def test_a_throttled_write_waits_as_long_as_it_was_told():
    clock = Impatient()
    answers = in_turn(refused(429, "TooManyRequests", "later", Retry_After="7"), NAMED)
    with scripted(answers) as served, opened(served.url, clock=clock) as api:
        drive(api.create(JOBS, {}, namespace="n"))
    assert clock.slept == [7.0]


def test_refused_credentials_are_got_anew_once(tmp_path: Path):
    from vcbatch.runtime.client.credentials import TokenFile

    token = tmp_path / "token"
    token.write_text("old")

    def answer(asked: Asked) -> Answer:
        token.write_text("new")
        good = asked.headers["Authorization"] == "Bearer new"
        return NAMED if good else refused(401, "Unauthorized", "Unauthorized")

    with scripted(answer) as served:
        connection = Connection(server=served.url, credentials=TokenFile(path=token))
        with OneShotApi(connection, clock=Impatient()) as api:
            drive(api.create(JOBS, {}, namespace="n"))
    assert len(served.asked) == 2


def test_credentials_that_cant_be_had_are_a_refusal(tmp_path: Path):
    from vcbatch.runtime.client.credentials import TokenFile

    clock = Impatient()
    connection = Connection(server="http://127.0.0.1:1", credentials=TokenFile(path=tmp_path / "none"))
    with OneShotApi(connection, clock=clock) as api, pytest.raises(ApiError) as caught:
        drive(api.get(JOBS, "x", namespace="n"))
    assert caught.value.code == 401 and "no credentials" in str(caught.value)
    assert clock.slept == []  # asking for them again would ask a person twice


def test_a_server_that_isnt_there_is_told_apart_from_one_that_fell_silent():
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        clock = Impatient()
        with opened(f"http://127.0.0.1:{nobody.getsockname()[1]}", clock=clock) as api, pytest.raises(Unsent) as caught:
            drive(api.create(JOBS, {}, namespace="n"))
    assert caught.value.code == 0
    assert len(clock.slept) == ClientLimits().retries


@contextmanager
def raw_server(behave: Callable[[socket.socket], None]) -> Iterator[str]:
    """Accepts connections and hands them to `behave`, one after the other."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    accepted, _ = listening.accept()
                except OSError:
                    return
                with accepted:
                    try:
                        behave(accepted)
                    except OSError:
                        continue  # the client had enough

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
    thread.join()


def test_a_server_that_never_answers_is_given_up():
    def silent(accepted: socket.socket) -> None:
        while accepted.recv(65536):
            pass

    limits = ClientLimits(request_timeout=0.1, retries=0)
    with raw_server(silent) as url, opened(url, limits=limits) as api, pytest.raises(ApiError) as caught:
        drive(api.get(JOBS, "x", namespace="n"))
    assert caught.value.reason == "Timeout"


@pytest.mark.parametrize("begin", [b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: "])
def test_a_server_that_answers_for_ever_is_given_up(begin: bytes):
    """Each byte comes soon enough; the whole never does."""
    given_up = threading.Event()

    def trickle(accepted: socket.socket) -> None:
        accepted.recv(65536)
        accepted.sendall(begin)
        while not given_up.wait(0.01):
            accepted.sendall(b" ")

    limits = ClientLimits(request_timeout=0.3, retries=0)
    with raw_server(trickle) as url:
        try:
            with opened(url, limits=limits) as api, pytest.raises(ApiError) as caught:
                drive(api.get(JOBS, "x", namespace="n"))
        finally:
            given_up.set()
    assert caught.value.reason == "Timeout"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 12\r\n\r\n" + gzip.compress(b"{}" * 99)[:12],
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n",
    ],
    ids=["nothing", "nonsense", "cut short", "cut chunk", "no gzip", "cut gzip", "headers"],
)
def test_half_an_answer_is_no_answer(raw: bytes):
    limits = ClientLimits(retries=1)
    with (
        scripted(lambda _: Answer(raw=raw)) as served,
        opened(served.url, limits=limits) as api,
        pytest.raises(ApiError) as caught,
    ):
        drive(api.get(JOBS, "x", namespace="n"))
    assert (caught.value.code, caught.value.reason) == (0, "ConnectionLost")
    assert len(served.asked) == 2  # and a read is tried again


def test_a_connection_that_the_server_closed_is_opened_anew_even_for_a_write():
    closing = Answer(
        raw=b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"  # kept, as far as the client can see
    )
    with scripted(in_turn(closing, NAMED)) as served, opened(served.url) as api:
        drive(api.get(JOBS, "x", namespace="n"))
        # The server's end of the stream may still be on its way.
        assert api._open is not None
        api._open.sock._sock.settimeout(10)  # type: ignore[union-attr]
        assert api._open.sock._sock.recv(1, socket.MSG_PEEK) == b""  # type: ignore[union-attr]
        drive(api.create(JOBS, {}, namespace="n"))
    assert served.connections == 2


@pytest.mark.parametrize("packed", [False, True])
def test_an_answer_without_bounds_doesnt_fill_the_memory(packed: bool):
    content = b'"' + b"x" * 1_000_000 + b'"'
    answer = (
        Answer(body=gzip.compress(content), headers={"Content-Encoding": "gzip"}) if packed else Answer(body=content)
    )
    limits = ClientLimits(max_answer=10_000, retries=4)
    with (
        scripted(lambda _: answer) as served,
        opened(served.url, limits=limits) as api,
        pytest.raises(ApiError, match="longer than 10000 bytes"),
    ):
        drive(api.get(JOBS, "x", namespace="n"))
    assert len(served.asked) == 1


def test_packed_answers_are_unpacked():
    body = gzip.compress(json.dumps({"metadata": {"name": "x"}}).encode())
    answer = Answer(body=body, headers={"Content-Encoding": "gzip"})
    with scripted(lambda _: answer) as served, opened(served.url) as api:
        assert drive(api.get(JOBS, "x", namespace="n"))["metadata"]["name"] == "x"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a%2fb", "a?b", "a#b", "a b", "a\r\nX: y", "a\x00"])
def test_a_name_never_leads_elsewhere(name: str):
    with scripted(lambda _: NAMED) as served, opened(served.url) as api:
        for work in (
            api.get(JOBS, name, namespace="n"),
            api.delete(JOBS, name, namespace="n"),
            api.patch(JOBS, name, {}, namespace="n"),
        ):
            with pytest.raises(ApiError, match="can't be the name of a Job"):
                drive(work)
        if name:
            with pytest.raises(ApiError, match="can't be the namespace of a Job"):
                drive(api.get(JOBS, "x", namespace=name))
    assert served.asked == []


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from vcbatch.local.apiserver.pki import Pki

    return Pki(tmp_path_factory.mktemp("pki"), datetime.now(UTC))


@pytest.fixture(scope="module")
def tls(authority: Any) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(authority.server.certificate, authority.server.key)
    return context


def test_tls_is_spoken_and_verified(authority: Any, tls: ssl.SSLContext):
    with scripted(lambda _: NAMED, tls=tls) as served:
        with opened(served.url, ca_pem=authority.ca_certificate) as api:
            drive(api.get(JOBS, "x", namespace="n"))
            drive(api.get(JOBS, "x", namespace="n"))
        assert len(served.asked) == 2 and served.connections == 1
        with opened(served.url, insecure=True) as api:
            drive(api.get(JOBS, "x", namespace="n"))
        with opened(served.url) as api, pytest.raises(CertificateRefusedError, match="certificate-authority"):
            drive(api.get(JOBS, "x", namespace="n"))
        with (
            opened(served.url, ca_pem=authority.ca_certificate, tls_server_name="other") as api,
            pytest.raises(CertificateRefusedError, match="'other'"),
        ):
            drive(api.get(JOBS, "x", namespace="n"))
    assert len(served.asked) == 3


def test_a_proxy_carries_http():
    with scripted(lambda _: NAMED) as proxy:
        port = proxy.url.rpartition(":")[2]
        with opened("http://far.example:80", proxy_url=f"http://me:p%40ss@127.0.0.1:{port}") as api:
            drive(api.get(JOBS, "x", namespace="n"))
    assert proxy.asked[0].target.startswith("http://far.example:80/apis/batch")
    pair = base64.b64encode(b"me:p@ss").decode()
    assert proxy.asked[0].headers["Proxy-Authorization"] == f"Basic {pair}"


def test_a_proxy_carries_https_in_a_tunnel(authority: Any, tls: ssl.SSLContext):
    asked: list[bytes] = []

    def tunnel(accepted: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += accepted.recv(65536)
        asked.append(head)
        accepted.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        with socket.create_connection(("127.0.0.1", int(served.url.rpartition(":")[2]))) as far:
            back = threading.Thread(target=_pump, args=(far, accepted), daemon=True)
            back.start()
            _pump(accepted, far)
            back.join()

    with (
        scripted(lambda _: NAMED, tls=tls) as served,
        raw_server(tunnel) as url,
        opened(
            "https://far.example:6443", ca_pem=authority.ca_certificate, tls_server_name="localhost", proxy_url=url
        ) as api,
    ):
        assert drive(api.get(JOBS, "x", namespace="n"))["metadata"]["name"] == "x"
    assert asked[0].startswith(b"CONNECT far.example:6443")
    assert b"secret" not in asked[0]


def _pump(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def test_a_proxy_that_isnt_spoken_to_is_refused():
    with opened("http://x", proxy_url="socks5://localhost:1") as api, pytest.raises(KubeconfigError, match="socks5"):
        drive(api.get(JOBS, "x", namespace="n"))


def test_work_that_needs_a_loop_is_refused():
    import asyncio

    async def work() -> None:
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="event loop"):
        drive(work())


def test_nothing_heavy_is_loaded():
    code = (
        "import sys, vcbatch.cli.base.access, vcbatch.runtime.client.oneshot\n"
        "print(*{'asyncio', 'aiohttp', 'pydantic', 'kubernetes', 'rich', 'numpy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
