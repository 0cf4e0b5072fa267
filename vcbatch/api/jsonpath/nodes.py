"""The parsed form of a JSONPath template: client-go `util/jsonpath/node.go`."""

from __future__ import annotations

from dataclasses import dataclass


class MalformedPath(ValueError):
    """Text that can't be parsed as a path or a template."""


class PathError(ValueError):
    """A path that can't be evaluated on a value, such as an index outside of a list, or that needs too many steps."""


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Field:
    name: str


@dataclass(frozen=True, slots=True)
class Slice:
    """`[first:last:step]`. A single index has `derived` set and `last` one above `first`."""

    first: int | None
    last: int | None
    step: int | None
    derived: bool = False


@dataclass(frozen=True, slots=True)
class Literal:
    value: bool | int | float


@dataclass(frozen=True, slots=True)
class Wildcard:
    pass


@dataclass(frozen=True, slots=True)
class Recursive:
    pass


@dataclass(frozen=True, slots=True)
class Identifier:
    """`range`, `end`, or an unknown word."""

    name: str


@dataclass(frozen=True, slots=True)
class Filter:
    """`[?(left operator right)]`; `operator` is "" where the left side only has to exist."""

    left: tuple[Node, ...]
    operator: str
    right: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Union:
    members: tuple[tuple[Node, ...], ...]


Node = Text | Field | Slice | Literal | Wildcard | Recursive | Identifier | Filter | Union


@dataclass(frozen=True, slots=True)
class Action:
    """The contents of one pair of braces: the nodes apply one after the other."""

    nodes: tuple[Node, ...]


Part = Text | Action
