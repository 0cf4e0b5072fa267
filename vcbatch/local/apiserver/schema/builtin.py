"""Decodes built-in objects as Kubernetes' Go types do: unknown fields, wrong types, zero values that are added and
dropped.

Source of the texts: `sigs.k8s.io/json` (Go's `encoding/json`) and `UnmarshalJSON` of Quantity, Time and IntOrString.
`required` of the published schemas is never enforced here, as Go fills in zero values; the validation of each kind
checks required fields.
"""

from __future__ import annotations

import base64
import binascii
import re
from datetime import UTC, datetime
from typing import Any

from vcbatch.api.quantity import MalformedQuantity, parse_quantity
from vcbatch.local.apiserver.apierrors import DecodeError
from vcbatch.local.apiserver.schema.types import OPAQUE, Field, Struct, struct, structs

Json = dict[str, Any]

_QUANTITY = re.compile(r"([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)")
_QUANTITY_ERROR = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:(?P<seconds>\d\d)(?P<fraction>\.\d+)?(?:Z|[-+]\d\d:\d\d)", re.ASCII)
_MICRO_DIGITS = len(".000000")
_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1), "uint8": (0, 255)}
_MAX_DEPTH = 100
_OMIT_ZERO_TIME = frozenset({"creationTimestamp"})
"""Zero times that are left out instead of being written as null."""


def decode(type_name: str, obj: Json) -> list[str]:
    """Normalise `obj` in place as the built-in type (`core/v1.Pod`, or the bare name where it is unique) and return the
    errors that strict field validation reports. Unknown fields are dropped. Raises `DecodeError`."""
    return decode_as(struct(type_name), obj)


def decode_as(type_: Struct, obj: Json) -> list[str]:
    """`decode`, for a known type."""
    decoder = _Decoder()
    decoder.struct(obj, type_, path="", trail="", depth=0)
    return [f'unknown field "{path}"' for path in decoder.unknown]


def decode_at(type_name: str, obj: Json, *, path: str) -> list[str]:
    """`decode` for a part of an object: returns the paths of the unknown fields, each with `path` in front."""
    decoder = _Decoder()
    decoder.struct(obj, struct(type_name), path=path, trail="", depth=0)
    return decoder.unknown


class _Decoder:
    __slots__ = ("unknown",)

    def __init__(self) -> None:
        self.unknown: list[str] = []

    def struct(self, obj: Json, type_: Struct, *, path: str, trail: str, depth: int) -> None:
        """`path` is the position with indexes (for unknown fields), `trail` without (as in Go's type errors)."""
        if depth > _MAX_DEPTH:
            raise DecodeError("exceeded max depth")
        fields = type_.fields
        for name in list(obj):
            field = fields.get(name)
            if field is None:
                self.unknown.append(f"{path}{name}")
                del obj[name]
                continue
            value = obj[name]
            if value is None:
                del obj[name]
                continue
            decoded = self._field(value, field, type_, path=path, trail=trail, depth=depth)
            if kept(decoded, field):
                # An empty list is stored as none.
                obj[name] = None if decoded == [] and field.container and not field.pointer else decoded
            else:
                del obj[name]
        for field in _zeros(type_):
            if field.name not in obj:
                obj[field.name] = self._zero(field, depth)

    def _field(self, value: Any, field: Field, owner: Struct, *, path: str, trail: str, depth: int) -> Any:
        path, trail = f"{path}{field.name}", f"{trail}{field.via}{field.name}"
        match field.container:
            case "list":
                if not isinstance(value, list):
                    raise _mismatch(value, owner, trail, field.go_whole or f"[]{_entry_name(field)}")
                for index, item in enumerate(value):
                    value[index] = self._value(item, field, owner, f"{path}[{index}]", trail, depth)
                return value
            case "map":
                if not isinstance(value, dict):
                    raise _mismatch(value, owner, trail, field.go_whole or f"map[string]{_entry_name(field)}")
                for key, item in value.items():
                    value[key] = self._value(item, field, owner, f"{path}.{key}", trail, depth)
                return value
            case _:
                return self._value(value, field, owner, path, trail, depth)

    def _value(self, value: Any, field: Field, owner: Struct, path: str, trail: str, depth: int) -> Any:
        type_ = field.type
        known = structs().get(type_)
        if known is not None:
            if value is None:
                value = {}  # Go decodes a null entry into the zero value.
            if not isinstance(value, dict):
                raise _mismatch(value, owner, trail, go_name(type_))
            self.struct(value, known, path=f"{path}.", trail=f"{trail}.", depth=depth + 1)
            return value
        if type_ == "SchemaOrValue":
            self._schema_or_value(value, path, trail, depth)
            return value
        if type_ in OPAQUE:
            return value
        if value is None:
            return _SCALAR_ZEROS.get(type_)
        if type_ == "string" and field.go and not isinstance(value, str):
            raise _mismatch(value, owner, trail, field.go)
        return _scalar(value, type_, owner, trail)

    def _schema_or_value(self, value: Any, path: str, trail: str, depth: int) -> None:
        """`items` and `additionalProperties` of a schema: a schema, a boolean or (refused later) a list."""
        if isinstance(value, dict):
            props = structs()["apiextensions/v1.JSONSchemaProps"]
            self.struct(value, props, path=f"{path}.", trail=f"{trail}.", depth=depth + 1)

    def _zero(self, field: Field, depth: int) -> Any:
        if field.container:
            return None
        known = structs().get(field.type)
        if known is None:
            return _SCALAR_ZEROS.get(field.type)
        zero: Json = {}
        self.struct(zero, known, path="", trail="", depth=depth + 1)
        return zero


