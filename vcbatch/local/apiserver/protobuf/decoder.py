"""Decodes `application/vnd.kubernetes.protobuf`: the magic `k8s\\0`, a runtime.Unknown, and in it one object.

Field numbers and types come from the field table of the built-in API. Everything is bounded: lengths by the body,
nesting by `_MAX_DEPTH`, numbers by their size. Source: k8s.io/apimachinery `pkg/runtime/serializer/protobuf`.
"""

from __future__ import annotations

import base64
import json
import struct as binary
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from vcbatch.local.apiserver.apierrors import bad_request
from vcbatch.local.apiserver.protobuf.wire import Malformed, fields, text
from vcbatch.local.apiserver.schema.builtin import kept
from vcbatch.local.apiserver.schema.types import Field, Struct, kind_struct, structs

Json = dict[str, Any]

MAGIC = b"k8s\0"
_MAX_DEPTH = 64
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def decode(body: bytes) -> Json:
    """The object in a protobuf body as JSON. Raises `StatusError` (400) for an invalid body."""
    try:
        return _decode(body)
    except (Malformed, OverflowError, RecursionError) as error:
        raise bad_request(f"the object provided is unrecognized: unable to decode protobuf: {error}") from None


def _decode(body: bytes) -> Json:
    if not body.startswith(MAGIC):
        raise Malformed("it doesn't start with the magic of Kubernetes")
    api_version = kind = ""
    raw = b""
    for number, value in fields(body[len(MAGIC) :]):
        if number == 1 and isinstance(value, bytes):
            for inner, name in fields(value):
                if inner == 1:
                    api_version = text(name)
                elif inner == 2:
                    kind = text(name)
        elif number == 2 and isinstance(value, bytes):
            raw = value
        elif number in (3, 4) and isinstance(value, bytes) and value and not _is_plain(number, value):
            raise Malformed(f"content {text(value)!r} isn't supported")
    known = kind_struct(api_version=api_version, kind=kind)
    if known is None or known.key.startswith("apiextensions/"):
        raise Malformed(f"no protobuf is known for kind {kind!r} of {api_version!r}: send JSON")
    return {"apiVersion": api_version, "kind": kind, **_message(raw, known, 0)}


def _is_plain(number: int, value: bytes) -> bool:
    return number == 4 and value == b"application/vnd.kubernetes.protobuf"


def _message(raw: bytes, type_: Struct, depth: int) -> Json:
    if depth > _MAX_DEPTH:
        raise Malformed(f"nested deeper than {_MAX_DEPTH} levels")
    numbered = _by_number(type_)
    obj: Json = {}
    for number, value in fields(raw):
        field = numbered.get(number)
        if field is None:
            continue
        if field.inline:
            obj.update(_message(_bytes(value), structs()[field.type], depth + 1))
        elif field.container == "list":
            obj.setdefault(field.name, []).extend(_items(value, field, depth))
        elif field.container == "map":
            key, item = _entry(_bytes(value), field, depth)
            obj.setdefault(field.name, {})[key] = item
        else:
            decoded = _value(value, field.type, depth)
            if decoded is not None and kept(decoded, field):
                obj[field.name] = decoded
            else:
                obj.pop(field.name, None)
    return obj


_NUMBERED: dict[str, Mapping[int, Field]] = {}


def _by_number(type_: Struct) -> Mapping[int, Field]:
    found = _NUMBERED.get(type_.key)
    if found is None:
        found = _NUMBERED[type_.key] = {field.number: field for field in type_.own if field.number}
    return found


def _items(value: int | bytes, field: Field, depth: int) -> Iterator[Any]:
    if isinstance(value, bytes) and field.type in ("int32", "int64", "uint8", "bool"):
        # Packed: several numbers in one field.
        index = 0
        while index < len(value):
            end = index
            while end < len(value) and value[end] & 0x80:
                end += 1
            yield _value(next(iter(fields(b"\x08" + value[index : end + 1])))[1], field.type, depth)
            index = end + 1
        return
    yield _value(value, field.type, depth)


