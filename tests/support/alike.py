"""Compares a stored object with an expected one."""

from __future__ import annotations

from vcbatch.api.model import Json


def unlike(expected: Json, stored: Json, path: str = "") -> list[str]:
    """The paths at which `stored` lacks an expected value. Additional values, as from schema defaults, are ignored."""
    found: list[str] = []
    for key, value in expected.items():
        if key in ("metadata", "status") or value in (None, {}, "", []):
            continue
        if isinstance(value, dict) and isinstance(stored.get(key), dict):
            found += unlike(value, stored[key], f"{path}.{key}")
        elif isinstance(value, list) and value and isinstance(value[0], dict) and isinstance(stored.get(key), list):
            for index, (mine, theirs) in enumerate(zip(value, stored[key], strict=True)):
                found += unlike(mine, theirs, f"{path}.{key}[{index}]")
        elif stored.get(key) != value:
            found.append(f"{path}.{key}: {stored.get(key)!r}, want {value!r}")
    return found
