"""Field errors of Kubernetes' own objects, in Kubernetes' words.

Source: k8s.io/apimachinery `pkg/util/validation/field` (the texts) and Go's `%q` and `encoding/json` (the values).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """One error of an object. `reason` is the machine-readable cause (`FieldValueRequired`, …), `message` the whole
    text after the field path (`Required value: must be set`)."""

    reason: str
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def go_quote(text: str) -> str:
    """A string in the format of Go's `%q`."""
    out: list[str] = []
    for char in text:
        if char in _ESCAPES:
            out.append(_ESCAPES[char])
        elif char.isprintable():
            out.append(char)
        elif ord(char) < 0x80:
            out.append(f"\\x{ord(char):02x}")
        elif ord(char) < 0x10000:
            out.append(f"\\u{ord(char):04x}")
        else:
            out.append(f"\\U{ord(char):08x}")
    return f'"{"".join(out)}"'


def shown(value: Any) -> str:
    """A value as error texts show it: strings quoted, numbers and booleans bare, the rest as compact JSON."""
    if isinstance(value, str):
        return go_quote(value)
    if value is None:
        return "null"
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=isinstance(value, dict))
    return escape_html(text)


def escape_html(text: str) -> str:
    """JSON text with Go's escapes of HTML characters."""
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _made(reason: str, path: str, head: str, detail: str) -> FieldError:
    return FieldError(reason=reason, field=path, message=f"{head}: {detail}" if detail else head)


def required(path: str, detail: str = "") -> FieldError:
    return _made("FieldValueRequired", path, "Required value", detail)


def invalid(path: str, value: Any, detail: str) -> FieldError:
    return _made("FieldValueInvalid", path, f"Invalid value: {shown(value)}", detail)


def forbidden(path: str, detail: str) -> FieldError:
    return _made("FieldValueForbidden", path, "Forbidden", detail)


def duplicate(path: str, value: Any) -> FieldError:
    return _made("FieldValueDuplicate", path, f"Duplicate value: {shown(value)}", "")


def missing(path: str, value: Any, detail: str = "") -> FieldError:
    """`Not found`: a reference to something that the object itself must contain."""
    return _made("FieldValueNotFound", path, f"Not found: {shown(value)}", detail)


def unsupported(path: str, value: Any, allowed: Iterable[str]) -> FieldError:
    """`Unsupported value`, with the `allowed` ones in the given order."""
    listed = ", ".join(go_quote(choice) for choice in allowed)
    detail = f"supported values: {listed}" if listed else ""
    return _made("FieldValueNotSupported", path, f"Unsupported value: {shown(value)}", detail)


def too_long(path: str, maximum: int) -> FieldError:
    return _made("FieldValueTooLong", path, "Too long", f"may not be more than {maximum} bytes")


def too_many(path: str, actual: int, maximum: int) -> FieldError:
    items = "item" if maximum == 1 else "items"
    return _made("FieldValueTooMany", path, f"Too many: {actual}", f"must have at most {maximum} {items}")


def invalid_each(path: str, value: Any, details: Sequence[str]) -> list[FieldError]:
    """One `Invalid value` for each error of a name rule."""
    return [invalid(path, value, detail) for detail in details]


NEGATIVE = "must be greater than or equal to 0"
IMMUTABLE = "field is immutable"


def not_negative(path: str, value: Any) -> list[FieldError]:
    return [invalid(path, value, NEGATIVE)] if isinstance(value, int) and value < 0 else []


def immutable(path: str, value: Any, old: Any) -> list[FieldError]:
    return [] if value == old else [invalid(path, value, IMMUTABLE)]


def between(low: int, high: int) -> str:
    return f"must be between {low} and {high}, inclusive"


def ordered(value: Any) -> str:
    """Compact JSON that keeps the order of keys, as Go encodes a struct."""
    return escape_html(json.dumps(value, separators=(",", ":"), ensure_ascii=False))
