"""YAML text as nodes with their positions, composed without recursion and within limits.

PyYAML's composers call themselves for each level of nesting; the one of libyaml does so in C, where some 20,000 levels
overflow the stack and crash the process. Only PyYAML's parser is used here, which returns events one by one.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

import yaml

from vcbatch.api.yaml_scalars import MERGE, ScalarError, json_number, key_of, resolve

_MERGE_KEY: Final = "<<"
_STARTS: Final = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
_ENDS: Final = (yaml.MappingEndEvent, yaml.SequenceEndEvent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one text. `size` counts characters or bytes, `nodes` all scalars and collections in the text,
    `aliased` the values that aliases stand for in one document, in addition to those."""

    size: int
    depth: int = 200
    nodes: int = 5_000_000
    aliased: int = 1_000_000
    documents: int = 100_000


class YamlError(ValueError):
    """Text that isn't YAML, or exceeds a limit. `line` and `column` start at 1."""

    def __init__(self, problem: str, line: int = 1, column: int = 1) -> None:
        super().__init__(problem)
        self.line = line
        self.column = column


@dataclass(slots=True, kw_only=True)
class Node:
    """A value and its position, which starts at 1. A sequence has `items`, a mapping `entries` in the order of the
    text; both are empty for a scalar, whose text is `text`."""

    line: int
    column: int
    value: Any = None
    text: str = ""
    items: Sequence[Node] = ()
    entries: Sequence[tuple[Node, Node]] = ()
    size: int = 1
    """The number of values that it stands for, including those of its aliases."""
    height: int = 0
    """The number of nested levels of collections, 0 for a scalar."""
    merges: bool = False
    """Whether it is the key `<<`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedKey:
    """A key that its mapping has more than once. The last one counts."""

    key: str
    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One document of a text. `node` is None for an empty one."""

    value: Any
    node: Node | None
    repeated: tuple[RepeatedKey, ...] = ()


@dataclass(slots=True)
class _Open:
    """A collection whose end hasn't been parsed."""

    node: Node
    mapping: bool
    anchor: str | None
    items: list[Node] = field(default_factory=list[Node])
    entries: list[tuple[Node, Node]] = field(default_factory=list[tuple[Node, Node]])
    key: Node | None = None


