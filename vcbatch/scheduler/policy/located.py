"""A policy's YAML with the place of everything in it, so that errors can say where they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from vcbatch.api.yaml_reader import CONFIGURATION, Node, YamlError, only
from vcbatch.scheduler.framework.arguments import PolicyError, PolicyErrorDetail


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
        """The same errors in the order of their places: where the path that each begins with stands, or the part of it
        that is there."""
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
        PolicyError: it isn't YAML, exceeds a limit of `CONFIGURATION`, or gives a key twice.
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