def _entry(raw: bytes, field: Field, depth: int) -> tuple[str, Any]:
    key, item = "", _EMPTY.get(field.type)
    if item is None and field.type in structs():
        item = {}
    for number, value in fields(raw):
        if number == 1:
            key = text(value)
        elif number == 2:
            item = _value(value, field.type, depth)
    return key, item


_EMPTY: Mapping[str, Any] = {"string": "", "bytes": "", "int32": 0, "int64": 0, "bool": False, "Quantity": "0"}


def _value(value: int | bytes, type_: str, depth: int) -> Any:
    known = structs().get(type_)
    if known is not None:
        return _message(_bytes(value), known, depth + 1)
    reader = _READERS.get(type_)
    if reader is None:
        raise Malformed(f"{type_} has no protobuf here")
    return reader(value)


def _bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise Malformed("a number stands where a message is expected")
    return value


def _number(bits: int) -> Callable[[int | bytes], int]:
    def read(value: int | bytes) -> int:
        if not isinstance(value, int):
            raise Malformed("a message stands where a number is expected")
        signed = value - (1 << 64) if value >> 63 else value
        if not -(1 << (bits - 1)) <= signed < 1 << (bits - 1):
            raise Malformed(f"{signed} doesn't fit into {bits} bits")
        return signed

    return read


def _flag(value: int | bytes) -> bool:
    if not isinstance(value, int):
        raise Malformed("a message stands where a truth value is expected")
    return value != 0


def _float(value: int | bytes) -> float:
    if not isinstance(value, int):
        raise Malformed("a message stands where a number is expected")
    return float(binary.unpack("<d", value.to_bytes(8, "little"))[0])


def _base64(value: int | bytes) -> str:
    return base64.b64encode(_bytes(value)).decode("ascii")


def _time(value: int | bytes) -> str | None:
    moment = _moment(_bytes(value))
    return moment and moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _micro_time(value: int | bytes) -> str | None:
    moment = _moment(_bytes(value))
    return moment and moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _moment(raw: bytes) -> datetime | None:
    """Seconds and nanoseconds since 1970; None for an empty message."""
    if not raw:
        return None
    seconds = nanos = 0
    for number, value in fields(raw):
        if number == 1:
            seconds = _number(64)(value)
        elif number == 2:
            nanos = _number(32)(value)
    return _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)


def _quantity(value: int | bytes) -> str:
    for number, inner in fields(_bytes(value)):
        if number == 1:
            return text(inner) or "0"
    return "0"


def _int_or_string(value: int | bytes) -> int | str:
    type_, whole, words = 0, 0, ""
    for number, inner in fields(_bytes(value)):
        if number == 1:
            type_ = _number(64)(inner)
        elif number == 2:
            whole = _number(32)(inner)
        elif number == 3:
            words = text(inner)
    return words if type_ == 1 else whole


def _raw_json(value: int | bytes) -> Any:
    for number, inner in fields(_bytes(value)):
        if number == 1 and inner:
            try:
                return json.loads(_bytes(inner))
            except (ValueError, RecursionError):
                raise Malformed("an embedded object isn't JSON") from None
    return None


def _values(value: int | bytes) -> list[str]:
    return [text(inner) for number, inner in fields(_bytes(value)) if number == 1]


_READERS: Mapping[str, Callable[[int | bytes], Any]] = {
    "string": text,
    "bytes": _base64,
    "bool": _flag,
    "int32": _number(32),
    "int64": _number(64),
    "uint8": _number(32),
    "float64": _float,
    "Time": _time,
    "MicroTime": _micro_time,
    "Quantity": _quantity,
    "IntOrString": _int_or_string,
    "RawExtension": _raw_json,
    "FieldsV1": _raw_json,
    "JSON": _raw_json,
    "Values": _values,
    "Verbs": _values,
}
