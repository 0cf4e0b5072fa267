"""The columns of object tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict

from vcbatch.cli.base.fields import name_of, namespace_of, since
from vcbatch.cli.base.table import Cell

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """`cell` returns the content for an object at a time. `wide`: only with `-o wide`.
    `flexible`: may be cut where the terminal isn't wide enough, down to `least` cells; with `middle` its middle is left
    out, not its end."""

    name: str
    cell: Callable[[Json, datetime], str | Cell]
    wide: bool = False
    right: bool = False
    flexible: bool = False
    middle: bool = False
    least: int = 12


NAMESPACE = Column(name="NAMESPACE", cell=lambda obj, _: namespace_of(obj), flexible=True, middle=True, least=9)
NAME = Column(name="NAME", cell=lambda obj, _: name_of(obj))
AGE = Column(name="AGE", cell=lambda obj, now: since(obj, "metadata", "creationTimestamp", now=now))


def shown_columns(columns: Sequence[Column], *, wide: bool, namespaces: bool) -> list[Column]:
    """The columns to print."""
    chosen = [column for column in columns if wide or not column.wide]
    return [NAMESPACE, *chosen] if namespaces else chosen


class Fit(TypedDict):
    """How a table of these columns is fitted to a terminal; the arguments of `Layout`."""

    right: list[int]
    flexible: list[int]
    middle: list[int]
    least: dict[int, int]
    narrow_gap: bool


def fit_of(columns: Sequence[Column]) -> Fit:
    """The fit of a table with these columns."""
    return Fit(
        right=[at for at, column in enumerate(columns) if column.right],
        flexible=[at for at, column in enumerate(columns) if column.flexible],
        middle=[at for at, column in enumerate(columns) if column.middle],
        least={at: column.least for at, column in enumerate(columns)},
        narrow_gap=any(column.middle and column is not NAMESPACE for column in columns),
    )
