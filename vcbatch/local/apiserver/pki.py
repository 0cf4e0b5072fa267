"""The server's own certificate authority, stored in the state directory: one CA, one server and one client certificate.

Elliptic-curve keys, which are generated quickly. All files are 0600 in a 0700 directory.
"""

from __future__ import annotations

import base64
import ipaddress
import secrets
import ssl
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from vcbatch.api import yaml_writer
from vcbatch.local.files import replace_file

_CA_LIFE = timedelta(days=3650)
_LEAF_LIFE = timedelta(days=825)
_RENEW_BEFORE = timedelta(days=30)
_SKEW = timedelta(hours=1)
_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_ADDRESSES = ("127.0.0.1", "::1")


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, atomically."""
    replace_file(path, content)


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, as PEM files."""

    certificate: Path
    key: Path


class Pki:
    """Creates missing and expiring certificates; reads the others. `now` decides about expiry."""

    def __init__(self, directory: Path, now: datetime) -> None:
        self._directory = directory
        self._now = now
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        directory.chmod(0o700)
        self.ca = self._pair("ca")
        self.server = self._pair("server")
        self.client = self._pair("client")
        if not self._valid(self.ca):
            self._make_ca()
        if not self._valid(self.server):
            self._issue(self.server, "vcbatch-apiserver", server=True)
        if not self._valid(self.client):
            self._issue(self.client, "vcbatch-admin", organization="system:masters")
        self.token = self._read_token()

    def _pair(self, name: str) -> Pair:
        return Pair(self._directory / f"{name}.crt", self._directory / f"{name}.key")

    def _read_token(self) -> str:
        path = self._directory / "token"
        with suppress(FileNotFoundError):
            token = path.read_text().strip()
            if token:
                return token
        token = secrets.token_urlsafe(32)
        write_private(path, token.encode())
        return token

    def account_key(self) -> ec.EllipticCurvePrivateKey:
        """The key that signs tokens of service accounts; created where it is missing or can't be read."""
        path = self._directory / "service-account.key"
        with suppress(FileNotFoundError, ValueError):
            key = serialization.load_pem_private_key(path.read_bytes(), None)
            if isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP256R1):
                return key
        key = ec.generate_private_key(ec.SECP256R1())
        write_private(
            path,
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            ),
        )
        return key

    @property
    def ca_certificate(self) -> str:
        return self.ca.certificate.read_text()

    def _valid(self, pair: Pair) -> bool:
        """Whether the pair exists, can be read, belongs together, doesn't expire soon, and was issued by the present
        CA."""
        try:
            certificate = x509.load_pem_x509_certificate(pair.certificate.read_bytes())
            key = serialization.load_pem_private_key(pair.key.read_bytes(), None)
            if key.public_key() != certificate.public_key():  # an interrupted start wrote only one of them
                return False
            issuer = x509.load_pem_x509_certificate(self.ca.certificate.read_bytes())
            certificate.verify_directly_issued_by(issuer)
        except Exception:
            return False
        return certificate.not_valid_before_utc <= self._now < certificate.not_valid_after_utc - _RENEW_BEFORE

    def _store(self, pair: Pair, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        encoded = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        write_private(pair.key, encoded)
        write_private(pair.certificate, certificate.public_bytes(serialization.Encoding.PEM))

    def _builder(self, common_name: str, organization: str, life: timedelta) -> x509.CertificateBuilder:
        attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
        if organization:
            attributes.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name(attributes))
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - _SKEW)
            .not_valid_after(self._now + life)
        )

    def _make_ca(self) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder("vcbatch-ca", "", _CA_LIFE)
        certificate = (
            builder.issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "vcbatch-ca")]))
            .public_key(key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signing=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        self._store(self.ca, certificate, key)

    def _issue(self, pair: Pair, name: str, *, organization: str = "", server: bool = False) -> None:
        ca_key = serialization.load_pem_private_key(self.ca.key.read_bytes(), None)
        ca = x509.load_pem_x509_certificate(self.ca.certificate.read_bytes())
        if not isinstance(ca_key, ec.EllipticCurvePrivateKey):
            raise TypeError("the CA's key is no elliptic-curve key")
        key = ec.generate_private_key(ec.SECP256R1())
        usage = ExtendedKeyUsageOID.SERVER_AUTH if server else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = (
            self._builder(name, organization, _LEAF_LIFE)
            .issuer_name(ca.subject)
            .public_key(key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signing=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        )
        if server:
            names: Sequence[x509.GeneralName] = [
                *(x509.DNSName(one) for one in _NAMES),
                *(x509.IPAddress(ipaddress.ip_address(one)) for one in _ADDRESSES),
            ]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        self._store(pair, builder.sign(ca_key, hashes.SHA256()), key)

    def server_context(self) -> ssl.SSLContext:
        """TLS 1.2 and newer; a client certificate is verified where one is sent."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.server.certificate, self.server.key)
        context.load_verify_locations(self.ca.certificate)
        context.verify_mode = ssl.CERT_OPTIONAL
        return context


def _key_usage(*, signing: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signing,
        crl_sign=signing,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def kubeconfig(*, server: str, ca_certificate: str, token: str) -> bytes:
    """A kubeconfig for kubectl and every client library, including the token."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "vcbatch",
                "cluster": {
                    "server": server,
                    "certificate-authority-data": base64.b64encode(ca_certificate.encode()).decode(),
                },
            }
        ],
        "users": [{"name": "vcbatch", "user": {"token": token}}],
        "contexts": [{"name": "vcbatch", "context": {"cluster": "vcbatch", "user": "vcbatch", "namespace": "default"}}],
        "current-context": "vcbatch",
    }
    return yaml_writer.dump(document).encode()
