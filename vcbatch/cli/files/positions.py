"""YAML and JSON values with their lines and columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from vcbatch.api.yaml_reader import MANIFESTS, Node, RepeatedKey, documents

_SURROGATES: Final = re.compile(
    r"(?<!\\)(?P<before>(?:\\\\)*)\\u(?P<high>[dD][89abAB][0-9a-fA-F]{2})(?:\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2}))?"
    r"|(?<!\\)(?P<other>(?:\\\\)*)\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
"""JSON escapes of characters beyond U+FFFF, which YAML doesn't have, and unpaired surrogates."""


class Place(NamedTuple):
    """A position in a text; line and column count from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """A field that is repeated at `place` in a mapping that has it at `first` already; `first` is None where it isn't
    in the same object but in an enclosing list."""

    field: str
    place: Place
    first: Place | None

    def __str__(self) -> str:
        before = f", written first in line {self.first.line}" if self.first is not None else ""
        return f"duplicate field {self.field!r}{before}"

    def moved(self, lines: int, columns: int) -> Repeat:
        """The same for a text that is preceded by so many lines, with its first line indented by so many columns."""

        def move(place: Place) -> Place:
            return Place(place.line + lines, place.column + (columns if place.line == 1 else 0))

        first = move(self.first) if self.first is not None else None
        return Repeat(field=self.field, place=move(self.place), first=first)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """One value of a file. `repeated` are the positions of keys that occur a second time in one mapping; the first
    value is lost."""

    value: Any
    node: Node
    repeated: tuple[RepeatedKey, ...] = ()

    @property
    def place(self) -> Place:
        """The position of its first character."""
        return Place(self.node.line, self.node.column)

    def place_of(self, path: str) -> Place:
        """The position of a field such as `spec.tasks[0].name` or `metadata.labels[app]`: that of its key, if it has
        one. For a path that doesn't exist, the position of its last existing part."""
        return _place_of(self.node, path) or self.place

    def repeats(self) -> Iterator[Repeat]:
        """The repeated keys, in the order of the text."""
        if not self.repeated:
            return
        left = {(one.line, one.column) for one in self.repeated}
        found = list(_repeats(self.node, "", left))
        found += [
            Repeat(field=one.key, place=Place(one.line, one.column), first=None)
            for one in self.repeated
            if (one.line, one.column) in left
        ]
        yield from sorted(found, key=lambda one: one.place)

    def items(self, key: str = "") -> Iterator[Placed]:
        """The elements of the list at this key, or of this list, each with the repeated keys in it."""
        node: Node | None = self.node
        if key:
            node = next((below for name, below in reversed(self.node.entries) if name.text == key), None)
        nodes = node.items if node is not None else []
        for index, one in enumerate(nodes):
            begins = Place(one.line, one.column) if index else Place(0, 0)
            ends = Place(nodes[index + 1].line, nodes[index + 1].column) if index + 1 < len(nodes) else None
            inside = (repeat for repeat in self.repeated if begins <= (repeat.line, repeat.column))
            theirs = tuple(repeat for repeat in inside if ends is None or (repeat.line, repeat.column) < ends)
            yield Placed(value=one.value, node=one, repeated=theirs)


def placed(text: str) -> Iterator[Placed]:
    """The documents of a file, in order, without empty ones. Raises `YamlError`."""
    if text.lstrip()[:1] in ("{", "["):
        # YAML accepts all of JSON but these escapes and tabs, and a tab can't be inside a JSON string.
        text = _SURROGATES.sub(_character, text.replace("\t", " "))
    for document in documents(text, MANIFESTS):
        if document.node is not None and document.value is not None:
            yield Placed(value=document.value, node=document.node, repeated=document.repeated)


def _character(found: re.Match[str]) -> str:
    high, low = found["high"], found["low"]
    if high is None or low is None:  # an unpaired surrogate, which Go replaces too
        return f"{found['before'] or found['other'] or ''}\\ufffd"
    return found["before"] + chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)


def _repeats(node: Node, path: str, left: set[tuple[int, int]]) -> Iterator[Repeat]:
    """The repetitions at the positions in `left`, which are removed from it: those in an aliased value are reported
    once."""
    first: dict[str, Place] = {}
    for key, value in node.entries:
        field, place = f"{path}.{key.text}" if path else key.text, Place(key.line, key.column)
        if place in left:
            left.remove(place)
            yield Repeat(field=field, place=place, first=first.get(key.text, place))
        first.setdefault(key.text, place)
        yield from _repeats(value, field, left)
    for index, item in enumerate(node.items):
        yield from _repeats(item, f"{path}[{index}]", left)


def _place_of(node: Node, path: str) -> Place | None:
    place: Place | None = None
    while path:
        step = _step(node, path)
        if step is None:
            return place
        place, node, path = step
    return place


def _step(node: Node, path: str) -> tuple[Place, Node, str] | None:
    """The position of the first part of the path, the value there and the rest. Keys may contain dots (labels), so the
    longest key that is a prefix of the path is taken."""
    if node.items:
        index, bracket, rest = path.removeprefix("[").partition("]")
        if not path.startswith("[") or not bracket or not index.isdecimal() or int(index) >= len(node.items):
            return None
        item = node.items[int(index)]
        return Place(item.line, item.column), item, rest.removeprefix(".")
    best: tuple[Place, Node, str] | None = None
    longest = -1
    for key, value in node.entries:
        rest = _after(path, key.text)
        if rest is not None and len(key.text) >= longest:  # the last of repeated keys counts
            longest = len(key.text)
            best = Place(key.line, key.column), value, rest
    return best


def _after(path: str, name: str) -> str | None:
    """The rest of the path after this key; None where the path doesn't begin with it."""
    for written in (name, f"[{name}]", f'["{name}"]'):
        if written and path.startswith(written):
            rest = path[len(written) :]
            if not rest or rest[0] in ".[":
                return rest.removeprefix(".")
    return None
