"""Whole numbers that users write into annotations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MOST_DIGITS: Final = 9


def number_in(annotations: Mapping[str, str], name: str, *, least: int = 1, most: int = 10**MOST_DIGITS) -> int | None:
    """The number that this annotation says; None where it is absent, and where what is written there is no number from
    `least` to `most` (admission refuses it)."""
    text = annotations.get(name, "")
    if not (text.isascii() and text.isdigit()) or len(text) > MOST_DIGITS:
        return None
    number = int(text)
    return number if least <= number <= most else None
