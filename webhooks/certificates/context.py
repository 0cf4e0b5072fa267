"""The TLS context of the service: new handshakes use the certificate loaded last; open connections stay open."""

from __future__ import annotations

import ssl
import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cryptography import x509

from vcbatch.interfaces.clock import Clock
from vcbatch.runtime.metrics.meter import Meter


class CertificateError(Exception):
    """The pair can't be used; the message has the reason."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate (with the intermediate ones up to its authority) and its key, in PEM."""

    certificate: bytes
    key: bytes


class ServingContext:
    """The context of connections. The server gets `tls` once; `load` changes its certificate."""

    def __init__(self, *, clock: Clock, meter: Meter) -> None:
        self.tls = _context()
        self.loaded: Pair | None = None
        self._clock = clock
        self._meter = meter
        self._begins: datetime | None = None
        self._ends: datetime | None = None

    def load(self, pair: Pair) -> datetime:
        """Use that pair from now on, and return when it expires. Raises `CertificateError` and keeps the last pair
        where it is invalid."""
        try:
            leaf = x509.load_pem_x509_certificates(pair.certificate)[0]
            begins, ends = leaf.not_valid_before_utc, leaf.not_valid_after_utc
            _use(pair, _context())  # tested on another context, since half a pair in ours would fail every handshake
            _use(pair, self.tls)
        except (ValueError, ssl.SSLError) as error:
            raise CertificateError(f"no certificate with its key in PEM: {error}") from error
        self.loaded = pair
        self._begins, self._ends = begins, ends
        self.expires("leaf", ends)
        return ends

    def error(self) -> str:
        """Why clients reject the certificate (there is none, or it isn't valid now); "" where they accept it."""
        begins, ends, now = self._begins, self._ends, self._clock.now()
        if begins is None or ends is None:
            return "there is none yet"
        if now < begins:
            return f"valid from {begins.isoformat()} on"
        return f"expired at {ends.isoformat()}" if now >= ends else ""

    def expires(self, which: str, ends: datetime) -> None:
        """Export when the certificate `which` expires: `leaf` or `authority`."""
        self._meter.gauge("certificate_expiration_timestamp_seconds", ends.timestamp(), certificate=which)


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _use(pair: Pair, context: ssl.SSLContext) -> None:
    # The standard library takes names of files only. These are private, and have the contents of a single read.
    with tempfile.TemporaryDirectory(prefix="vcbatch-webhooks-") as folder:
        certificate, key = Path(folder) / "tls.crt", Path(folder) / "tls.key"
        certificate.write_bytes(pair.certificate)
        key.write_bytes(pair.key)
        context.load_cert_chain(certificate, key, password="")
