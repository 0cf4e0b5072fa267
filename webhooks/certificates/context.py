"""The TLS context of the service: the next handshake shows what was loaded last, and open connections stay open."""

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
    """The pair can't be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate (with those that lead to its authority) and its key, in PEM."""

    certificate: bytes
    key: bytes


class ServingContext:
    """What connections are served with. `tls` is handed to the server once; `load` changes what it shows."""

    def __init__(self, *, clock: Clock, meter: Meter) -> None:
        self.tls = _context()
        self.loaded: Pair | None = None
        self._clock = clock
        self._meter = meter
        self._begins: datetime | None = None
        self._ends: dict[str, datetime] = {}

    def load(self, pair: Pair) -> datetime:
        """Show that pair from now on, and say when it expires. Raises `CertificateError` and keeps the last one where
        it can't be used."""
        try:
            leaf = x509.load_pem_x509_certificates(pair.certificate)[0]
            begins, ends = leaf.not_valid_before_utc, leaf.not_valid_after_utc
            _use(pair, _context())  # a context that was given half a pair would serve nobody
            _use(pair, self.tls)
        except (ValueError, ssl.SSLError) as error:
            raise CertificateError(f"no certificate with its key in PEM: {error}") from error
        self.loaded = pair
        self._begins = begins
        self.expires("leaf", ends)
        return ends

    def error(self) -> str:
        """Why clients refuse what is shown, "" where they don't: there is none, or it isn't valid now."""
        begins, ends, now = self._begins, self._ends.get("leaf"), self._clock.now()
        if begins is None or ends is None:
            return "there is none yet"
        if now < begins:
            return f"valid from {begins.isoformat()} on"
        return f"expired at {ends.isoformat()}" if now >= ends else ""

    def expires(self, which: str, ends: datetime) -> None:
        """What `report_remaining` is to count down: `leaf` or `authority`."""
        self._ends[which] = ends
        self.report_remaining()

    def report_remaining(self) -> None:
        """Bring the metric of what is left of each certificate up to date."""
        now = self._clock.now()
        for which, ends in self._ends.items():
            self._meter.gauge("certificate_remaining_seconds", (ends - now).total_seconds(), certificate=which)


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _use(pair: Pair, context: ssl.SSLContext) -> None:
    # The standard library takes names of files only. These are private, and hold what was read in one look.
    with tempfile.TemporaryDirectory(prefix="vcbatch-webhooks-") as folder:
        certificate, key = Path(folder) / "tls.crt", Path(folder) / "tls.key"
        certificate.write_bytes(pair.certificate)
        key.write_bytes(pair.key)
        context.load_cert_chain(certificate, key, password="")
