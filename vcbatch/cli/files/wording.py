"""Error messages for fields of manifests: the path, the value, and the allowed values.

Servers report errors in terms of Go and of their own validators ("expected numeric (int or float), got string",
"Invalid value: \"integer\": spec.queue in body must be of type string"), each of them in a different form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from vcbatch.api.field_errors import FieldError

_LONGEST: Final = 60
"""Maximum characters of a value in a message."""
_TIME: Final = "a time such as 2026-01-01T00:00:00Z"
_REFERENCE: Final = "a mapping with apiVersion, kind, name and uid"
_WORDS: Final[Mapping[str, str]] = {
    "string": "a string", "types.UID": "a string", "integer": "an integer", "int32": "a 32-bit integer",
    "int64": "a 64-bit integer", "number": "a number", "float64": "a number", "double": "a number",
    "numeric (int or float)": "a number", "boolean": "true or false", "bool": "true or false", "object": "a mapping",
    "map": "a mapping", "array": "a list", "list": "a list", "map[string]string": "a mapping of strings",
    "[]string": "a list of strings", "date-time": _TIME, "v1.Time": _TIME, "byte": "text in base64",
    "[]uint8": "text in base64", "integer,string": "an integer or a string",
    "resource.Quantity": "a quantity such as 500m or 4Gi",
    "v1.ObjectMeta": "a mapping", "v1.OwnerReference": _REFERENCE, "[]v1.OwnerReference": f"a list, each {_REFERENCE}",
    "v1.FieldsV1": "a mapping",
}  # fmt: skip
_GO_STRUCT: Final = re.compile(r"\*?[a-z][a-z0-9]*\.[A-Z]\w*")
_GO_MAP: Final = re.compile(r"map\[\w+\](.+)")
_MISTYPED: Final = re.compile(
    r'Invalid value: ".*": (?:.* in body )?must be of type (?P<wanted>[^:]+): ".*"', re.DOTALL
)
_KEYLESS: Final = re.compile(
    r"(?:element (?P<index>\d+): )?associative list with keys has an element that omits key field \"?(?P<key>\w+)"
)
_BODY: Final = re.compile(r"^(Invalid value: .*?: )\S* in body (?=should |must )", re.DOTALL)
_OF_RANGE: Final = re.compile(
    r"Checked value must be of type integer (?:with format (?P<format>\w+)|\(default format\)) in (?P<path>.+)"
)
_COMBINED: Final = re.compile(r'"(?P<path>[^"]*)" must (?:not )?validate ')
_EMPTY: Final = re.compile(r'^Invalid value: (?:""|null): ')
_AMOUNT: Final = r"should match '^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
"""The beginning of the pattern of quantities."""
_NOWHERE: Final = "<nil>"
"""The field name in errors that a server's validator reports without a field."""
_RULES_SKIPPED: Final = "some validation rules were not checked"


def shown(value: Any) -> str:
    """A value as in a manifest, truncated."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def type_words(wanted: str) -> str:
    """The words for a type of a schema or of Go, such as `a 32-bit integer`."""
    known = _WORDS.get(wanted)
    if known is not None:
        return known
    if wanted.startswith("[]"):
        return "a list"
    if _GO_MAP.fullmatch(wanted) or _GO_STRUCT.fullmatch(wanted):
        return "a mapping"
    return wanted


def mistyped(field: str, wanted: str, value: Any) -> str:
    """The message for a value of the wrong type."""
    return f"{field}: must be {type_words(wanted)}, got {shown(value)}"


def unknown_field(field: str, meant: str = "") -> str:
    """The message for an unknown field, with a suggestion."""
    return f"unknown field {field!r}" + (f"; did you mean {meant!r}?" if meant else "")


def schema_errors(errors: Iterable[FieldError], obj: Any) -> Iterator[tuple[str, str]]:
    """Field and message of each schema error of an object, without duplicates, each with the field that needs a fix.
    The note that rules weren't evaluated because of other errors is left out."""
    found: list[tuple[str, str]] = []
    types: dict[str, set[str]] = {}
    choices: list[tuple[str, str]] = []
    for error in errors:
        detail = _EMPTY.sub("", error.message)
        if detail.startswith(_RULES_SKIPPED):
            continue
        if error.field == _NOWHERE and (ranged := _OF_RANGE.fullmatch(detail)):
            types.setdefault(ranged["path"].removeprefix("."), set()).add(ranged["format"] or "int64")
        elif error.field == _NOWHERE and (chosen := _COMBINED.match(detail)):
            choices.append((chosen["path"].removeprefix("."), detail))
        elif error.reason == "FieldValueTypeInvalid" and (wrong := _MISTYPED.fullmatch(error.message)):
            types.setdefault(error.field, set()).add(wrong["wanted"])
        else:
            found.append((error.field, _plain(error, obj)))
    # One message says what is allowed: the values of an enum, else the types.
    listed = {field for field, text in found if ": Unsupported value: " in text}
    for field, wanted in types.items():
        if field not in listed:
            found = [one for one in found if one[0] != field]
            found.append((field, mistyped(field, _loosest(wanted), value_at(obj, field))))
    # A failed choice of several schemas is explained by the errors of its parts.
    reported = {field for field, _ in found}
    found += [(path, f"{path}: {text}") for path, text in choices if not any(within(one, path) for one in reported)]
    yield from dict.fromkeys(found)


