"""Encodes built-in objects in protobuf as Kubernetes' Go clients do, for tests of the decoder."""

from __future__ import annotations

import base64
import json
import struct
from datetime import datetime
from typing import Any

from vcbatch.local.apiserver.schema.types import Field, Struct, kind_struct, structs

Json = dict[str, Any]


def encode(obj: Json) -> bytes:
    """The request body for `obj`."""
    known = kind_struct(api_version=obj["apiVersion"], kind=obj["kind"])
    assert known is not None
    body = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")}
    type_meta = chunk(1, obj["apiVersion"].encode()) + chunk(2, obj["kind"].encode())
    raw = message(body, known)
    return b"k8s\0" + chunk(1, type_meta) + chunk(2, raw) + chunk(3, b"") + chunk(4, b"")


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def chunk(number: int, raw: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def message(obj: Json, of: Struct) -> bytes:
    out = b""
    for field in of.own:
        if not field.number:
            continue
        if field.inline:
            inner = structs()[field.type]
            out += chunk(field.number, message({k: v for k, v in obj.items() if k in inner.fields}, inner))
        elif field.name in obj:
            out += _field(obj[field.name], field)
    return out


def _field(value: Any, field: Field) -> bytes:
    match field.container:
        case "list":
            return b"".join(_tagged(field.number, item, field.type) for item in value)
        case "map":
            return b"".join(
                chunk(field.number, chunk(1, key.encode()) + _tagged(2, item, field.type))
                for key, item in value.items()
            )
        case _:
            return _tagged(field.number, value, field.type)


def _tagged(number: int, value: Any, type_: str) -> bytes:
    if type_ in structs():
        return chunk(number, message(value, structs()[type_]))
    match type_:
        case "string":
            return chunk(number, value.encode())
        case "bool" | "int32" | "int64" | "uint8":
            return varint(number << 3) + varint(int(value))
        case "float64":
            return varint(number << 3 | 1) + struct.pack("<d", value)
        case "bytes":
            return chunk(number, base64.b64decode(value))
        case "Quantity":
            return chunk(number, chunk(1, value.encode()))
        case "Time" | "MicroTime":
            moment = datetime.fromisoformat(value)
            nanos = moment.microsecond * 1000
            return chunk(number, varint(1 << 3) + varint(int(moment.timestamp() // 1)) + varint(2 << 3) + varint(nanos))
        case "IntOrString":
            whole = isinstance(value, int)
            return chunk(
                number,
                varint(1 << 3)
                + varint(0 if whole else 1)
                + varint(2 << 3)
                + varint(value if whole else 0)
                + chunk(3, b"" if whole else value.encode()),
            )
        case "Values" | "Verbs":
            return chunk(number, b"".join(chunk(1, item.encode()) for item in value))
        case "RawExtension" | "FieldsV1" | "JSON":
            return chunk(number, chunk(1, json.dumps(value).encode()))
        case _:
            raise AssertionError(type_)
