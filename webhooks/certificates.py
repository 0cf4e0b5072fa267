"""The service's certificate from files, read again when they change: the next handshake shows the new one, and
connections that are open stay open."""

from __future__ import annotations

import logging
import ssl
import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cryptography import x509

from vcbatch.runtime.meter import Meter
from vcbatch.seams.clock import Clock

log = logging.getLogger(__name__)

_LOOK_SECONDS = 5.0
_LARGEST = 1 << 20


class CertificateError(Exception):
    """The pair can't be used; the message names the files and the reason."""


@dataclass(frozen=True, slots=True)
class _Pair:
    certificate: bytes
    key: bytes


class Certificates:
    """A TLS context that follows two files in PEM. The first load raises `CertificateError`; later a pair that can't be
    used (half written, not yet renewed) is told once, and the last good one is kept."""

    def __init__(self, certificate: Path, key: Path, *, clock: Clock, meter: Meter) -> None:
        self.context = _context()
        self._files = (certificate, key)
        self._clock = clock
        self._meter = meter
        self._seen = self._read()
        self.expires = self._load(self._seen)

    async def follow(self) -> None:
        """Look at the files now and then, until cancelled. Content is compared, not times: the files of a mounted
        Secret are links that are switched over together."""
        while True:
            await self._clock.sleep(_LOOK_SECONDS)
            self.look()

    def look(self) -> None:
        """Load the files where they have changed."""
        try:
            pair = self._read()
            if pair == self._seen:
                return
            self._seen = pair
            self.expires = self._load(pair)
        except CertificateError as error:
            log.error("the certificate isn't replaced: %s", error)
            return
        log.info("the certificate was replaced", extra={"expires": self.expires.isoformat()})

    def _read(self) -> _Pair:
        try:
            contents = [self._bounded(file) for file in self._files]
        except OSError as error:
            raise CertificateError(f"{error.filename}: {error.strerror}") from error
        return _Pair(*contents)

    @staticmethod
    def _bounded(file: Path) -> bytes:
        with file.open("rb") as stream:
            content = stream.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise CertificateError(f"{file}: larger than {_LARGEST} bytes")
        return content

    def _load(self, pair: _Pair) -> datetime:
        certificate, key = self._files
        try:
            expires = x509.load_pem_x509_certificates(pair.certificate)[0].not_valid_after_utc
            _use(pair, _context())  # a context that was given half a pair would serve nobody
            _use(pair, self.context)
        except (ValueError, ssl.SSLError) as error:
            raise CertificateError(
                f"{certificate} and {key} are no certificate with its key in PEM: {error}"
            ) from error
        self._meter.gauge("certificate_expires", expires.timestamp())
        return expires


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _use(pair: _Pair, context: ssl.SSLContext) -> None:
    # The standard library takes names of files only. These are private, and hold what was read in one look.
    with tempfile.TemporaryDirectory(prefix="vcbatch-webhooks-") as folder:
        certificate, key = Path(folder) / "tls.crt", Path(folder) / "tls.key"
        certificate.write_bytes(pair.certificate)
        key.write_bytes(pair.key)
        context.load_cert_chain(certificate, key, password="")
