"""How built-in objects decode: unknown fields, wrong types and the zero values that Go drops or writes."""

from __future__ import annotations

from vcbatch.local.apiserver.registry import Json
from vcbatch.local.apiserver.schema import builtin


def decode(type_name: str, obj: Json) -> list[str]:
    """Check and normalise `obj` in place as the Go type `type_name`; answers the strict decoding faults.
    Raises `errors.DecodeError` where a value has the wrong type."""
    return builtin.decode_kind(type_name, obj)
