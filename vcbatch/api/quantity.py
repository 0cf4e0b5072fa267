"""Exact Kubernetes quantities (`k8s.io/apimachinery/pkg/api/resource`): `100m`, `1.5Gi`, `2e3`, `-4k`.

A quantity is an integer number of billionths (nano), the smallest unit of Kubernetes: finer fractions are rounded away
from zero, so that a request above zero never becomes zero. Quantities in binary units are capped at 2**63 - 1, as
there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache, total_ordering

NANO = 10**9
"""Billionths in one."""

_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIX = {exponent: suffix for suffix, exponent in _BINARY.items()}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_NUMBER = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([A-Za-z]*|[eE][+-]?[0-9]+)", re.ASCII)
_BINARY_CAP = (2**63 - 1) * NANO
_MOST_CHARACTERS = 256
_LARGEST_EXPONENT = 1000


class MalformedQuantity(ValueError):
    """Text that isn't a quantity."""


class Notation(StrEnum):
    """The family of suffixes that a quantity was written with and is formatted in."""

    BINARY_SI = "BinarySI"
    DECIMAL_SI = "DecimalSI"
    DECIMAL_EXPONENT = "DecimalExponent"


@total_ordering
@dataclass(frozen=True, slots=True)
class Quantity:
    """An exact quantity of `nano` billionths. Two of the same value are equal in any notation."""

    nano: int
    notation: Notation = field(default=Notation.DECIMAL_SI, compare=False)

    def value(self) -> int:
        """Whole units, rounded away from zero."""
        return _round_up(self.nano, NANO)

    def milli(self) -> int:
        """Thousandths, rounded away from zero."""
        return _round_up(self.nano, 10**6)

    def format(self) -> str:
        """The canonical text: no fraction, the largest suffix that keeps it exact, `0` for nothing."""
        if self.notation is Notation.BINARY_SI and self.nano % NANO == 0:
            return binary_text(self.nano // NANO)
        if self.notation is Notation.DECIMAL_EXPONENT:
            return _exponent_text(self.nano)
        return _decimal_text(self.nano, -9)

    def __str__(self) -> str:
        return self.format()

    def __bool__(self) -> bool:
        return self.nano != 0

    def __lt__(self, other: Quantity) -> bool:
        return self.nano < other.nano

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano + other.nano, self.notation if self.nano else other.notation)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano - other.nano, self.notation if self.nano else other.notation)

    def __mul__(self, times: int) -> Quantity:
        return Quantity(self.nano * times, self.notation)

    def __neg__(self) -> Quantity:
        return Quantity(-self.nano, self.notation)


ZERO = Quantity(0)


def parse_quantity(given: str | float) -> Quantity:
    """Parse a quantity as Kubernetes does from JSON: text or a number. Raises `MalformedQuantity`."""
    if isinstance(given, bool):
        raise MalformedQuantity("a boolean is no quantity")
    if isinstance(given, int):
        return Quantity(given * NANO)
    return _parse(given if isinstance(given, str) else repr(given))


def of_value(value: int, *, notation: Notation = Notation.DECIMAL_SI) -> Quantity:
    """A quantity of `value` whole units."""
    return Quantity(value * NANO, notation)


def of_milli(milli: int) -> Quantity:
    """A quantity of `milli` thousandths, the unit of CPU."""
    return Quantity(milli * 10**6)


@lru_cache(maxsize=16384)
def _parse(text: str) -> Quantity:
    number = _NUMBER.fullmatch(text) if 0 < len(text) <= _MOST_CHARACTERS else None
    if number is None:
        raise MalformedQuantity(f"{text[:64]!r} is no quantity: want a number with a suffix such as m, k, Mi or e3")
    sign, whole, fraction, suffix = number[1], number[2], number[3] or "", number[4]
    # As in Go, a number may lack its digits: "." and "m" are zero.
    mantissa = int((whole + fraction) or "0")
    if suffix in _BINARY:
        nano = _round_up((mantissa << _BINARY[suffix]) * NANO, 10 ** len(fraction))
        nano = min(nano, _BINARY_CAP)
        notation = Notation.BINARY_SI if nano == 0 or nano >= NANO else Notation.DECIMAL_SI
    else:
        exponent, notation = _decimal_exponent(text, suffix)
        nano = _scale(mantissa, exponent + 9 - len(fraction))
    return Quantity(-nano if sign == "-" else nano, notation)


def _decimal_exponent(text: str, suffix: str) -> tuple[int, Notation]:
    if suffix in _DECIMAL:
        return _DECIMAL[suffix], Notation.DECIMAL_SI
    if suffix[0] not in "eE" or not suffix[1:].lstrip("+-").isdigit():
        raise MalformedQuantity(f"{text!r} has the unknown suffix {suffix!r}: want n u m k M G T P E, Ki to Ei or eN")
    exponent = int(suffix[1:])
    if exponent > _LARGEST_EXPONENT:
        raise MalformedQuantity(f"{text!r} is too large: exponents end at {_LARGEST_EXPONENT}")
    return exponent, Notation.DECIMAL_EXPONENT


def _scale(mantissa: int, exponent: int) -> int:
    if exponent >= 0:
        return mantissa * 10**exponent
    if -exponent > _MOST_CHARACTERS:  # certainly less than the smallest quantity
        return 1 if mantissa else 0
    return _round_up(mantissa, 10**-exponent)


def _round_up(value: int, unit: int) -> int:
    """`value / unit`, rounded away from zero."""
    return -(-value // unit) if value >= 0 else value // unit


def milli_text(milli: int) -> str:
    """Thousandths as canonical text, without an intermediate `Quantity`: `1500m`, `4`."""
    return _decimal_text(milli, -3)


def decimal_text(units: int) -> str:
    """Whole units as text: `999`, `2k`."""
    return _decimal_text(units, 0)


def binary_text(units: int) -> str:
    """Whole units as text in powers of 1024, those below the first as decimals: `8Gi`, `1k`."""
    if -1024 < units < 1024:
        return _decimal_text(units, 0)
    exponent = 0
    while units % 1024 == 0 and exponent < 60:
        units //= 1024
        exponent += 10
    return f"{units}{_BINARY_SUFFIX.get(exponent, '')}"


def _decimal_text(number: int, exponent: int) -> str:
    if number == 0:
        return "0"
    while number % 1000 == 0 and exponent < 18:
        number //= 1000
        exponent += 3
    return f"{number}{_DECIMAL_SUFFIX[exponent]}"


def _exponent_text(nano: int) -> str:
    if nano == 0:
        return "0"
    exponent = -9
    while nano % 1000 == 0:
        nano //= 1000
        exponent += 3
    return f"{nano}e{exponent}" if exponent else str(nano)
