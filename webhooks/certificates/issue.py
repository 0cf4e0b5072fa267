"""An authority, a leaf and their keys in PEM: read from the data of a Secret, and signed as a `Plan` requires.

Keys are P-256. Malformed data counts as absent, so that a corrupted Secret is repaired like an empty one.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from webhooks.certificates.rotation import (
    AUTHORITY_LIFE,
    BACKDATED,
    LEAF_LIFE,
    Authority,
    Held,
    Leaf,
    Plan,
    Span,
)

_KEYS: Final = ("ca.crt", "ca.key", "tls.crt", "tls.key")
_LARGEST: Final = 64 * 1024
_MOST_READ: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """PEM of the authorities (the newest first), of the newest one's key, of the leaf and of its key."""

    bundle: bytes = b""
    authority_key: bytes = b""
    certificate: bytes = b""
    key: bytes = b""

    @classmethod
    def of_secret(cls, secret: Mapping[str, Any]) -> Material:
        """Read it from the `data` of a Secret, under the keys that Volcano and cert-manager use."""
        data = secret.get("data") or {}
        bundle, authority_key, certificate, key = (_decoded(data.get(name)) for name in _KEYS)
        return cls(bundle=bundle, authority_key=authority_key, certificate=certificate, key=key)

    def data(self) -> dict[str, str]:
        """The `data` of a Secret with the material."""
        values = (self.bundle, self.authority_key, self.certificate, self.key)
        return {name: base64.b64encode(value).decode() for name, value in zip(_KEYS, values, strict=True)}


def read(material: Material) -> Held:
    """The valid parts of the material."""
    authorities = _certificates(material.bundle)
    key = _private_key(material.authority_key)
    return Held(
        authorities=[Authority(fingerprint=_fingerprint(one), span=_span(one)) for one in authorities],
        signs=bool(authorities) and key is not None and _fits(authorities[0], key),
        leaf=_leaf(material, authorities),
    )


def carry_out(plan: Plan, material: Material, *, now: datetime, names: frozenset[str]) -> Material:
    """The material after the plan is executed."""
    authorities = [one for one in _certificates(material.bundle) if _fingerprint(one) in plan.keep]
    key = None if plan.authority else _private_key(material.authority_key)
    if key is None:
        key = ec.generate_private_key(ec.SECP256R1())
        authorities.insert(0, _authority(key, now))
    certificate, leaf_key = material.certificate, material.key
    if plan.leaf:
        fresh = ec.generate_private_key(ec.SECP256R1())
        certificate = _pem(_signed_leaf(fresh, names, by=authorities[0], key=key, now=now))
        leaf_key = _key_pem(fresh)
    return Material(
        bundle=b"".join(_pem(one) for one in authorities),
        authority_key=_key_pem(key),
        certificate=certificate,
        key=leaf_key,
    )


def ends(certificate: bytes) -> datetime | None:
    """When the first certificate in PEM expires."""
    read_ones = _certificates(certificate)
    return read_ones[0].not_valid_after_utc if read_ones else None


def fingerprints(bundle: bytes) -> frozenset[str]:
    """The fingerprints of all certificates in PEM."""
    return frozenset(_fingerprint(one) for one in _certificates(bundle))


# Reading


def _decoded(value: object) -> bytes:
    if not isinstance(value, str) or len(value) > 2 * _LARGEST:
        return b""
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _certificates(pem: bytes) -> list[x509.Certificate]:
    if not pem or len(pem) > _LARGEST:
        return []
    try:
        return x509.load_pem_x509_certificates(pem)[:_MOST_READ]
    except ValueError:
        return []


def _private_key(pem: bytes) -> ec.EllipticCurvePrivateKey | None:
    """The private key; None for other types of keys too: an authority that another program created isn't used to
    sign."""
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, ec.EllipticCurvePrivateKey) else None


def _leaf(material: Material, authorities: Sequence[x509.Certificate]) -> Leaf | None:
    certificates = _certificates(material.certificate)
    if not certificates or not _own_key(certificates[0], material.key):
        return None
    certificate = certificates[0]
    for authority in authorities:
        if _issued(certificate, authority):
            return Leaf(issuer=_fingerprint(authority), span=_span(certificate), names=_names(certificate))
    return None


def _own_key(certificate: x509.Certificate, pem: bytes) -> bool:
    """Whether the private key, of any type, belongs to the certificate."""
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return False
    return _public_der(certificate.public_key()) == _public_der(key.public_key())


def _fits(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> bool:
    return _public_der(certificate.public_key()) == _public_der(key.public_key())


def _public_der(key: Any) -> bytes:
    der: bytes = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return der


def _issued(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _names(certificate: x509.Certificate) -> frozenset[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return frozenset()
    addresses = (str(address) for address in names.get_values_for_type(x509.IPAddress))
    return frozenset(names.get_values_for_type(x509.DNSName)) | frozenset(addresses)


def _span(certificate: x509.Certificate) -> Span:
    return Span(begins=certificate.not_valid_before_utc, ends=certificate.not_valid_after_utc)


def _fingerprint(certificate: x509.Certificate) -> str:
    return certificate.fingerprint(hashes.SHA256()).hex()


# Signing


def _authority(key: ec.EllipticCurvePrivateKey, now: datetime) -> x509.Certificate:
    serial = x509.random_serial_number()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"vcbatch admission {serial:x}"[:64])])
    usage = {**_NO_USAGE, "key_cert_sign": True, "crl_sign": True}
    return (
        _builder(name, name, key, serial, now, now + AUTHORITY_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.KeyUsage(**usage), critical=True)
        .sign(key, hashes.SHA256())
    )


def _signed_leaf(
    fresh: ec.EllipticCurvePrivateKey,
    names: frozenset[str],
    *,
    by: x509.Certificate,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
) -> x509.Certificate:
    ordered = sorted(names)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "vcbatch admission")])
    until = min(now + LEAF_LIFE, by.not_valid_after_utc)
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())
    return (
        _builder(subject, by.subject, fresh, x509.random_serial_number(), now, until)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(**{**_NO_USAGE, "digital_signature": True}), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in ordered]), critical=False)
        .add_extension(identifier, critical=False)
        .sign(key, hashes.SHA256())
    )


_NO_USAGE: Final = dict.fromkeys(
    ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
     "key_cert_sign", "crl_sign", "encipher_only", "decipher_only"), False,
)  # fmt: skip


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, serial: int, now: datetime, until: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(now - BACKDATED)
        .not_valid_after(max(until, now + timedelta(seconds=1)))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