_SCALAR_ZEROS: dict[str, Any] = {
    "string": "",
    "bool": False,
    "int32": 0,
    "int64": 0,
    "uint8": 0,
    "float64": 0.0,
    "Quantity": "0",
    "IntOrString": 0,
}

_ZEROS: dict[str, tuple[Field, ...]] = {}


def _zeros(type_: Struct) -> tuple[Field, ...]:
    """The fields that Go writes though they aren't set: those without omitempty, and structs, whose omitempty has no
    effect. `metadata` of the top level is filled in elsewhere."""
    found = _ZEROS.get(type_.key)
    if found is None:
        found = tuple(field for field in type_.fields.values() if _written_when_absent(field))
        _ZEROS[type_.key] = found
    return found


def _written_when_absent(field: Field) -> bool:
    if field.pointer or field.name in _OMIT_ZERO_TIME:
        return False
    if field.always:
        return field.type not in OPAQUE or bool(field.container)
    is_struct = field.type in structs() or field.type in ("Time", "MicroTime", "IntOrString")
    return is_struct and not field.container and field.type != "IntOrString"


def kept(value: Any, field: Field) -> bool:
    """Whether Go writes this value again: omitempty drops zeros, unless a pointer marks the zero as set."""
    if value is None:
        return False
    if field.pointer or field.always or field.type in OPAQUE:
        return True
    if field.container:
        return len(value) > 0
    if field.type in structs() or field.type in ("Quantity", "Time", "MicroTime", "IntOrString"):
        return True
    return value not in ("", 0, False)


def _scalar(value: Any, type_: str, owner: Struct, trail: str) -> Any:
    match type_:
        case "string":
            if not isinstance(value, str):
                raise _mismatch(value, owner, trail, "string")
            return value
        case "bool":
            if not isinstance(value, bool):
                raise _mismatch(value, owner, trail, "bool")
            return value
        case "int32" | "int64" | "uint8":
            return _integer(value, type_, owner, trail)
        case "float64":
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise _mismatch(value, owner, trail, "float64")
            return value
        case "bytes":
            return _bytes(value, owner, trail)
        case "Quantity":
            return _quantity(value)
        case "IntOrString":
            return _int_or_string(value)
        case "Time" | "MicroTime":
            if not isinstance(value, str):
                raise _mismatch(value, owner, trail, "string")
            return _time(value, type_)
        case "Values" | "Verbs":
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                raise _mismatch(value, owner, trail, "[]string")
            return value
        case _:
            raise AssertionError(type_)


