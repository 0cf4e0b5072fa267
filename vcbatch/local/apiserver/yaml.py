"""YAML bodies as JSON values: the schema of YAML 1.2's JSON subset that Kubernetes reads, bounded in size."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml
from yaml.scanner import ScannerError

if TYPE_CHECKING:
    from yaml import SafeLoader as _Base
else:
    # PyYAML may be built without libyaml.
    _Base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Json = dict[str, Any]


DEPTH_LIMIT = 200
_EXPANDED_LIMIT = 1_000_000


class Unreadable(ValueError):
    """A text that is no YAML document, in the words of Go's library."""


class _Loader(_Base):
    """Dates stay strings, as in JSON."""

    duplicates: list[str]


def _expanded(node: yaml.Node, sizes: dict[int, int]) -> int:
    """How many nodes there are once aliases are written out: a few nested ones make gigabytes."""
    known = sizes.get(id(node))
    if known is not None:
        if known < 0:
            raise yaml.YAMLError("an alias contains itself")
        return known
    sizes[id(node)] = -1
    size = 1
    if isinstance(node, yaml.MappingNode):
        size += sum(_expanded(key, sizes) + _expanded(value, sizes) for key, value in node.value)
    elif isinstance(node, yaml.SequenceNode):
        size += sum(_expanded(item, sizes) for item in node.value)
    sizes[id(node)] = size
    return size


def _mapping(loader: _Loader, node: yaml.MappingNode) -> Json:
    result: Json = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if isinstance(key, bool):
            key = "true" if key else "false"
        elif key is None:
            key = "null"
        key = str(key)
        if key in result:
            fault = f'key "{key}" already set in map'
            loader.duplicates.append(f"line {key_node.start_mark.line + 1}: {fault}")
        result[key] = loader.construct_object(value_node, deep=True)
    return result


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _Base.yaml_implicit_resolvers.items()
}
for _first in "yYnN":
    # Go's library takes a bare y or n for a truth value, as YAML 1.1 says.
    _Loader.yaml_implicit_resolvers[_first] = [
        ("tag:yaml.org,2002:bool", re.compile("^[yYnN]$")),
        *_Loader.yaml_implicit_resolvers.get(_first, []),
    ]
_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
_Loader.add_constructor("tag:yaml.org,2002:bool", lambda loader, node: node.value.lower() in ("y", "yes", "true", "on"))


def _check_depth(body: bytes) -> None:
    """Refuse what nests too deeply before it is composed: libyaml composes by recursion, without a limit."""
    depth = 0
    for event in yaml.parse(body, Loader=_Loader):
        if isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            depth += 1
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            depth -= 1
        if depth > DEPTH_LIMIT:
            raise yaml.YAMLError(f"the document nests deeper than {DEPTH_LIMIT} levels")


def load(body: bytes) -> tuple[Any, list[str]]:
    """The document and its duplicate keys. Raises `Unreadable`."""
    try:
        _check_depth(body)
        return _construct(body)
    except yaml.MarkedYAMLError as error:
        raise Unreadable(_worded(error)) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise Unreadable(" ".join(str(error).split())) from None


def _worded(error: yaml.MarkedYAMLError) -> str:
    """The problem with its line, which Go leaves out where it is the first."""
    line = next((mark.line for mark in (error.context_mark, error.problem_mark) if mark and mark.line), 0)
    if line and isinstance(error, ScannerError):
        line += 1
    return f"line {line}: {error.problem}" if line else str(error.problem)


def _construct(body: bytes) -> tuple[Any, list[str]]:
    loader = _Loader(body)
    loader.duplicates = []
    try:
        node = loader.get_single_node()
        if node is None:
            return None, []
        if _expanded(node, {}) > _EXPANDED_LIMIT:
            raise yaml.YAMLError("document contains excessive aliasing")
        return loader.construct_document(node), loader.duplicates
    finally:
        loader.dispose()


def dump(value: Any) -> bytes:
    """A JSON value as YAML, keys sorted as Kubernetes sorts them."""
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text = yaml.dump(value, Dumper=dumper, sort_keys=True, allow_unicode=True, default_flow_style=False)
    return text.encode()