def _plain(error: FieldError, obj: Any) -> str:
    if _AMOUNT in error.message:
        return mistyped(error.field, "resource.Quantity", value_at(obj, error.field))
    text = _BODY.sub(r"\1", error.message)
    return f"{error.field}: {text}"


def _loosest(wanted: set[str]) -> str:
    """The least restrictive of the types that one value was checked against."""
    choice = sorted(wanted, key=lambda one: ("," not in one, one))
    return choice[0]


def within(path: str, above: str) -> bool:
    """Whether `path` equals `above` or is below it."""
    return path == above or path.startswith((f"{above}.", f"{above}["))


def apply_error(path: str, what: str, obj: Any) -> str:
    """The error of a server for a field of an applied configuration, reworded; unchanged where its form isn't known."""
    if what == "field not declared in schema":
        return unknown_field(path)
    if found := re.fullmatch(r"expected (?P<wanted>[a-z]+(?: \(int or float\))?), got .*", what, re.DOTALL):
        return mistyped(path, found["wanted"], value_at(obj, path))
    if found := re.fullmatch(r"duplicate entries for key \[(?P<key>.*)\]", what, re.DOTALL):
        return f"{path}: duplicate elements with {_key(found['key'])}"
    if found := _KEYLESS.search(what):
        at = f"{path}[{found['index']}]" if found["index"] else path
        return f"{at}: must have {found['key']}, which identifies the element"
    return f"{path}: {what}"


def _key(text: str) -> str:
    """`name: "a"` for the key `name="a"` of an element, and the value for one without a name."""
    pairs = [pair.partition("=") for pair in text.split(",")]
    return ", ".join(f"{name}: {value}" if name else f"the value {value}" for name, _, value in pairs)


def value_at(value: Any, path: str) -> Any:
    """The value at a path such as `spec.tasks[0].name` or `metadata.labels.a.b/c`; None where the path doesn't
    exist."""
    while path:
        step = _step(value, path)
        if step is None:
            return None
        key, path = step
        value = value[key]
    return value


def put(value: Any, path: str, new: Any) -> None:
    """Replace the value at a path, in place; does nothing where the path doesn't exist."""
    while step := _step(value, path):
        key, path = step
        if not path:
            value[key] = new
            return
        value = value[key]


def _step(value: Any, path: str) -> tuple[Any, str] | None:
    """The key with which the path begins, and its rest; None where the value has no such key."""
    if isinstance(value, list):
        index, bracket, rest = path.removeprefix("[").partition("]")
        if not bracket or not index.isdecimal() or int(index) >= len(cast("Sequence[Any]", value)):
            return None
        return int(index), rest.removeprefix(".")
    if isinstance(value, dict):
        keys = [key for key in cast("Mapping[str, Any]", value) if _rest(path, key) is not None]
        if keys:
            key = max(keys, key=len)
            return key, _rest(path, key) or ""
    return None


def _rest(path: str, key: str) -> str | None:
    """The rest of the path after this key; None where the path doesn't begin with it."""
    for written in (key, f"[{key}]"):
        if path.startswith(written):
            rest = path[len(written) :]
            if not rest or rest[0] in ".[":
                return rest.removeprefix(".")
    return None
