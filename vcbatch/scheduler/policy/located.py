"""A policy's YAML with the place of everything in it, so that faults can say where they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import yaml

from vcbatch.scheduler.arguments import PolicyError, PolicyFault

_MOST_VALUES = 100_000
"""With aliases written out, of which a few make a small file a large policy."""

_INTEGER = "tag:yaml.org,2002:int"
_LONGEST_NUMBER = 1000
"""Python writes no integers of more than 4300 digits, and neither would a message."""


class _Place(NamedTuple):
    """Both count from 1."""

    line: int
    column: int


class Source(NamedTuple):
    """What a text says, and where: `values` by path (`policy.tiers[0].plugins[1].name`), `keys` the same for the keys
    that lead there."""

    document: object
    values: Mapping[str, _Place]
    keys: Mapping[str, _Place]

    def placed(self, error: PolicyError) -> PolicyError:
        """The same faults in the order of their places: where the path that each begins with stands, or the part of it
        that is there."""
        return PolicyError(*sorted((self._placed(fault) for fault in error.faults), key=lambda f: (f.line, f.column)))

    def _placed(self, fault: PolicyFault) -> PolicyFault:
        if fault.line:
            return fault
        place = self.keys.get(fault.key)
        path = fault.text.partition(": ")[0]
        while place is None and path:
            place = self.values.get(path)
            path = path[: max(path.rfind("."), path.rfind("["))] if "." in path or "[" in path else ""
        return fault if place is None else fault._replace(line=place.line, column=place.column)


def compose(text: str) -> Source:
    """Read one YAML document.

    Raises:
        PolicyError: it isn't YAML, a key is given twice, or its aliases make it too large.
    """
    values: dict[str, _Place] = {}
    keys: dict[str, _Place] = {}
    doubles: list[PolicyFault] = []
    endless: list[PolicyFault] = []

    def read(node: yaml.Node, path: str) -> None:
        if node.tag == _INTEGER and len(node.value) > _LONGEST_NUMBER:
            line, column = _place(node)
            endless.append(
                PolicyFault(f"{path}: must be a number of at most {_LONGEST_NUMBER} characters", "", line, column)
            )

    def walk(node: yaml.Node, path: str) -> None:
        values[path] = _place(node)
        read(node, path)
        if len(values) > _MOST_VALUES:
            raise PolicyError(f"policy: must be at most {_MOST_VALUES} values")
        if isinstance(node, yaml.SequenceNode):
            for i, item in enumerate(cast("list[yaml.Node]", node.value)):
                walk(item, f"{path}[{i}]")
        elif isinstance(node, yaml.MappingNode):
            for key, value in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
                inner = f"{path}.{key.value}"
                read(key, path)
                if inner in keys:
                    line, column = _place(key)
                    doubles.append(PolicyFault(f"{inner}: is given twice", line=line, column=column))
                keys[inner] = _place(key)
                walk(value, inner)

    try:
        node = cast("yaml.Node | None", cast("Any", yaml).compose(text, Loader=yaml.CSafeLoader))
        if node is not None:
            walk(node, "policy")
        if endless:
            raise PolicyError(*endless)
        document: object = None if node is None else yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        raise PolicyError(_malformed(error, text)) from error
    except PolicyError:
        raise
    except RecursionError as error:
        raise PolicyError("policy: must be nested less deeply, and no alias be part of what it stands for") from error
    except (yaml.YAMLError, ValueError) as error:
        raise PolicyError(f"policy: not valid YAML: {' '.join(str(error).split())}") from error
    if doubles:
        raise PolicyError(*doubles)
    return Source(document, values, keys)


def _malformed(error: yaml.MarkedYAMLError, text: str) -> PolicyFault:
    """What is wrong, and where that begins which doesn't end there."""
    said = f"policy: not valid YAML: {error.problem or error.context}"
    mark, began = error.problem_mark, error.context_mark
    if mark is None:
        return PolicyFault(said)
    line = text.splitlines()[mark.line : mark.line + 1]
    before = line[0][: mark.column + 1] if line else ""
    if "\t" in before and before.isspace():
        said = "policy: not valid YAML: a tab where only spaces may be"
    elif error.context and began is not None and began.line < mark.line:
        said += f", {error.context} that begins in line {began.line + 1}"
    return PolicyFault(said, line=mark.line + 1, column=mark.column + 1)


def _place(node: yaml.Node) -> _Place:
    mark = cast("Any", node).start_mark
    return _Place(mark.line + 1, mark.column + 1)
