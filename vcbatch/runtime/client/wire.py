"""Encoding and decoding of the API client."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache
from typing import Any, Generic, TypeVar, cast

import msgspec

from vcbatch.api.names import INITIAL_EVENTS_END
from vcbatch.interfaces.api import ApiError, WatchEvent

T = TypeVar("T")
Json = dict[str, Any]

log = logging.getLogger(__name__)

# Reasons of responses without a Status (from a proxy, a load balancer), with the names of k8s.io/apimachinery.
_REASONS: Mapping[int, str] = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
_MESSAGE_LIMIT = 1024
"""The number of bytes of a proxy's page that an error message includes."""
_CHECKS_LIMIT = 64 * 1024
"""The number of bytes of a health page that are parsed; it has one check per line."""
_CHANGES = frozenset({"ADDED", "MODIFIED", "DELETED"})


class ListMeta(msgspec.Struct, rename={"continue_": "continue", "resource_version": "resourceVersion"}):
    resource_version: str = ""
    continue_: str | None = None


class Page(msgspec.Struct, Generic[T]):
    """One page of a list."""

    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[T] | None = None


class Frame(msgspec.Struct):
    """One line of a watch; the object is decoded once its type is known."""

    type: str
    object: msgspec.Raw


class Typed(msgspec.Struct, Generic[T], gc=False):
    """One line of a watch with its object, decoded in one pass."""

    type: str
    object: T


class _Versioned(msgspec.Struct):
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)


class _BookmarkMeta(msgspec.Struct):
    annotations: dict[str, str] | None = None


class _Bookmark(msgspec.Struct):
    metadata: _BookmarkMeta = msgspec.field(default_factory=_BookmarkMeta)


class _Status(msgspec.Struct, rename="camel"):
    kind: str = ""
    reason: str = ""
    message: str = ""
    code: int = 0
    details: dict[str, Any] | None = None


_FRAMES = msgspec.json.Decoder(Frame)
_BOOKMARKS = msgspec.json.Decoder(_Bookmark)
_VERSIONED = msgspec.json.Decoder(_Versioned)
_STATUS = msgspec.json.Decoder(_Status)
_JSON = msgspec.json.Decoder()
_ENCODER = msgspec.json.Encoder()


def encode(body: Any) -> bytes:
    return _ENCODER.encode(body)


def decode_json(data: bytes) -> Json:
    """Decode a JSON object. Raises `msgspec.DecodeError` for anything else."""
    value = _JSON.decode(data)
    if not isinstance(value, dict):
        raise msgspec.DecodeError(f"expected an object, got {type(value).__name__}")
    return value


@cache
def decoder(model: type[T]) -> msgspec.json.Decoder[T]:
    return msgspec.json.Decoder(Json if model is dict else model)  # type: ignore[arg-type]


@cache
def _page_decoder(model: type[Any]) -> msgspec.json.Decoder[Page[Any]]:
    return msgspec.json.Decoder(Page[Json if model is dict else model])  # type: ignore[misc, valid-type]


def decode_page(data: bytes, model: type[T]) -> Page[T]:
    """Decode a page of a list. An item that doesn't fit the model is skipped and logged: one invalid object must not
    block the others."""
    try:
        return _page_decoder(model).decode(data)
    except msgspec.ValidationError:
        raw = msgspec.json.decode(data, type=Page[msgspec.Raw])
        items = [item for item in (decode_item(bytes(part), model) for part in raw.items or ()) if item is not None]
        return Page(metadata=raw.metadata, items=items)


def decode_item(data: bytes | msgspec.Raw, model: type[T]) -> T | None:
    """Decode one object; None (logged) where it doesn't fit the model."""
    try:
        return decoder(model).decode(data)
    except msgspec.ValidationError as error:
        log.warning("ignoring an object that can't be decoded", extra={"model": model.__name__, "error": str(error)})
        return None


def decode_frame(line: bytes) -> Frame:
    """Decode a watch event. Raises `msgspec.DecodeError` for any other line."""
    return _FRAMES.decode(line)


@cache
def _event_decoder(model: type[Any]) -> msgspec.json.Decoder[Typed[Any]]:
    return msgspec.json.Decoder(Typed[Json if model is dict else model])  # type: ignore[misc, valid-type]


def decode_event(line: bytes, model: type[T]) -> WatchEvent[T] | None:
    """Decode the usual line of a watch: a change of an object that fits the model. None for any other line."""
    try:
        event = _event_decoder(model).decode(line)
    except msgspec.DecodeError:
        return None
    if event.type not in _CHANGES:
        return None
    version = _version_of(event.object) if model is dict else event.object.metadata.resource_version
    return None if version is None else WatchEvent(type=event.type, object=event.object, resource_version=version)


def _version_of(obj: Json) -> str | None:
    """The resourceVersion of an object; None where it has none or isn't well-formed."""
    metadata = obj.get("metadata")
    version = cast("Json", metadata).get("resourceVersion") if isinstance(metadata, dict) else None
    return version if isinstance(version, str) else None


def ends_initial_events(bookmark: msgspec.Raw) -> bool:
    """Whether this bookmark marks the end of the initial objects of a watch."""
    return (_BOOKMARKS.decode(bookmark).metadata.annotations or {}).get(INITIAL_EVENTS_END) == "true"


def resource_version(data: msgspec.Raw) -> str:
    return _VERSIONED.decode(data).metadata.resource_version


def error_from(code: int, data: bytes, *, retry_after: float | None = None) -> ApiError:
    """The error that the body of a response describes, from a server or a proxy."""
    try:
        status = _STATUS.decode(data)
    except msgspec.DecodeError:
        status = _Status()
    if status.kind != "Status":
        limit = _CHECKS_LIMIT if data.startswith((b"[+]", b"[-]")) else _MESSAGE_LIMIT
        text = data[:limit].decode(errors="replace").strip()
        return ApiError(code, _REASONS.get(code, "Unknown"), text or f"the server answered {code}", {}, retry_after)
    details = status.details or {}
    seconds = details.get("retryAfterSeconds")
    if retry_after is None and isinstance(seconds, int | float) and seconds > 0:
        retry_after = float(seconds)
    return ApiError(status.code or code, status.reason or _REASONS.get(code, ""), status.message, details, retry_after)
