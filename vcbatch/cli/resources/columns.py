"""The columns of object tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from vcbatch.cli.base.fields import name_of, namespace_of, since
from vcbatch.cli.base.table import Cell

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """`cell` returns the content for an object at a time. `wide`: only with `-o wide`. `flexible`: may be cut where the
    terminal isn't wide enough; names never are, since users copy them."""

    name: str
    cell: Callable[[Json, datetime], str | Cell]
    wide: bool = False
    right: bool = False
    flexible: bool = False


NAMESPACE = Column(name="NAMESPACE", cell=lambda obj, _: namespace_of(obj))
NAME = Column(name="NAME", cell=lambda obj, _: name_of(obj))
AGE = Column(name="AGE", cell=lambda obj, now: since(obj, "metadata", "creationTimestamp", now=now))


def shown_columns(columns: Sequence[Column], *, wide: bool, namespaces: bool) -> list[Column]:
    """The columns to print."""
    chosen = [column for column in columns if wide or not column.wide]
    return [NAMESPACE, *chosen] if namespaces else chosen
