"""JSON merge patch (RFC 7386)."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def merge(target: Any, patch: Any) -> Any:
    """`target` with `patch` applied; the target isn't changed. A null in the patch removes the key."""
    if not isinstance(patch, dict):
        return patch
    merged: Json = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged
