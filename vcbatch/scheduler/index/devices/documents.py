"""Parts of a YAML document that must be mappings or lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast


def mapping(value: object) -> Mapping[str, Any]:
    """The mapping; empty if the value is None. Raises `TypeError`."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"want a mapping, got {value!r}")
    return cast("Mapping[str, Any]", value)


def listing(value: object) -> Sequence[Any]:
    """The list; empty if the value is None. Raises `TypeError`."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise TypeError(f"want a list, got {value!r}")
    return cast("Sequence[Any]", value)
