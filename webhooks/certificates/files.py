"""The certificate from two files that another program renews: a mounted Secret of cert-manager, or an operator's
own."""

from __future__ import annotations

import logging
from datetime import datetime
from pathlib import Path

from vcbatch.interfaces.clock import Clock
from webhooks.certificates.context import CertificateError, Pair, ServingContext

log = logging.getLogger(__name__)

_CHECK_SECONDS = 5.0
_LARGEST = 1 << 20


class FileCertificates:
    """Keeps the context equal to two PEM files. The first load raises `CertificateError`; later an invalid pair (half
    written, not yet renewed) is reported once, and the last valid one is kept."""

    def __init__(self, certificate: Path, key: Path, *, context: ServingContext, clock: Clock) -> None:
        self._files = (certificate, key)
        self._context = context
        self._clock = clock
        self._seen = self._read()
        self._load(self._seen)

    async def follow(self) -> None:
        """Check the files periodically, until cancelled. Contents are compared, not times: the files of a mounted
        Secret are symbolic links that are switched together."""
        while True:
            await self._clock.sleep(_CHECK_SECONDS)
            self.refresh()

    def refresh(self) -> None:
        """Load the files where they have changed."""
        try:
            pair = self._read()
            if pair == self._seen:
                return
            self._seen = pair
            ends = self._load(pair)
        except CertificateError as error:
            log.error("the certificate couldn't be replaced: %s", error)
            return
        log.info("the certificate was replaced", extra={"expires": ends.isoformat()})

    def _read(self) -> Pair:
        try:
            contents = [self._bounded(file) for file in self._files]
        except OSError as error:
            raise CertificateError(f"{error.filename}: {error.strerror}") from error
        return Pair(*contents)

    @staticmethod
    def _bounded(file: Path) -> bytes:
        with file.open("rb") as stream:
            content = stream.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise CertificateError(f"{file}: larger than {_LARGEST} bytes")
        return content

    def _load(self, pair: Pair) -> datetime:
        try:
            return self._context.load(pair)
        except CertificateError as error:
            certificate, key = self._files
            raise CertificateError(f"{certificate} and {key}: {error}") from error
