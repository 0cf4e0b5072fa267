"""Authentication of requests: each kind of credentials returns the `Authorization` header on request.

The header is requested for every API request, so that rotation needs nothing else; a header that is slow to get is
cached until it expires or the server refuses it.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import asyncio

Json = dict[str, Any]

# The kubelet replaces a service account's token long before it expires; client-go reads the file at most once a minute.
_FILE_SECONDS = 60.0
_EXPIRY_MARGIN = timedelta(seconds=30)


class Credentials(Protocol):
    """Returns the value of the `Authorization` header, or None where none is sent."""

    async def authorization(self, *, now: datetime) -> str | None:
        """The value at `now`. Raises `OSError` where a token file can't be read, `ExecPluginError` where a plugin
        returns no credentials."""
        ...

    def header(self, *, now: datetime) -> str | None:
        """The same for a caller without an event loop: blocks while a plugin runs."""
        ...

    def refused(self) -> None:
        """Called after the server answered 401: get a new header for the next request."""
        ...


@dataclass(frozen=True, slots=True)
class NoCredentials:
    """No header: the client authenticates by a certificate, or not at all."""

    async def authorization(self, *, now: datetime) -> str | None:
        return None

    def header(self, *, now: datetime) -> str | None:
        return None

    def refused(self) -> None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticToken:
    """A static token: once refused, it stays refused."""

    token: str = field(repr=False)

    async def authorization(self, *, now: datetime) -> str | None:
        return self.header(now=now)

    def header(self, *, now: datetime) -> str | None:
        return f"Bearer {self.token}"

    def refused(self) -> None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class BasicAuth:
    """A username and password, as kubeconfigs may have them."""

    username: str
    password: str = field(repr=False)

    async def authorization(self, *, now: datetime) -> str | None:
        return self.header(now=now)

    def header(self, *, now: datetime) -> str | None:
        pair = base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
        return f"Basic {pair}"

    def refused(self) -> None:
        return None


@dataclass(slots=True, kw_only=True)
class TokenFile:
    """A token file that another program rotates, read again after a minute and after a refusal."""

    path: Path
    _header: str | None = field(default=None, repr=False)
    _until: datetime | None = None

    async def authorization(self, *, now: datetime) -> str | None:
        return self.header(now=now)  # a small local file: a thread would cost more than the read

    def header(self, *, now: datetime) -> str | None:
        if self._header is None or self._until is None or now >= self._until:
            try:
                token = self.path.read_text().strip()
            except OSError:
                # The file is being rotated; the cached token is usually still valid.
                if self._header is None:
                    raise
            else:
                self._header = f"Bearer {token}"
            self._until = now + timedelta(seconds=_FILE_SECONDS)
        return self._header

    def refused(self) -> None:
        self._until = None


@dataclass(slots=True, kw_only=True)
class _Slow:
    """A header that is slow to get: one caller at a time gets it, in a thread, and it is cached while it is valid."""

    _header: str | None = field(default=None, repr=False)
    _until: datetime | None = None
    _lock: asyncio.Lock | None = field(default=None, repr=False)

    async def authorization(self, *, now: datetime) -> str | None:
        if self._good(now):
            return self._header
        import asyncio  # imported here, so that a command without an event loop doesn't load it

        self._lock = self._lock or asyncio.Lock()
        async with self._lock:
            return await asyncio.to_thread(self.header, now=now)

    def header(self, *, now: datetime) -> str | None:
        if not self._good(now):
            self._header, self._until = self._load(now)
        return self._header

    def _good(self, now: datetime) -> bool:
        return self._header is not None and (self._until is None or now < self._until)

    def _load(self, now: datetime) -> tuple[str | None, datetime | None]:
        """The header, and its time of expiry; None where it is valid until refused."""
        raise NotImplementedError

    def refused(self) -> None:
        self._header = None


@dataclass(slots=True, kw_only=True)
class ExecPlugin(_Slow):
    """A client-go credential plugin (`users[].user.exec`). One that returns a client certificate instead of a token is
    an error."""

    config: Json = field(repr=False)
    folder: Path
    cluster: Json = field(repr=False)

    def _load(self, now: datetime) -> tuple[str | None, datetime | None]:
        from vcbatch.runtime.client import exec_plugin  # few programs need it

        status = exec_plugin.run(self.config, folder=self.folder, cluster=self.cluster)
        token = status.get("token")
        if not isinstance(token, str) or not token:
            command = self.config.get("command")
            raise PermissionError(
                f"the credential plugin {command!r} gave no token (client certificates from plugins aren't supported)"
            )
        return f"Bearer {token}", _expiry(status.get("expirationTimestamp"))


@dataclass(slots=True, kw_only=True)
class AuthProvider(_Slow):
    """The older `auth-provider` entries (OIDC and the clouds'), resolved by the official client's own code."""

    file: Path
    context: str

    def _load(self, now: datetime) -> tuple[str | None, datetime | None]:
        from kubernetes.client import Configuration
        from kubernetes.config import load_kube_config

        configuration = Configuration()
        load_kube_config(config_file=str(self.file), context=self.context, client_configuration=configuration)
        return configuration.get_api_key_with_prefix("authorization"), now + timedelta(seconds=_FILE_SECONDS)


def _expiry(text: object) -> datetime | None:
    if not isinstance(text, str) or not text:
        return None
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment - _EXPIRY_MARGIN
