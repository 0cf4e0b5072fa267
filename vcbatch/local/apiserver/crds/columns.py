"""Printer columns of custom resources: their JSONPaths and the resulting cells.

Source: apiextensions-apiserver `pkg/registry/customresource/tableconvertor`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from vcbatch.api.jsonpath import MalformedPath, Path, PathError, parse_column, shown
from vcbatch.local.apiserver import tables
from vcbatch.local.apiserver.registry import Column, Json

_LONGEST_CELL: Final = 1024 * 1024
"""Characters of a cell; a longer one is left empty. Kubernetes has no limit."""


def columns(declared: Sequence[Json] | None) -> Sequence[Column]:
    """The columns of a version: the name, then its declared columns, or the age without any."""
    if not declared:
        declared = [{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]
    return (tables.NAME, *_columns(declared))


def _columns(declared: Sequence[Json]) -> Iterator[Column]:
    """The columns up to the first with an invalid path: Kubernetes, too, only shows those before it."""
    for one in declared:
        text, type_ = str(one.get("jsonPath", "")), str(one.get("type", "string"))
        try:
            path = parse_column(text)
        except MalformedPath:
            return
        yield Column(
            name=str(one.get("name", "")),
            type=type_,
            format=str(one.get("format") or ""),
            description=str(
                one.get("description") or f"Custom resource definition column (in JSONPath format): {text}"
            ),
            priority=int(one.get("priority") or 0),
            cell=_cell(path, type_),
        )


def _cell(path: Path, type_: str) -> Callable[[Json, datetime], Any]:
    def cell(obj: Json, now: datetime) -> Any:
        try:
            found = path.find(obj)
        except PathError:
            return None
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
            return tables.since(value, now) if not value or tables.parse_time(value) else "<invalid>"
        case _:
            text = "<no value>" if value is None else shown(value)
            return text if len(text) <= _LONGEST_CELL else None
