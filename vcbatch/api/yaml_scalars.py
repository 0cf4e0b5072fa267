"""The value of a YAML scalar, as `kubectl` reads it.

The rules are those of `resolve` in sigs.k8s.io/yaml/goyaml.v2 (resolve.go) followed by the conversion to JSON in
sigs.k8s.io/yaml: YAML 1.1 booleans (`y`, `no`, `on`), octal numbers with a leading zero, no numbers to the base of 60,
dates as strings, and only values that JSON has.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from decimal import Decimal
from typing import Final

Scalar = str | int | float | bool | None

_CORE: Final = "tag:yaml.org,2002:"
STR: Final = f"{_CORE}str"
_NULL: Final = f"{_CORE}null"
_BOOL: Final = f"{_CORE}bool"
_INT: Final = f"{_CORE}int"
_FLOAT: Final = f"{_CORE}float"
_TIMESTAMP: Final = f"{_CORE}timestamp"
_BINARY: Final = f"{_CORE}binary"
MERGE: Final = f"{_CORE}merge"

_WORDS: Final[dict[str, bool | float | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}

_LETTERS: Final = frozenset("yYnN")
_NUMERIC_START: Final = frozenset("+-.0123456789")
_INTEGER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]*|0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+)")
_NUMBER: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_DOTTED: Final = re.compile(r"\.[0-9]+(?:[eE][-+]?[0-9]+)?")
_LONGEST_INTEGER: Final = 80
"""The maximum of characters: 64 binary digits, prefix, sign, and some zeros. Longer numbers are read as floats."""
_LEAST: Final = -(2**63)
_MOST_SIGNED: Final = 2**63 - 1
_MOST: Final = 2**64 - 1
_CATEGORIES: Final = {_NULL: "null", _BOOL: "bool", _INT: "int", _FLOAT: "float"}


class ScalarError(ValueError):
    """The scalar doesn't match its tag, or JSON has no such value."""


def resolve(text: str, *, tag: str | None, plain: bool, letters: bool = True) -> Scalar:
    """The value of a scalar. `tag` is the explicit tag, None without one; `plain`: it isn't quoted; `letters`: a bare
    `y` or `n` is a boolean, as for kubectl.

    Raises `ScalarError`.
    """
    if tag is None or tag == "!":
        value = _plain(text) if plain and tag is None and (letters or text not in _LETTERS) else text
    elif tag == _BINARY:
        value = _decoded(text)
    elif tag in _CATEGORIES:
        value = _tagged(text, tag)
    else:  # strings and dates, and values with an unknown tag
        value = text
    if isinstance(value, float) and not math.isfinite(value):
        raise ScalarError(f"{text} isn't a number that JSON has")
    return value


def key_of(value: Scalar) -> str:
    """A mapping's key as in JSON. Raises `ScalarError` for null, which kubectl rejects too."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return _shortest(value)
        case None:
            raise ScalarError("a key is null: quote it if the word itself is meant")


def json_number(value: float) -> float | int:
    """An integer where Go's encoder writes the float as one that fits into 64 bits: `1e3` is 1000."""
    return int(value) if value.is_integer() and _LEAST <= value < 2.0**63 else value


def _plain(text: str) -> Scalar:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMERIC_START:
        return text
    if text[0] == ".":
        return _finite(text) if _DOTTED.fullmatch(text) else text
    digits = text.replace("_", "")
    number = _integer(digits)
    if number is not None:
        return number
    if _NUMBER.fullmatch(digits):
        found = _finite(digits)
        return text if isinstance(found, str) else found
    return text


def _integer(digits: str) -> int | None:
    """The integer; None where it doesn't fit into 64 bits, or isn't an integer."""
    if len(digits) > _LONGEST_INTEGER or not _INTEGER.fullmatch(digits):
        return None
    unsigned = digits.lstrip("+-")
    base = {"0x": 16, "0b": 2, "0o": 8}.get(unsigned[:2].lower(), 8 if unsigned[0] == "0" else 10)
    number = int(digits, base)
    return number if _LEAST <= number <= (_MOST if digits[0] != "+" else _MOST_SIGNED) else None


def _finite(digits: str) -> float | str:
    """The float, or the text itself where the number is too large for one, as in Go."""
    number = float(digits)
    return number if math.isfinite(number) else digits


def _tagged(text: str, tag: str) -> Scalar:
    value = _plain(text)
    if tag == _FLOAT and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    found = _category(value)
    if found != _CATEGORIES[tag]:
        raise ScalarError(f"cannot decode !!{found} `{text[:60]}` as a !!{_CATEGORIES[tag]}")
    return value


def _category(value: Scalar) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int():
            return "int"
        case float():
            return "float"
        case str():
            return "str"


def _decoded(text: str) -> str:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode(errors="replace")
    except (binascii.Error, ValueError) as error:
        raise ScalarError("!!binary value contains invalid base64 data") from error


def _shortest(value: float) -> str:
    """The number as `strconv.FormatFloat(value, 'g', -1, 64)` formats it."""
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)  # noqa: S101 - the number is finite
    power = len(digits) + exponent - 1
    if value == 0 or -4 <= power < 6:
        text = format(abs(Decimal(repr(value))).normalize(), "f")
    else:
        rest = "".join(map(str, digits[1:]))
        text = f"{digits[0]}{'.' + rest if rest else ''}e{power:+03d}"
    return f"-{text}" if sign else text
