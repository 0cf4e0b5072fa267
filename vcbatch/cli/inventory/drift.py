"""The differences between a stored CustomResourceDefinition and the shipped one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from vcbatch.api.crd import render_all
from vcbatch.cli.base.fields import dig, name_of, objects, text
from vcbatch.cli.inventory.model import Drift

Json = dict[str, Any]

_MOST: Final = 20_000
"""Maximum number of fields of one schema that are compared."""


@cache
def shipped() -> Mapping[str, Json]:
    """The shipped definitions by name."""
    return {name_of(one): one for one in render_all()}


def drift_of(stored: Json) -> Drift:
    """The differences of a stored definition from the shipped one; none for a kind that isn't shipped."""
    ours = shipped().get(name_of(stored))
    if ours is None:
        return Drift()
    other = list(_other(ours, stored))
    missing: list[str] = []
    extra: list[str] = []
    theirs = {text(one, "name"): one for one in objects(stored, "spec", "versions")}
    for version in objects(ours, "spec", "versions"):
        there = theirs.get(text(version, "name"))
        if there is None:
            continue
        here, found = _fields(version), _fields(there)
        missing += sorted(path for path in here if not _covered(path, found))
        extra += sorted(path for path in found if not _covered(path, here))
        other += (
            f"{path or 'the object'} is {found[path]}, expected {kind}"
            for path, kind in sorted(here.items())
            if path in found and "*" not in (found[path], kind) and found[path] != kind
        )
    return Drift(missing=_tops(missing), extra=_tops(extra), other=tuple(other))


def _other(ours: Json, stored: Json) -> Iterator[str]:
    if text(ours, "spec", "scope") != text(stored, "spec", "scope"):
        yield f"scope is {text(stored, 'spec', 'scope')}, expected {text(ours, 'spec', 'scope')}"
    theirs = {text(one, "name"): one for one in objects(stored, "spec", "versions")}
    for version in objects(ours, "spec", "versions"):
        name = text(version, "name")
        there = theirs.get(name)
        if there is None or there.get("served") is not True:
            yield f"version {name} not served"
            continue
        if version.get("storage") is True and there.get("storage") is not True:
            yield f"version {name} is not the storage version"
        has, wants = dig(there, "subresources", "status"), dig(version, "subresources", "status")
        if (has is None) is not (wants is None):
            yield f"version {name} has {'no' if has is None else 'a'} status subresource"


def _fields(version: Json) -> dict[str, str]:
    """The type of each field by its path; `*` where any value is allowed, so that nothing below is compared."""
    found: dict[str, str] = {}
    waiting: list[tuple[str, Any]] = [("", dig(version, "schema", "openAPIV3Schema"))]
    while waiting and len(found) < _MOST:
        path, schema = waiting.pop()
        if not isinstance(schema, dict):
            continue
        free = schema.get("x-kubernetes-preserve-unknown-fields") is True
        found[path] = "*" if free or schema.get("x-kubernetes-int-or-string") else text(schema, "type") or "*"
        if free:
            continue
        properties = schema.get("properties")
        if isinstance(properties, dict) and path != ".metadata":
            waiting += ((f"{path}.{name}", below) for name, below in properties.items())
        for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
            if isinstance(schema.get(key), dict):
                waiting.append((path + mark, schema[key]))
    found.pop(".metadata", None)
    return found


def _covered(path: str, by: Mapping[str, str]) -> bool:
    """Whether the other schema has the field, or allows any value above it."""
    if path in by:
        return True
    while path:
        path = path[: max(path.rfind("."), path.rfind("[]"), path.rfind("{}"), 0)]
        if path in by:
            return by[path] == "*"
    return False


def _tops(paths: list[str]) -> tuple[str, ...]:
    """The paths without those below another one of them."""
    kept: list[str] = []
    for path in sorted(paths):
        if not (kept and path.startswith((f"{kept[-1]}.", f"{kept[-1]}[", f"{kept[-1]}{{"))):
            kept.append(path)
    return tuple(path.removeprefix(".") for path in kept)