class Composer:
    """Turns the events of one text into documents."""

    def __init__(self, limits: Limits, *, letters: bool) -> None:
        self._limits = limits
        self._letters = letters
        self._nodes = 0
        self._documents = 0
        self._begin()

    def _begin(self) -> None:
        self._stack: list[_Open] = []
        self._anchors: dict[str, Node] = {}
        self._repeated: list[RepeatedKey] = []
        self._aliased = 0
        self._root: Node | None = None

    def documents(self, events: Iterator[Any]) -> Iterator[Document]:
        """The documents of the events. Raises `YamlError`, and `yaml.YAMLError` for errors of the parser."""
        for event in events:
            kind = type(cast("object", event))
            if kind is yaml.ScalarEvent:
                self._add(self._scalar(event), event.anchor)
            elif kind in _STARTS:
                self._open(event)
            elif kind in _ENDS:
                self._close()
            elif kind is yaml.AliasEvent:
                self._add(self._alias(event), None)
            elif kind is yaml.DocumentStartEvent:
                self._start(event)
            elif kind is yaml.DocumentEndEvent:
                root = self._root
                value = None if root is None else root.value
                yield Document(value=value, node=root, repeated=tuple(self._repeated))
                self._begin()

    def _start(self, event: Any) -> None:
        self._documents += 1
        most = self._limits.documents
        if self._documents > most:
            one = "expected a single document, but found another document"
            raise _at(event, one if most == 1 else f"more than {most} documents")
        self._begin()

    def _scalar(self, event: Any) -> Node:
        node = self._node(event)
        node.text = event.value
        plain = bool(event.implicit[0])
        if event.tag == MERGE or (plain and event.tag is None and event.value == _MERGE_KEY):
            node.value, node.merges = event.value, True
            return node
        try:
            node.value = resolve(event.value, tag=event.tag, plain=plain, letters=self._letters)
        except ScalarError as error:
            raise _at(event, str(error)) from None
        return node

    def _node(self, event: Any) -> Node:
        self._nodes += 1
        if self._nodes > self._limits.nodes:
            raise _at(event, f"more than {self._limits.nodes} values")
        mark = event.start_mark
        return Node(line=mark.line + 1, column=mark.column + 1)

    def _open(self, event: Any) -> None:
        if len(self._stack) >= self._limits.depth:
            raise self._too_deep(event)
        opened = _Open(self._node(event), isinstance(event, yaml.MappingStartEvent), event.anchor)
        if event.anchor is not None:
            self._anchors[event.anchor] = opened.node
        self._stack.append(opened)

    def _too_deep(self, event: Any) -> YamlError:
        return _at(event, f"nested deeper than {self._limits.depth} levels")

    def _close(self) -> None:
        done = self._stack.pop()
        node = done.node
        node.items, node.entries = done.items, done.entries
        inside = [part for entry in done.entries for part in entry] if done.mapping else done.items
        node.size = 1 + sum(one.size for one in inside)
        node.height = 1 + max((one.height for one in inside), default=0)
        node.value = self._mapping(node) if done.mapping else [one.value for one in node.items]
        self._add(node, done.anchor)

    def _add(self, node: Node, anchor: str | None) -> None:
        """Add a finished node to its collection or document."""
        if anchor is not None:
            self._anchors[anchor] = node
        above = self._stack[-1] if self._stack else None
        if above is not None and above.mapping and above.key is None:
            above.key = node
            return
        if isinstance(node.value, float):
            node.value = json_number(node.value)
        if above is None:
            self._root = node
        elif not above.mapping or above.key is None:
            above.items.append(node)
        else:
            above.entries.append((above.key, node))
            above.key = None

    def _alias(self, event: Any) -> Node:
        """A copy of the anchored value, so that no two parts of a document share one."""
        known = self._anchors.get(event.anchor)
        if known is None:
            raise _at(event, f"unknown anchor '{event.anchor}' referenced")
        if any(one.node is known for one in self._stack):
            raise _at(event, f"anchor '{event.anchor}' value contains itself")
        if len(self._stack) + known.height > self._limits.depth:
            raise self._too_deep(event)
        self._aliased += known.size
        if self._aliased > self._limits.aliased:
            raise _at(event, f"its aliases stand for more than {self._limits.aliased} values (excessive aliasing)")
        made = copy.copy(known)
        made.value = _copied(known.value)
        return made

    def _mapping(self, node: Node) -> dict[str, Any]:
        result: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.entries:
            if key_node.merges:
                for key, value in _merged(value_node).items():
                    merged.setdefault(key, value)
                continue
            key = _key(key_node)
            if key in result:
                self._repeated.append(RepeatedKey(key=key, line=key_node.line, column=key_node.column))
            result[key] = value_node.value
        return {**merged, **result} if merged else result


def _key(node: Node) -> str:
    if node.height:
        raise YamlError("a key must be a string, not a mapping or a list", node.line, node.column)
    try:
        return key_of(node.value)
    except ScalarError as error:
        raise YamlError(str(error), node.line, node.column) from None


def _merged(node: Node) -> dict[str, Any]:
    """The entries that `<<: NODE` adds: those of a mapping or of several, of which the first has precedence."""
    parts = node.items or (node,)
    result: dict[str, Any] = {}
    for part in parts:
        value: object = part.value
        if not isinstance(value, dict):
            raise YamlError("map merge requires map or sequence of maps as the value", part.line, part.column)
        for key, one in cast("dict[str, Any]", value).items():
            result.setdefault(key, one)
    return result


def _copied(value: Any) -> Any:
    """A copy. `Limits.depth` bounds its recursion and `Limits.aliased` its size."""
    if isinstance(value, dict):
        return {key: _copied(one) for key, one in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_copied(one) for one in cast("list[Any]", value)]
    return value


def _at(event: Any, problem: str) -> YamlError:
    return YamlError(problem, event.start_mark.line + 1, event.start_mark.column + 1)
