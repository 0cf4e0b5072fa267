"""Quantities as stored in objects: text or number, compared exactly and written canonically."""

from __future__ import annotations

from typing import Any

from vcbatch.api.quantity import ZERO, MalformedQuantity, Quantity, parse_quantity


def read(value: Any) -> Quantity:
    """A stored quantity; zero for a malformed one, which decoding has rejected before."""
    try:
        return parse_quantity(value) if isinstance(value, (str, int, float)) else ZERO
    except MalformedQuantity:
        return ZERO


def compare(left: Any, right: Any) -> int:
    """Below, at or above zero, as `left` is less than, equal to or more than `right`."""
    a, b = read(left), read(right)
    return (a > b) - (a < b)


def text(value: Any) -> str:
    """The canonical text."""
    return read(value).format()
