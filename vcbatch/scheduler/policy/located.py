"""The YAML of a scheduler configuration with the position of everything in it, for error messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from vcbatch.api.yaml_reader import CONFIGURATION, Node, YamlError, only
from vcbatch.scheduler.framework.arguments import PolicyError, PolicyErrorDetail


class _Place(NamedTuple):
    """A position; both count from 1."""

    line: int
    column: int


class Source(NamedTuple):
    """A parsed text: `values` has the position of each value by path (`policy.tiers[0].plugins[1].name`), `keys` that
    of each key by the same paths."""

    document: object
    values: Mapping[str, _Place]
    keys: Mapping[str, _Place]

    def placed(self, error: PolicyError) -> PolicyError:
        """The errors with their positions, sorted by them: the position of the path that the message begins with, or of
        its longest existing part."""
        return PolicyError(*sorted((self._placed(error) for error in error.errors), key=lambda f: (f.line, f.column)))

    def _placed(self, error: PolicyErrorDetail) -> PolicyErrorDetail:
        if error.line:
            return error
        place = self.keys.get(error.key)
        path = error.text.partition(": ")[0]
        while place is None and path:
            place = self.values.get(path)
            path = path[: max(path.rfind("."), path.rfind("["))] if "." in path or "[" in path else ""
        return error if place is None else error._replace(line=place.line, column=place.column)


def compose(text: str) -> Source:
    """Read one YAML document.

    Raises:
        PolicyError: it isn't YAML, exceeds a limit of `CONFIGURATION`, or has a key twice.
    """
    try:
        document = only(text, CONFIGURATION)
    except YamlError as error:
        raise PolicyError(
            PolicyErrorDetail(f"policy: not valid YAML: {error}", line=error.line, column=error.column)
        ) from error
    values: dict[str, _Place] = {}
    keys: dict[str, _Place] = {}
    doubles: list[PolicyErrorDetail] = []

    def walk(node: Node, path: str) -> None:
        values[path] = _Place(node.line, node.column)
        for i, item in enumerate(node.items):
            walk(item, f"{path}[{i}]")
        for key, value in node.entries:
            inner = f"{path}.{key.text}"
            if inner in keys:
                doubles.append(PolicyErrorDetail(f"{inner}: is given twice", line=key.line, column=key.column))
            keys[inner] = _Place(key.line, key.column)
            walk(value, inner)

    if document.node is not None:
        walk(document.node, "policy")
    if doubles:
        raise PolicyError(*doubles)
    return Source(document.value, values, keys)