def _integer(value: Any, type_: str, owner: Struct, trail: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _mismatch(value, owner, trail, type_)
    low, high = _RANGES[type_]
    if isinstance(value, float) or not low <= value <= high:
        shown = format(value, "g") if isinstance(value, float) else str(value)
        raise DecodeError(
            f"json: cannot unmarshal number {shown} into Go struct field {owner.name}.{trail} of type {type_}"
        )
    return value


def _bytes(value: Any, owner: Struct, trail: str) -> str:
    if not isinstance(value, str):
        raise _mismatch(value, owner, trail, "[]uint8")
    stripped = value.replace("\n", "").replace("\r", "")
    try:
        base64.b64decode(stripped, validate=True)
    except (binascii.Error, ValueError):
        raise DecodeError(f"illegal base64 data at input byte {_base64_error(stripped)}") from None
    return stripped


def _base64_error(text: str) -> int:
    """The position at which Go's decoder stops: at the first invalid character, or at an incomplete group of four."""
    at, size = 0, len(text)
    while at < size:
        for place in range(4):
            if at == size:
                return size - place if place else size
            if text[at] == "=":
                return _padding_error(text, at, place)
            if not (text[at].isascii() and (text[at].isalnum() or text[at] in "+/")):
                return at
            at += 1
    return size


def _padding_error(text: str, at: int, place: int) -> int:
    if place < 2:
        return at
    after = at + 1
    if place == 2:
        if after == len(text):
            return after
        if text[after] != "=":
            return at
        after += 1
    return after


def _quantity(value: Any) -> str:
    """The canonical text. A number is read as its decimal text, as Kubernetes does."""
    if isinstance(value, bool):
        raise DecodeError(_QUANTITY_ERROR)
    if isinstance(value, int | float):
        value = format(value, "g") if isinstance(value, float) else str(value)
    if not isinstance(value, str) or not _QUANTITY.fullmatch(value.strip()):
        raise DecodeError(_QUANTITY_ERROR)
    try:
        return parse_quantity(value.strip()).format()
    except MalformedQuantity:
        raise DecodeError("unable to parse quantity's suffix") from None


def _int_or_string(value: Any) -> Any:
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise DecodeError(f"json: cannot unmarshal {_kind(value)} into Go value of type int32")


def _time(value: str, type_: str) -> str:
    layout = "2006-01-02T15:04:05Z07:00" if type_ == "Time" else "2006-01-02T15:04:05.000000Z07:00"
    stamp = _STAMP.match(value)
    if stamp and stamp.end() < len(value):
        rest = value[stamp.end() :]
        raise DecodeError(f'parsing time "{value}": extra text: "{rest}"')
    if stamp and type_ == "MicroTime" and len(stamp["fraction"] or "") != _MICRO_DIGITS:
        rest = value[stamp.end("seconds") :]
        raise DecodeError(f'parsing time "{value}" as "{layout}": cannot parse "{rest}" as ".000000"')
    try:
        moment = datetime.fromisoformat(value) if stamp else None
    except ValueError:
        moment = None
    if moment is None:
        raise DecodeError(f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "2006"')
    utc = moment.astimezone(UTC).replace(tzinfo=None)
    return utc.isoformat(timespec="seconds" if type_ == "Time" else "microseconds") + "Z"


def _entry_name(field: Field) -> str:
    return field.go or go_name(field.type)


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case int() | float():
            return "number"
        case list():
            return "array"
        case _:
            return "object"


def _mismatch(value: Any, owner: Struct, trail: str, expected: str) -> DecodeError:
    return DecodeError(
        f"json: cannot unmarshal {_kind(value)} into Go struct field {owner.name}.{trail} of type {expected}"
    )


_GO_NAMES = {"bytes": "[]uint8", "Time": "v1.Time", "MicroTime": "v1.MicroTime", "Quantity": "resource.Quantity"}


def go_name(type_: str) -> str:
    """A type's name in Go's errors: `v1.Container`."""
    known = structs().get(type_)
    return f"{known.package}.{known.name}" if known else _GO_NAMES.get(type_, type_)
