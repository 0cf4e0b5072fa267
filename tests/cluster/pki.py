"""The certificates of a test cluster: one authority, a serving pair, a client pair for each identity.

Keys are P-256: made in a millisecond, and every client takes them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, as files in PEM."""

    certificate: Path
    key: Path


class Authority:
    """Signs for one test cluster; its certificate is what clients and servers of the cluster trust."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "vcbatch-testbed")])
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(self._name)
            .issuer_name(self._name)
            .public_key(self._key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _DAY)
            .not_valid_after(now + 365 * _DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = folder / "ca.crt"
        self.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def serving(self, name: str, *, hosts: Sequence[str] = ("localhost", "127.0.0.1")) -> Pair:
        """A server's pair, valid for these DNS names and addresses."""
        return self._issue(name, common_name=name, groups=(), hosts=hosts, usage=ExtendedKeyUsageOID.SERVER_AUTH)

    def client(self, name: str, *, groups: Sequence[str] = ()) -> Pair:
        """A client's pair: the API server reads the user from the common name and the groups from organizations."""
        file = name.replace(":", "-")
        return self._issue(file, common_name=name, groups=groups, hosts=(), usage=ExtendedKeyUsageOID.CLIENT_AUTH)

    def signing_key(self, name: str) -> Pair:
        """A key for service-account tokens: the key is private, the `certificate` is its public key in PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        (self._folder / f"{name}.pub").write_bytes(public)
        return Pair(self._folder / f"{name}.pub", self._write_key(name, key))

    def _issue(
        self, file: str, *, common_name: str, groups: Sequence[str], hosts: Sequence[str], usage: x509.ObjectIdentifier
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _DAY)
            .not_valid_after(now + 365 * _DAY)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        )
        if hosts:
            names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        path = self._folder / f"{file}.crt"
        path.write_bytes(builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        return Pair(path, self._write_key(file, key))

    def _write_key(self, file: str, key: ec.EllipticCurvePrivateKey) -> Path:
        path = self._folder / f"{file}.key"
        path.touch(mode=0o600)
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return path


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
