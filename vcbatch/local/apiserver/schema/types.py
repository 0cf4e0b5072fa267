"""The field table of the built-in API, read once from `types.txt`.

One table has three readers: the decoder of JSON bodies (unknown fields, wrong types, zero values), the decoder of
protobuf bodies (field numbers) and the published OpenAPI documents.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import resources

SCALARS = frozenset({"string", "bool", "int32", "int64", "uint8", "float64", "bytes"})
OPAQUE = frozenset({"RawExtension", "FieldsV1", "JSON", "SchemaOrValue"})
"""Types of arbitrary JSON values."""
SPECIAL = frozenset({"Time", "MicroTime", "Quantity", "IntOrString", "Values", "Verbs"}) | OPAQUE
"""Types with a JSON form of their own. `Values` is a list of strings that is a message of its own in protobuf."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a struct. `type` is the type of the value or, with `container` "list" or "map", of the entries."""

    name: str
    number: int
    type: str
    container: str = ""
    pointer: bool = False
    inline: bool = False
    via: str = ""
    """The names of the inlined structs that it comes from, as in Go's errors: `ProbeHandler.`."""
    always: bool = False
    """Whether it is written even when it is zero."""
    merges: bool = False
    merge_key: str = ""
    retain_keys: bool = False
    go: str = ""
    """The name of the value's or entries' type in Go's errors; "" for its plain name."""
    go_whole: str = ""
    """The name of the list's or map's type in Go's errors, where it has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Struct:
    """A struct with its own fields in the order of their definition."""

    key: str
    """`group/version.Name`, with the short group of the Go package: `core/v1.Pod`, `rbac/v1.Role`."""
    own: tuple[Field, ...]
    fields: Mapping[str, Field] = field(default_factory=dict[str, Field])
    """By JSON name, the inlined structs' fields among them."""

    @property
    def name(self) -> str:
        return self.key.rpartition(".")[2]

    @property
    def package(self) -> str:
        """The version part, which is the name of the Go package: `v1`."""
        return self.key.partition(".")[0].rpartition("/")[2]


def source() -> bytes:
    """The table's file content."""
    return resources.files("vcbatch.local.apiserver.schema").joinpath("types.txt").read_bytes()


@functools.cache
def structs() -> Mapping[str, Struct]:
    """All structs by key."""
    own = dict(_parsed(source().decode()))
    table = {key: Struct(key=key, own=tuple(fields)) for key, fields in own.items()}
    return {key: Struct(key=key, own=value.own, fields=dict(_flat(table, value))) for key, value in table.items()}


@functools.cache
def struct(name: str) -> Struct:
    """The struct of a key, or of a bare name that only one group version has. Raises KeyError."""
    table = structs()
    if name in table:
        return table[name]
    found = [key for key in table if key.endswith(f".{name}")]
    if len(found) != 1:
        raise KeyError(f"{name}: {', '.join(found) or 'no such type'}")
    return table[found[0]]


_PACKAGES = {
    "": "core",
    "admissionregistration.k8s.io": "admissionregistration",
    "apiextensions.k8s.io": "apiextensions",
    "authentication.k8s.io": "authentication",
    "authorization.k8s.io": "authorization",
    "certificates.k8s.io": "certificates",
    "coordination.k8s.io": "coordination",
    "discovery.k8s.io": "discovery",
    "events.k8s.io": "events",
    "networking.k8s.io": "networking",
    "node.k8s.io": "node",
    "rbac.authorization.k8s.io": "rbac",
    "resource.k8s.io": "resource",
    "scheduling.k8s.io": "scheduling",
    "storage.k8s.io": "storage",
}


def kind_struct(*, api_version: str, kind: str) -> Struct | None:
    """The struct of a built-in kind on the wire, or None. Kinds such as `DeleteOptions` of `meta.k8s.io` exist in all
    groups."""
    group, _, version = api_version.rpartition("/")
    table = structs()
    for key in (f"{_PACKAGES.get(group, group)}/{version}.{kind}", f"meta/v1.{kind}"):
        if key in table and "+" not in kind:
            return table[key]
    return None


@functools.cache
def merge_keys(key: str) -> Mapping[str, str]:
    """Strategic merge of a kind: dotted path of each list that merges (without indexes) to its key, "" for a set."""
    found: dict[str, str] = {}
    _collect_merge_keys(struct(key), "", found, ())
    return found


def _collect_merge_keys(of: Struct, prefix: str, found: dict[str, str], above: tuple[str, ...]) -> None:
    if of.key in above:
        return
    for name, field_ in of.fields.items():
        path = f"{prefix}{name}"
        if field_.merges and field_.container == "list":
            found[path] = field_.merge_key
        if field_.type in structs() and field_.container != "map":
            _collect_merge_keys(structs()[field_.type], f"{path}.", found, (*above, of.key))


def _parsed(text: str) -> Iterator[tuple[str, list[Field]]]:
    section = ""
    fields: list[Field] = []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            section = line[1:-1]
        elif line.startswith("  "):
            fields.append(_field(line.split(), section))
        else:
            fields = []
            yield f"{section}.{line}", fields


def _field(words: list[str], section: str) -> Field:
    name, number, type_, *flags = words
    container = ""
    pointer = type_.startswith("*")
    if pointer:
        type_ = type_[1:]
    elif type_.startswith("[]"):
        container, type_ = "list", type_[2:]
    elif type_.startswith("map:"):
        container, type_ = "map", type_[4:]
    if container == "map" and type_ == "[]string":
        type_ = "Values"
    if type_ not in SCALARS and type_ not in SPECIAL and "." not in type_:
        type_ = f"{section}.{type_}"
    merge = next((flag for flag in flags if flag.startswith("merge")), None)
    return Field(
        name=name,
        number=int(number),
        type=type_,
        container=container,
        pointer=pointer,
        inline=name == "+",
        always="!" in flags,
        merges=merge is not None,
        merge_key=(merge or "").partition("=")[2],
        retain_keys="retain" in flags,
        go=_named(flags, "go="),
        go_whole=_named(flags, "whole="),
    )


def _named(flags: list[str], head: str) -> str:
    return next((flag.removeprefix(head) for flag in flags if flag.startswith(head)), "")


def _flat(table: Mapping[str, Struct], of: Struct) -> Iterator[tuple[str, Field]]:
    for field_ in of.own:
        if field_.inline:
            inlined = table[field_.type]
            for name, inner in _flat(table, inlined):
                yield name, replace(inner, via=f"{inlined.name}.{inner.via}")
        else:
            yield field_.name, field_
