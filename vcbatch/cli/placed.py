"""YAML and JSON with the line of everything in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import yaml

from vcbatch.cli.documents import refuse_bombs

_MOST_DEEP = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """One value of a file. `repeated` are keys that are written twice in one mapping, with the line of the second: the
    first is lost."""

    value: Any
    node: yaml.Node
    repeated: tuple[tuple[str, int], ...] = ()

    @property
    def line(self) -> int:
        """Where it begins, counted from 1."""
        return self.node.start_mark.line + 1

    def line_of(self, path: str) -> int:
        """The line of a field such as `spec.tasks[0].name` or `metadata.labels[app]`: of its key, where it has one. Of
        a path that leads to nothing, the line of the last part of it that exists."""
        return _line_of(self.node, path) or self.line


class Unreadable(ValueError):
    """Text that is no YAML; `line` is where, counted from 1."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def placed(text: str) -> Iterator[Placed]:
    """The documents of a file, in order; those with nothing in them are left out. Raises `Unreadable`."""
    if text.lstrip()[:1] in ("{", "["):
        # YAML takes all of JSON but tabs, and a tab can't be inside a JSON string.
        text = text.replace("\t", " ")
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = cast("yaml.Node", loader.get_node())
            found: list[tuple[str, int]] = []
            _repeated(node, found, set(), 0)
            value = loader.construct_document(node)
            refuse_bombs(value, text)
            if value is not None:
                yield Placed(value=value, node=node, repeated=tuple(found))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join(part for part in (error.context, error.problem) if part)
        raise Unreadable(mark.line + 1 if mark else 1, what or "not valid YAML") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise Unreadable(line, f"character #x{ord(str(error.character)[:1]):04x} isn't allowed in YAML") from error
    except (yaml.YAMLError, ValueError) as error:  # such as a date that there isn't
        raise Unreadable(1, str(error)) from error
    except RecursionError:
        raise Unreadable(1, f"nested deeper than {_MOST_DEEP} levels") from None
    finally:
        loader.dispose()


class _Loader(yaml.CSafeLoader):
    """Leaves dates as they are written, as Kubernetes does."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - as the base class has it
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


def _repeated(node: yaml.Node, found: list[tuple[str, int]], seen: set[int], depth: int) -> None:
    if depth > _MOST_DEEP:
        raise RecursionError
    if id(node) in seen:  # an alias: told where it is anchored
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _repeated(item, found, seen, depth + 1)
    elif isinstance(node, yaml.MappingNode):
        keys: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in keys:
                    found.append((key.value, key.start_mark.line + 1))
                keys.add(key.value)
            _repeated(value, found, seen, depth + 1)


def _line_of(node: yaml.Node, path: str) -> int | None:
    line: int | None = None
    while path:
        step = _step(node, path)
        if step is None:
            return line
        line, node, path = step
    return line


def _step(node: yaml.Node, path: str) -> tuple[int, yaml.Node, str] | None:
    """The line of the first part of the path, the value there and the rest. Keys may have dots in them (labels), so the
    longest key with which the path begins is the one."""
    if isinstance(node, yaml.SequenceNode):
        index, bracket, rest = path.removeprefix("[").partition("]")
        if not path.startswith("[") or not bracket or not index.isdecimal() or int(index) >= len(node.value):
            return None
        item: yaml.Node = node.value[int(index)]
        return item.start_mark.line + 1, item, rest.removeprefix(".")
    if not isinstance(node, yaml.MappingNode):
        return None
    best: tuple[int, yaml.Node, str] | None = None
    longest = -1
    for key, value in node.value:
        name = str(key.value) if isinstance(key, yaml.ScalarNode) else ""
        rest = _after(path, name)
        if rest is not None and len(name) >= longest:  # of a repeated key the last counts
            longest = len(name)
            best = key.start_mark.line + 1, value, rest
    return best


def _after(path: str, name: str) -> str | None:
    """What follows this key in the path; None where the path doesn't begin with it."""
    for written in (name, f"[{name}]", f'["{name}"]'):
        if written and path.startswith(written):
            rest = path[len(written) :]
            if not rest or rest[0] in ".[":
                return rest.removeprefix(".")
    return None
