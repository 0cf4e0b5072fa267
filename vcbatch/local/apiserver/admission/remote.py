"""Calls webhooks over HTTPS, and reports failures as a real API server does.

Source of the messages: Go's `net/http`, and client-go's `rest`.
"""

from __future__ import annotations

import asyncio
import functools
import json
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from vcbatch.api.field_errors import go_quote
from vcbatch.interfaces.tls import client_context
from vcbatch.local.apiserver.admission.hooks import Hook

if TYPE_CHECKING:
    import aiohttp

Json = dict[str, Any]

LARGEST_ANSWER = 8 * 2**20
"""Limit of a response in bytes: twice the size of a patch, in base64, that replaces the largest object."""
_LONGEST_TEXT = 2048
_JSON = "application/json"
_HEADERS = {"Content-Type": _JSON, "Accept": "application/json, */*"}
_MOST_TRIES = 10
_MOST_CONTEXTS = 64

_SAID = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reply:
    """A response. `retry_after`: seconds, where it requests a retry."""

    code: int
    text: bytes
    media_type: str
    retry_after: float | None


class CallFailed(Exception):
    """There is no response; the message has the reason."""


class Remote:
    """Calls webhooks over HTTPS, with a pool of connections that is opened with the first call."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, hook: Hook, document: Json) -> Any:
        """The decoded response to an AdmissionReview. Raises `CallFailed`, or TimeoutError where the caller's timeout
        ends it."""
        url = f"{hook.client.address}?timeout={hook.seconds}s"
        context = _context(hook.client.ca_bundle)
        body = msgspec.json.encode(document)
        reply = await self._post(url, body, context)
        tries = 1
        while reply.retry_after is not None and tries < _MOST_TRIES:
            await asyncio.sleep(reply.retry_after)
            reply = await self._post(url, body, context)
            tries += 1
        if not 200 <= reply.code <= 206:
            raise CallFailed(f"failed to call webhook: {_said(reply.code, reply.text)}")
        if not reply.text:
            what = f"0-length response with status code: {reply.code} and content type: {reply.media_type}"
            raise CallFailed(f"failed to call webhook: {what}")
        try:
            return json.loads(reply.text)
        except (ValueError, RecursionError):
            return reply.text.decode(errors="replace")  # not a review, which the caller reports

    async def _post(self, url: str, body: bytes, context: ssl.SSLContext) -> _Reply:
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(), auto_decompress=True)
        try:
            async with self._session.post(
                url, data=body, headers=_HEADERS, ssl=context, allow_redirects=False
            ) as response:
                return _Reply(
                    code=response.status,
                    text=await _bounded(response),
                    media_type=response.headers.get("Content-Type", _JSON),
                    retry_after=_retry_after(response.status, response.headers.get("Retry-After")),
                )
        except aiohttp.ClientError as error:
            raise CallFailed(f'failed to call webhook: Post "{url}": {_words(error, url)}') from error
        except (OSError, ValueError) as error:
            if isinstance(error, TimeoutError):
                raise
            raise CallFailed(f'failed to call webhook: Post "{url}": {error}') from error

    async def close(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_chunked(2**16):
        size += len(chunk)
        if size > LARGEST_ANSWER:
            raise CallFailed(f"failed to call webhook: its answer is larger than {LARGEST_ANSWER} bytes")
        parts.append(chunk)
    return b"".join(parts)


def _retry_after(code: int, header: str | None) -> float | None:
    if header is None or not (code == 429 or code >= 500) or not header.isdecimal():
        return None
    return float(header)


@functools.lru_cache(maxsize=_MOST_CONTEXTS)
def _context(ca_bundle: bytes) -> ssl.SSLContext:
    if not ca_bundle:
        return client_context()
    try:
        context = client_context(ca_bundle.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        what = "could not get REST client: unable to load root certificates: unable to parse bytes as PEM block"
        raise CallFailed(what) from error
    # As Go does: a certificate of the bundle is trusted itself, whatever its issuer.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def _words(error: aiohttp.ClientError, url: str) -> str:
    import aiohttp

    parts = urlsplit(url)
    address = f"{parts.hostname}:{parts.port or 443}"
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return f"tls: failed to verify certificate: x509: {_certificate_words(error.certificate_error)}"
        case aiohttp.ClientConnectorSSLError():
            return f"tls: {error.os_error.strerror or error.os_error}"
        case aiohttp.ClientConnectorDNSError():
            return f"dial tcp: lookup {parts.hostname}: no such host"
        case aiohttp.ClientConnectorError() if isinstance(error.os_error, ConnectionRefusedError):
            return f"dial tcp {address}: connect: connection refused"
        case aiohttp.ClientConnectorError():
            return f"dial tcp {address}: connect: {(error.os_error.strerror or str(error.os_error)).lower()}"
        case aiohttp.ServerDisconnectedError():
            return "EOF"
        case _:
            return str(error) or type(error).__name__


def _certificate_words(error: Exception) -> str:
    said = getattr(error, "verify_message", "") or str(error)
    unknown = ("self-signed", "self signed", "unable to get", "unable to verify")
    return "certificate signed by unknown authority" if any(word in said for word in unknown) else said


def _said(code: int, body: bytes) -> str:
    """The message of client-go for a response that isn't a success."""
    try:
        status = json.loads(body)
    except (ValueError, RecursionError):
        status = None
    if isinstance(status, dict) and status.get("kind") == "Status" and status.get("message"):
        return str(status["message"])[:_LONGEST_TEXT]
    if code in _SAID:
        return _SAID[code]
    text = body[:_LONGEST_TEXT].decode(errors="replace").strip() or "unknown"
    if code in (403, 406, 415):
        return text
    if code >= 500:
        return f"an error on the server ({go_quote(text)}) has prevented the request from succeeding"
    return f"the server responded with the status code {code} but did not return more information"
