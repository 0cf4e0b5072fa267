"""Integers that users write into annotations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MOST_DIGITS: Final = 9


def number_in(annotations: Mapping[str, str], name: str, *, least: int = 1, most: int = 10**MOST_DIGITS) -> int | None:
    """The value of this annotation; None where it is absent or no integer from `least` to `most` (admission rejects
    it)."""
    text = annotations.get(name, "")
    if not (text.isascii() and text.isdigit()) or len(text) > MOST_DIGITS:
        return None
    number = int(text)
    return number if least <= number <= most else None
