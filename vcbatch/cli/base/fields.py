"""Access to fields of untyped objects from a server. A missing field, or one of another type, reads as empty, so that
one malformed object doesn't hide the others."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from vcbatch.api.loose import listed, part
from vcbatch.api.quantities import read
from vcbatch.api.quantity import Quantity
from vcbatch.api.timestamps import parse_time
from vcbatch.cli.base.output import age

Json = dict[str, Any]

NONE = "<none>"
UNKNOWN = "<unknown>"


def dig(obj: Mapping[str, Any], *path: str) -> Any:
    """The value at a path of names; None where there is none."""
    at: Any = obj
    for name in path:
        if not isinstance(at, Mapping):
            return None
        at = at.get(name)
    return at


def text(obj: Mapping[str, Any], *path: str) -> str:
    """The text (or number, as text) at a path; empty where there is none."""
    value = dig(obj, *path)
    if isinstance(value, bool) or value is None or isinstance(value, (dict, list)):
        return ""
    return str(value)


def number(obj: Mapping[str, Any], *path: str) -> int:
    """The whole number at a path; 0 where there is none."""
    value = dig(obj, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def objects(obj: Mapping[str, Any], *path: str) -> list[Json]:
    """The objects of the list at a path."""
    *way, last = path
    at: Mapping[str, Any] = obj
    for name in way:
        at = part(at, name)
    return [item for item in listed(at, last) if isinstance(item, dict)]


def words(obj: Mapping[str, Any], *path: str) -> dict[str, str]:
    """The map of texts at a path, such as labels."""
    value = dig(obj, *path)
    return {str(key): str(each) for key, each in value.items()} if isinstance(value, dict) else {}


def quantities(obj: Mapping[str, Any], *path: str) -> dict[str, Quantity]:
    """The resource quantities at a path. A value that isn't a quantity counts as zero."""
    value = dig(obj, *path)
    if not isinstance(value, dict):
        return {}
    return {str(key): read(each) for key, each in value.items()}


def moment(obj: Mapping[str, Any], *path: str) -> datetime | None:
    """The time at a path; None where there is none or it can't be parsed."""
    value = dig(obj, *path)
    try:
        return parse_time(value) if isinstance(value, str) and value else None
    except ValueError:
        return None


def since(obj: Mapping[str, Any], *path: str, now: datetime) -> str:
    """The age of the time at a path, in kubectl's format."""
    when = moment(obj, *path)
    return age(when, now) if when is not None else UNKNOWN


def name_of(obj: Mapping[str, Any]) -> str:
    return text(obj, "metadata", "name")


def namespace_of(obj: Mapping[str, Any]) -> str:
    return text(obj, "metadata", "namespace")


def uid_of(obj: Mapping[str, Any]) -> str:
    return text(obj, "metadata", "uid")
