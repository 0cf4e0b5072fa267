"""Functions of expressions on text, with regular expressions.

Source: cel-go `ext/strings.go`, `ext/encoders.go`; k8s.io/apiserver `pkg/cel/library/regex.go`.
"""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false
# Values of expressions have any type; what has the wrong one raises TypeError, which ends the expression.

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vcbatch.api.cel.evaluate import Budget, Function
from vcbatch.api.cel.operators import double
from vcbatch.api.cel.patterns import pattern_of
from vcbatch.api.cel.support import has, plain, same, weight
from vcbatch.api.cel.values import CelError, shown

_MOST_DECIMALS = 100


def _matches(budget: Budget, values: Sequence[Any]) -> bool:
    text, pattern = values
    budget.spend(_regex_cost(text, pattern))
    return pattern_of(budget, pattern).search(text) is not None


def _regex_cost(text: str, pattern: str) -> int:
    return (weight(text) + 1) * ((len(pattern) + 3) // 4)


def _find(budget: Budget, values: Sequence[Any]) -> str:
    text, pattern = values
    budget.spend(_regex_cost(text, pattern))
    found = pattern_of(budget, pattern).search(text)
    return found[0] if found else ""


def _find_all(budget: Budget, values: Sequence[Any]) -> list[str]:
    text, pattern, *limit = values
    budget.spend(_regex_cost(text, pattern) + len(text))
    found = [match[0] for match in pattern_of(budget, pattern).finditer(text)]
    return found if not limit or limit[0] < 0 else found[: limit[0]]


def _contains(budget: Budget, values: Sequence[Any]) -> bool:
    text, part = values
    if isinstance(text, list):
        return has(budget, text, part)
    budget.spend(weight(text) * weight(part))
    return part in text


def _replace(budget: Budget, values: Sequence[Any]) -> str:
    text, old, new, *limit = values
    count = limit[0] if limit else -1
    most = text.count(old) if count < 0 else min(count, text.count(old))
    budget.spend(weight(text) * 2 + (most * len(new) + 9) // 10)
    return text.replace(old, new, count if count >= 0 else -1)


def _split(budget: Budget, values: Sequence[Any]) -> list[str]:
    """Split a text. The cost is a traversal of the text and one unit for each part, of which there may be one per
    character."""
    text, separator, *rest = values
    limit = rest[0] if rest else -1
    budget.spend(weight(text) + weight(separator))
    if limit == 0:
        return []
    budget.spend((text.count(separator) if separator else len(text)) + 1)
    if not separator:
        parts = list(text)
        return parts if limit < 0 or len(parts) <= limit else [*parts[: limit - 1], "".join(parts[limit - 1 :])]
    return text.split(separator, limit - 1 if limit > 0 else -1)


def _join(budget: Budget, values: Sequence[Any]) -> str:
    items, *separator = values
    glue = separator[0] if separator else ""
    budget.spend(len(items) + sum(map(weight, items)) + (len(items) * len(glue)) // 10)
    return glue.join(items)


def _substring(text: str, start: int, end: int | None = None) -> str:
    stop = len(text) if end is None else end
    if not 0 <= start <= stop <= len(text):
        raise CelError(f"index out of range: {start if end is None or not 0 <= start <= len(text) else stop}")
    return text[start:stop]


def _char_at(text: str, at: int) -> str:
    if not 0 <= at <= len(text):
        raise CelError(f"index out of range: {at}")
    return text[at : at + 1]


def _index_of(budget: Budget, values: Sequence[Any]) -> int:
    value, item, *offset = values
    if isinstance(value, str):
        budget.spend(weight(value) * max(1, weight(item)))
        return value.find(item, offset[0] if offset else 0)
    for at, one in enumerate(value):
        budget.spend(1)
        if same(budget, one, item):
            return at
    return -1


def _last_index_of(budget: Budget, values: Sequence[Any]) -> int:
    value, item, *offset = values
    if isinstance(value, str):
        budget.spend(weight(value) * max(1, weight(item)))
        return value.rfind(item) if not offset else value.rfind(item, 0, offset[0] + len(item))
    for at in range(len(value) - 1, -1, -1):
        budget.spend(1)
        if same(budget, value[at], item):
            return at
    return -1


def _ascii(change: Callable[[str], str]) -> Function:
    return plain(lambda text: "".join(change(char) if char.isascii() else char for char in text))


def _quote(text: str) -> str:
    escapes = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
    escapes |= {"\\": "\\\\", '"': '\\"'}
    return '"' + "".join(escapes.get(char, char) for char in text) + '"'


_VERB = re.compile(r"%(?:\.(\d+))?([%sdfexXob])")


def _format(budget: Budget, values: Sequence[Any]) -> str:
    text, args = values
    budget.spend(weight(text))
    for arg in args:
        _spend_on_text_of(budget, arg)
    waiting = iter(args)

    def one(match: re.Match[str]) -> str:
        if match[2] == "%":
            return "%"
        try:
            value = next(waiting)
        except StopIteration:
            raise CelError("index 0 out of range") from None
        made = clause(match[2], value, min(int((match[1] or "6")[:4]), _MOST_DECIMALS))
        budget.spend(weight(made))
        return made

    def clause(verb: str, value: Any, decimals: int) -> str:
        match verb:
            case "s":
                return _shown_in_format(value)
            case "d":
                return str(int(value)) if isinstance(value, int) and not isinstance(value, bool) else _refuse()
            case "f":
                return f"{double(value):.{decimals}f}"
            case "e":
                return f"{double(value):.{decimals}e}"
            case "b":
                return f"{int(value):b}" if isinstance(value, int) else _refuse()
            case "o":
                return f"{value:o}" if isinstance(value, int) and not isinstance(value, bool) else _refuse()
            case _:
                if isinstance(value, int) and not isinstance(value, bool):
                    return f"{value:{verb}}"
                raw = value.encode() if isinstance(value, str) else bytes(value)
                return raw.hex().upper() if verb == "X" else raw.hex()

    return _VERB.sub(one, text)


def _refuse() -> str:
    raise CelError("could not convert argument to the clause of the format string")


def _spend_on_text_of(budget: Budget, value: Any) -> None:
    """Take the cost of converting the value to text, part by part: parts that lists share are converted each time."""
    match value:
        case str() | bytes():
            budget.spend(1 + weight(value))
        case list():
            budget.spend(1)
            for item in value:
                _spend_on_text_of(budget, item)
        case dict():
            budget.spend(1)
            for key, item in value.items():
                _spend_on_text_of(budget, key)
                _spend_on_text_of(budget, item)
        case _:
            budget.spend(1)


def _shown_in_format(value: Any) -> str:
    match value:
        case None:
            return "null"
        case list():
            return f"[{', '.join(map(_shown_in_format, value))}]"
        case dict():
            pairs = sorted(f"{_shown_in_format(key)}: {_shown_in_format(item)}" for key, item in value.items())
            return f"{{{', '.join(pairs)}}}"
        case _:
            return shown(value)


TEXT: Mapping[str, Function] = {
    "contains": _contains,
    "startsWith": plain(lambda text, part: str.startswith(text, part)),
    "endsWith": plain(lambda text, part: str.endswith(text, part)),
    "matches": _matches,
    "find": _find,
    "findAll": _find_all,
    "replace": _replace,
    "split": _split,
    "join": _join,
    "substring": plain(_substring),
    "charAt": plain(_char_at),
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
    "lowerAscii": _ascii(str.lower),
    "upperAscii": _ascii(str.upper),
    "trim": plain(lambda text: str.strip(text)),
    "reverse": plain(lambda value: value[::-1]),
    "strings.quote": plain(_quote),
    "format": _format,
    "base64.encode": plain(lambda value: base64.b64encode(value).decode()),
    "base64.decode": plain(lambda text: base64.b64decode(text + "=" * (-len(text) % 4), validate=True)),
}
