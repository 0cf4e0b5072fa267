"""How values merge: maps by key or as a whole, lists by item or as a whole. From the type table or from a custom
schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from vcbatch.local.apiserver.crds.custom import CustomStrategy
from vcbatch.local.apiserver.registry import Served
from vcbatch.local.apiserver.schema.structural import Node
from vcbatch.local.apiserver.schema.types import OPAQUE, SPECIAL, Field, Struct, kind_struct, struct, structs


class Shape(Protocol):
    """The information that a merge needs about a value."""

    @property
    def whole(self) -> bool:
        """Whether the map or list belongs to one manager as a whole."""
        ...

    @property
    def keys(self) -> Sequence[str]:
        """The keys of the items of a map list; none for a set."""
        ...

    @property
    def form(self) -> str:
        """map, list, string, numeric or boolean; "" where values may have several forms."""
        ...

    def child(self, name: str) -> Shape:
        """The shape of the value under a key of a map."""
        ...

    def item(self) -> Shape:
        """The shape of an item of a list."""
        ...

    def key_default(self, key: str) -> Any:
        """The default of a key that an item lacks."""
        ...


_WHOLE_STRUCTS = frozenset(
    {
        "meta/v1.LabelSelector",
        "core/v1.ConfigMapKeySelector",
        "core/v1.LocalObjectReference",
        "core/v1.NodeSelector",
        "core/v1.NodeSelectorTerm",
        "core/v1.ObjectFieldSelector",
        "core/v1.ObjectReference",
        "core/v1.ResourceFieldSelector",
        "core/v1.SecretKeySelector",
        "core/v1.SecretReference",
        "core/v1.TypedLocalObjectReference",
        "core/v1.TopologySelectorTerm",
        "rbac/v1.RoleRef",
        "rbac/v1.Subject",
        "autoscaling/v1.CrossVersionObjectReference",
        "networking/v1.IngressServiceBackend",
        "networking/v1.ServiceBackendPort",
    }
)
"""Structs with `x-kubernetes-map-type: atomic`."""

_WHOLE_MAPS = frozenset({("core/v1.PodSpec", "nodeSelector"), ("core/v1.ServiceSpec", "selector")})

_KEYS: Mapping[tuple[str, str], Sequence[str]] = {
    ("core/v1.Container", "ports"): ("containerPort", "protocol"),
    ("core/v1.EphemeralContainerCommon", "ports"): ("containerPort", "protocol"),
    ("core/v1.ServiceSpec", "ports"): ("port", "protocol"),
    ("core/v1.PodSpec", "topologySpreadConstraints"): ("topologyKey", "whenUnsatisfiable"),
}
"""Map lists with more keys than the one of strategic merge patches."""


_FORMS = {
    "string": "string",
    "bytes": "string",
    "bool": "boolean",
    "int32": "numeric",
    "int64": "numeric",
    "uint8": "numeric",
    "float64": "numeric",
}


@dataclass(frozen=True, slots=True)
class _BuiltIn:
    """A value of a field of the type table."""

    owner: str
    field: Field

    @property
    def whole(self) -> bool:
        field = self.field
        match field.container:
            case "list":
                return not field.merges
            case "map":
                return (self.owner, field.name) in _WHOLE_MAPS
            case _:
                return field.type in _WHOLE_STRUCTS or field.type in OPAQUE

    @property
    def keys(self) -> Sequence[str]:
        if (self.owner, self.field.name) in _KEYS:
            return _KEYS[self.owner, self.field.name]
        return (self.field.merge_key,) if self.field.merge_key else ()

    @property
    def form(self) -> str:
        if self.field.container:
            return self.field.container
        if self.field.type in SPECIAL:
            return ""
        return _FORMS.get(self.field.type, "map")

    def child(self, name: str) -> Shape:
        if self.field.container == "map":
            return self.item()
        known = structs().get(self.field.type)
        return _child(known, name) if known else FREE

    def item(self) -> Shape:
        one = Field(name=self.field.name, number=0, type=self.field.type)
        return _BuiltIn(self.owner, one)

    def key_default(self, key: str) -> Any:
        return "TCP" if key == "protocol" else None


@dataclass(frozen=True, slots=True)
class _Root:
    """A whole object of a built-in kind."""

    type: Struct
    whole = False
    keys = ()
    form = "map"

    def child(self, name: str) -> Shape:
        return _child(self.type, name)

    def item(self) -> Shape:
        return FREE

    def key_default(self, key: str) -> Any:
        return None


def _child(of: Struct, name: str) -> Shape:
    field = of.fields.get(name)
    if field is None:
        return FREE
    inlined = next((f.type for f in of.own if f.inline and name in structs()[f.type].fields), of.key)
    return _BuiltIn(inlined, field)


_CUSTOM_FORMS = {
    "object": "map",
    "array": "list",
    "string": "string",
    "boolean": "boolean",
    "integer": "numeric",
    "number": "numeric",
}


@dataclass(frozen=True, slots=True)
class _Custom:
    """A value of a custom resource."""

    node: Node

    @property
    def whole(self) -> bool:
        if self.node.items is not None or self.node.types == ("array",):
            return self.node.list_type == "atomic"
        return self.node.map_type == "atomic"

    @property
    def keys(self) -> Sequence[str]:
        return self.node.list_map_keys

    @property
    def form(self) -> str:
        types = self.node.types
        return _CUSTOM_FORMS.get(types[0], "") if len(types) == 1 else ""

    def child(self, name: str) -> Shape:
        sub = self.node.properties.get(name) or self.node.additional
        return _Custom(sub) if sub is not None else FREE

    def item(self) -> Shape:
        return _Custom(self.node.items) if self.node.items is not None else FREE

    def key_default(self, key: str) -> Any:
        items = self.node.items
        sub = items.properties.get(key) if items else None
        return sub.default if sub else None


@dataclass(frozen=True, slots=True)
class _CustomRoot(_Custom):
    """A whole custom resource, whose metadata is the usual one."""

    def child(self, name: str) -> Shape:
        if name == "metadata":
            return _BuiltIn("", Field(name="metadata", number=0, type="meta/v1.ObjectMeta"))
        sub = self.node.properties.get(name)
        return _Custom(sub) if sub is not None else FREE


class _Free:
    """A value without a schema: maps merge by key, lists are whole."""

    whole = False
    keys = ()
    form = ""

    def child(self, name: str) -> Shape:
        return FREE

    def item(self) -> Shape:
        return FREE

    def key_default(self, key: str) -> Any:
        return None


FREE: Shape = _Free()


def shape_of(entry: Served) -> Shape:
    """The shape of a resource's objects."""
    if isinstance(entry.strategy, CustomStrategy):
        return _CustomRoot(entry.strategy.schema)
    known = kind_struct(api_version=entry.resource.api_version, kind=entry.resource.kind)
    return _Root(known or struct("meta/v1.TypeMeta"))
