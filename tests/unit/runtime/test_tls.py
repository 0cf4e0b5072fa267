"""Which servers' certificates are accepted: those that kubectl accepts, on each version of Python."""

from __future__ import annotations

import ast
import asyncio
import ipaddress
import ssl
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import kopf
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.support.virtual_time import SeededRandom
from vcbatch.api.resources import NODES
from vcbatch.interfaces.tls import client_context
from vcbatch.runtime.caches.kopf_operator import connection_class
from vcbatch.runtime.client.http import HttpApi
from vcbatch.runtime.client.kubeconfig import CertificateRefusedError, Connection, shake_hands
from vcbatch.runtime.client.oneshot import OneShotApi
from vcbatch.runtime.clock import SystemClock

ROOT = Path(__file__).parents[3]
NOW = datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """An authority as many clusters have it: without the identifiers of keys that RFC 5280 asks for."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def new(cls) -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("authority")
        made = _builder(name, name, key).add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        return cls(key=key, certificate=made.sign(key, hashes.SHA256()))

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def server(self, folder: Path, *, address: str = "127.0.0.1", ended: bool = False) -> ssl.SSLContext:
        """What a server with a certificate of this authority uses."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name("server"), self.certificate.subject, key, ended=ended)
        alternative = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
        made = builder.add_extension(alternative, critical=False).add_extension(usage, critical=False)
        file = folder / "server.pem"
        file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + made.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, *, ended: bool = False
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(NOW - timedelta(days=2)).not_valid_after(NOW + timedelta(days=-1 if ended else 1))


async def _answering(context: ssl.SSLContext) -> tuple[asyncio.Server, str]:
    """A server that answers each request with an empty list, and its URL."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            body = b'{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}'
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    return server, f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_an_authority_without_key_identifiers_is_accepted_by_every_client(tmp_path: Path) -> None:
    authority = Authority.new()
    server, url = await _answering(authority.server(tmp_path))
    async with server:
        connection = Connection(server=url, ca_pem=authority.pem)
        await shake_hands(connection)
        async with HttpApi(connection, clock=SystemClock(), random=SeededRandom(0)) as api:
            assert (await api.list(NODES)).items == []

        def once() -> list[object]:
            with OneShotApi(connection) as api:
                return list(asyncio.run(api.list(NODES)).items)

        assert await asyncio.to_thread(once) == []
        for context in (
            client_context(authority.pem),
            connection_class(kopf)(server=url, ca_data=authority.pem).as_ssl_context(),
        ):
            _, writer = await asyncio.open_connection(*_address(url), ssl=context)
            writer.close()


def _address(url: str) -> tuple[str, int]:
    host, _, port = url.removeprefix("https://").partition(":")
    return host, int(port)


@pytest.mark.parametrize(
    ("server", "trusted", "said"),
    [
        (lambda one, folder: one.server(folder), None, "certificate signature failure"),
        (lambda one, folder: one.server(folder, address="127.0.0.2"), "its own", "IP address mismatch"),
        (lambda one, folder: one.server(folder, ended=True), "its own", "certificate has expired"),
    ],
    ids=["another authority", "another address", "expired"],
)
async def test_everything_else_is_checked_as_before(
    tmp_path: Path, server: Callable[[Authority, Path], ssl.SSLContext], trusted: str | None, said: str
) -> None:
    authority = Authority.new()
    trusts = authority if trusted else Authority.new()
    running, url = await _answering(server(authority, tmp_path))
    async with running:
        with pytest.raises(CertificateRefusedError, match=said):
            await shake_hands(Connection(server=url, ca_pem=trusts.pem))
        await shake_hands(Connection(server=url, ca_pem=trusts.pem, insecure=True))


def test_only_the_strictness_of_newer_pythons_is_taken_back() -> None:
    default, ours = ssl.create_default_context(), client_context()
    assert ours.verify_flags == default.verify_flags & ~ssl.VERIFY_X509_STRICT
    assert (ours.verify_mode, ours.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert (ours.minimum_version, ours.options) == (default.minimum_version, default.options)
    if sys.version_info >= (3, 13):
        assert default.verify_flags & ssl.VERIFY_X509_STRICT


def test_contexts_are_made_in_one_place() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for folder in ("vcbatch", "webhooks")
        for file in sorted((ROOT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in ("create_default_context", "PROTOCOL_TLS_CLIENT")
    ]
    assert [place.partition(":")[0] for place in found] == ["vcbatch/interfaces/tls.py"]
