"""The service on a port with TLS: certificates that change under load, clients that are too slow, a clean end."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509

from tests.cluster.pki import Authority, Pair
from tests.support.admission_http import app_over, review_of
from tests.support.admission_world import World
from vcbatch.api.admission import Operation, Request
from vcbatch.api.resources import QUEUES
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.metrics.meter import NoMeter
from webhooks import server
from webhooks.certificates.context import CertificateError, ServingContext
from webhooks.certificates.files import FileCertificates

REVIEW = review_of(
    Request(resource=QUEUES, operation=Operation.CREATE, name="q", object={"metadata": {"name": "q"}, "spec": {}})
)


@dataclass(frozen=True, kw_only=True)
class Files:
    """The pair that the service watches, and the authority that signs new ones."""

    authority: Authority
    certificate: Path
    key: Path

    def put(self, pair: Pair) -> None:
        shutil.copyfile(pair.certificate, self.certificate)
        shutil.copyfile(pair.key, self.key)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    made = Files(authority=Authority(tmp_path / "pki"), certificate=tmp_path / "tls.crt", key=tmp_path / "tls.key")
    made.put(made.authority.serving("first"))
    return made


@dataclass(frozen=True, kw_only=True)
class Followed:
    """The files, and the context that follows them."""

    files: FileCertificates
    context: ssl.SSLContext

    def refresh(self) -> None:
        self.files.refresh()


def certificates(files: Files) -> Followed:
    clock = SystemClock()
    context = ServingContext(clock=clock, meter=NoMeter())
    followed = FileCertificates(files.certificate, files.key, context=context, clock=clock)
    return Followed(files=followed, context=context.tls)


@contextlib.asynccontextmanager
async def serving(files: Files) -> AsyncIterator[tuple[int, Followed]]:
    followed = certificates(files)
    listener = server.listen("127.0.0.1", 0)
    port: int = listener.getsockname()[1]
    serve = server.serve(app_over(World()), listener, followed.context, clock=SystemClock(), drain_seconds=0)
    task = asyncio.create_task(serve)
    try:
        yield port, followed
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        listener.close()


def client(files: Files) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(files.authority.certificate))


async def shown(port: int, files: Files) -> str:
    """The common name of the certificate that a new connection is shown."""
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client(files))
    der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return str(x509.load_der_x509_certificate(der).subject.rfc4514_string())


async def test_a_new_certificate_is_shown_without_a_request_lost(files: Files) -> None:
    async with serving(files) as (port, followed):
        stop = asyncio.Event()
        codes: list[int] = []
        answered = asyncio.Condition()

        async def ask(*, keep_open: bool) -> None:
            connector = aiohttp.TCPConnector(ssl=client(files), force_close=not keep_open)
            async with aiohttp.ClientSession(connector=connector) as session:
                while not stop.is_set():
                    url = f"https://127.0.0.1:{port}/queues/mutate"
                    async with session.post(url, json=REVIEW) as answer:
                        await answer.read()
                    async with answered:
                        codes.append(answer.status)
                        answered.notify_all()

        asking = [asyncio.create_task(ask(keep_open=keep_open)) for keep_open in (True, True, False, False)]
        for name in ("second", "third"):
            enough = len(codes) + 20
            files.put(files.authority.serving(name))
            followed.refresh()
            assert await shown(port, files) == f"CN={name}"
            async with answered:
                await answered.wait_for(lambda enough=enough: len(codes) >= enough)
        stop.set()
        await asyncio.gather(*asking)
        assert set(codes) == {200}


async def test_half_a_pair_is_told_and_not_used(files: Files, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(files) as (port, followed):
        second = files.authority.serving("second")
        shutil.copyfile(second.certificate, files.certificate)  # the key isn't there yet
        for _ in range(3):
            followed.refresh()
        assert caplog.text.count("the certificate couldn't be replaced") == 1
        assert await shown(port, files) == "CN=first"
        files.put(second)
        followed.refresh()
        assert await shown(port, files) == "CN=second"


def test_the_first_pair_has_to_be_good(files: Files, tmp_path: Path) -> None:
    files.key.write_text("no key")
    with pytest.raises(CertificateError, match=r"tls\.key"):
        certificates(files)
    files.key.unlink()
    with pytest.raises(CertificateError, match="No such file"):
        certificates(files)


@pytest.mark.parametrize("said", [b"", b"POST /jobs/validate HTTP/1.1\r\nHost: x\r\n"])
async def test_clients_that_say_too_little_are_cut_off(
    files: Files, monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    monkeypatch.setattr(server, "_HEAD_SECONDS", 0.05)
    async with serving(files) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client(files))
        writer.write(said)
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()


async def test_a_handshake_that_isnt_finished_is_cut_off(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_HANDSHAKE_SECONDS", 0.05)
    async with serving(files) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()


async def test_connections_beyond_the_limit_are_cut_off_and_those_that_are_there_go_on(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 1)
    connector = aiohttp.TCPConnector(ssl=client(files))
    async with serving(files) as (port, _), aiohttp.ClientSession(connector=connector) as session:
        url = f"https://127.0.0.1:{port}/queues/mutate"
        async with session.post(url, json=REVIEW) as answer:
            assert answer.status == 200 and await answer.read()
        with pytest.raises(ConnectionError):
            await asyncio.open_connection("127.0.0.1", port, ssl=client(files))
        async with session.post(url, json=REVIEW) as answer:
            assert answer.status == 200


async def test_before_the_port_closes_clients_are_sent_elsewhere(files: Files) -> None:
    followed = certificates(files)
    listener = server.listen("127.0.0.1", 0)
    port: int = listener.getsockname()[1]
    serve = server.serve(app_over(World()), listener, followed.context, clock=SystemClock(), drain_seconds=30)
    task = asyncio.create_task(serve)
    url = f"https://127.0.0.1:{port}/queues/mutate"
    async with aiohttp.ClientSession() as session:
        async with session.post(url, json=REVIEW, ssl=client(files)) as answer:
            assert (answer.status, answer.headers.get("connection")) == (200, None)
        task.cancel()
        await asyncio.sleep(0)
        for _ in range(2):  # on the connection that is open, and on a new one
            async with session.post(url, json=REVIEW, ssl=client(files)) as answer:
                assert (answer.status, answer.headers["connection"]) == (200, "close")
        with contextlib.suppress(asyncio.CancelledError):
            await task
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.post(url, json=REVIEW, ssl=client(files))


def test_old_tls_isnt_spoken(files: Files) -> None:
    assert certificates(files).context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_a_port_that_is_taken_is_an_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(OSError, match="in use"):
            server.listen("127.0.0.1", taken.getsockname()[1])
