"""Printer columns of custom resources: the JSON paths that they name and the cells these give.

Source: apiextensions-apiserver `pkg/registry/customresource/tableconvertor`, client-go `util/jsonpath`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

from vcbatch.api.jsonpath import shown
from vcbatch.local.apiserver import tables
from vcbatch.local.apiserver.registry import Column, Json

Step = Callable[[Any], Iterator[Any]]

_TOKEN = re.compile(
    r"\.(?P<name>(?:[^\s.\[\]\\]|\\.)+)"
    r"|\[(?P<index>-?\d+|\*)\]"
    r"|\['(?P<quoted>[^']*)'\]"
    r"|\[\?\(@(?P<left>(?:\.[\w-]+)+)\s*(?P<op>==|!=)\s*(?P<value>\"[^\"]*\"|'[^']*'|-?\d+(?:\.\d+)?|true|false)\)\]"
    r"|(?P<root>^\$)"
)


class MalformedPath(ValueError):
    """A JSON path outside of the grammar of printer columns."""


def compile_path(path: str) -> Callable[[Any], list[Any]]:
    """A function that finds all values at `path` (`.status.conditions[?(@.type=="Ready")].status`) in an object."""
    steps: list[Step] = []
    index = 0
    text = path if path.startswith((".", "[", "$")) else f".{path}"
    while index < len(text):
        token = _TOKEN.match(text, index)
        if token is None or (token["root"] and index):
            raise MalformedPath(f"unexpected {text[index:]!r} at {index}")
        index = token.end()
        if not token["root"]:
            steps.append(_step(token))

    def find(obj: Any) -> list[Any]:
        found = [obj]
        for step in steps:
            found = [value for one in found for value in step(one)]
        return found

    return find


def _step(token: re.Match[str]) -> Step:
    if token["left"]:
        return _filter(token["left"].split(".")[1:], token["op"], _literal(token["value"]))
    if token["index"] is not None:
        return _every if token["index"] == "*" else _at(int(token["index"]))
    name = token["quoted"] if token["quoted"] is not None else re.sub(r"\\(.)", r"\1", token["name"])
    return _every if name == "*" and token["quoted"] is None else _key(name)


def _key(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _at(index: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return step


def _every(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        yield from value
    elif isinstance(value, dict):
        yield from value.values()


def _filter(path: Sequence[str], operator: str, expected: Any) -> Step:
    def step(value: Any) -> Iterator[Any]:
        for item in value if isinstance(value, list) else ():
            if (tables.dig(item, *path) == expected) is (operator == "=="):
                yield item

    return step


def _literal(text: str) -> Any:
    return text[1:-1] if text[0] in "\"'" else json.loads(text)


def columns(declared: Sequence[Json] | None) -> Sequence[Column]:
    """The columns of a version: the name, then what it declares, or its age."""
    if not declared:
        declared = [{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]
    return (tables.NAME, *(column for one in declared if (column := _column(one)) is not None))


def _column(declared: Json) -> Column | None:
    path, type_ = str(declared.get("jsonPath", "")), str(declared.get("type", "string"))
    try:
        find = compile_path(path)
    except MalformedPath:
        return None
    return Column(
        name=str(declared.get("name", "")),
        type=type_,
        format=str(declared.get("format") or ""),
        description=str(
            declared.get("description") or f"Custom resource definition column (in JSONPath format): {path}"
        ),
        priority=int(declared.get("priority") or 0),
        cell=_cell(find, type_),
    )


def _cell(find: Callable[[Any], list[Any]], type_: str) -> Callable[[Json, datetime], Any]:
    def cell(obj: Json, now: datetime) -> Any:
        found = find(obj)
        return _shown(found[0], type_, now) if found else None

    return cell


def _shown(value: Any, type_: str, now: datetime) -> Any:
    """A value by the type of its column; None for a value of another type."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    match type_:
        case "integer":
            return int(value) if number else None
        case "number":
            return value if number else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            if not isinstance(value, str):
                return None
            return tables.since(value, now) if tables.parse_time(value) else "<invalid>"
        case _:
            return "" if value is None else shown(value)
