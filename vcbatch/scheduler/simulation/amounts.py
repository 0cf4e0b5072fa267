"""Validation of quantities in objects that no API server validated: an invalid one would count as zero, and the
decisions would be about another cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from vcbatch.api.quantity import MalformedQuantity, parse_quantity

Json = Mapping[str, Any]

_EACH: Final = "*"
_OF_CONTAINERS: Final = tuple(
    ("spec", containers, _EACH, "resources", amounts)
    for containers in ("containers", "initContainers")
    for amounts in ("requests", "limits")
)
_PLACES: Final[Mapping[str, Sequence[tuple[str, ...]]]] = {
    "nodes": (("status", "allocatable"), ("status", "capacity")),
    "pods": (*_OF_CONTAINERS, ("spec", "overhead"), ("spec", "resources", "requests")),
    "podGroups": (("spec", "minResources"),),
    "queues": (("spec", "capability"), ("spec", "deserved"), ("spec", "guarantee", "resource")),
    "resourceQuotas": (("spec", "hard"), ("status", "hard"), ("status", "used")),
}
"""The paths of quantities by resource name, by key of the kind; `*` stands for each item of a list."""


def no_amount(key: str, obj: Json) -> tuple[str, str] | None:
    """The path and the error of the first invalid quantity; None if all are valid."""
    for place in _PLACES.get(key, ()):
        for path, amounts in _found(obj, place, ""):
            for name, given in amounts.items():
                try:
                    parse_quantity(given)
                except MalformedQuantity:
                    return f"{path}.{name}", f"must be a quantity such as 2, 500m or 8Gi, got {given!r}"
    return None


def _found(value: object, place: Sequence[str], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The mappings at a path, with their full paths. Values of another type are skipped."""
    if not place:
        if isinstance(value, Mapping):
            yield path, cast("Mapping[str, Any]", value)
        return
    step, rest = place[0], place[1:]
    if step == _EACH:
        for at, item in enumerate(cast("Sequence[object]", value) if isinstance(value, list) else ()):
            yield from _found(item, rest, f"{path}[{at}]")
    elif isinstance(value, Mapping):
        inner = cast("Mapping[str, object]", value).get(step)
        yield from _found(inner, rest, f"{path}.{step}" if path else step)
