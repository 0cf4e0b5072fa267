"""Values as text, in the format of Go's `fmt.Fprint` and `json.Marshal`."""

from __future__ import annotations

import json
import re
from typing import Any, Final, cast

_HTML: Final = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}

_MAYBE_FLOAT: Final = re.compile(r"[:\[,]-?(?:[0-9]+[.e]|Infinity|NaN)")


def shown(value: Any) -> str:
    """A value as text: objects and lists as compact JSON, `null` for nothing."""
    match value:
        case str():
            return value
        case dict() | list():
            text = json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False, default=str)
            # Only floats are formatted differently by Go.
            return _encoded(cast("object", value)) if _MAYBE_FLOAT.search(text) else text.translate(_HTML)
        case float():
            return _number(value, smallest=-4, largest=6)
        case _:
            return _encoded(value)


def _encoded(value: object) -> str:
    match value:
        case dict():
            fields = cast("dict[str, object]", value)
            return f"{{{','.join(f'{_encoded(key)}:{_encoded(fields[key])}' for key in sorted(fields))}}}"
        case list():
            return f"[{','.join(map(_encoded, cast('list[object]', value)))}]"
        case float():
            return _number(value, smallest=-6, largest=21).replace("e-0", "e-")
        case str():
            return json.dumps(value, ensure_ascii=False).translate(_HTML)
        case _:
            return json.dumps(value, default=str)


def _number(value: float, *, smallest: int, largest: int) -> str:
    """The number with the fewest digits, with an exponent outside of these powers of ten."""
    sign, digits, power = _digits(value)
    if value and (power < smallest or power >= largest):
        mantissa = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
        return f"{sign}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02}"
    if power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    whole = digits[: power + 1].ljust(power + 1, "0")
    return f"{sign}{whole}.{digits[power + 1 :]}".rstrip(".")


def _digits(value: float) -> tuple[str, str, int]:
    """The sign, the significant digits, and the power of ten of the first of them."""
    text = repr(value)
    sign = "-" if text.startswith("-") else ""
    mantissa, _, exponent = text.removeprefix("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    every = whole + fraction
    digits = every.lstrip("0")
    power = len(whole) - 1 - (len(every) - len(digits)) + int(exponent or 0)
    return (sign, digits.rstrip("0"), power) if digits else (sign, "0", 0)
