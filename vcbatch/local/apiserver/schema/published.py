"""The schemas in published OpenAPI documents: of built-in types from their field table, of custom ones as declared."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from typing import Any

from vcbatch.local.apiserver.registry import Served
from vcbatch.local.apiserver.schema import descriptions
from vcbatch.local.apiserver.schema.types import Field, Struct, kind_struct, source, structs

Json = dict[str, Any]

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_SCALARS: Mapping[str, Json] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "uint8": {"type": "integer", "format": "byte"},
    "float64": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
    "Time": {"type": "string", "format": "date-time"},
    "MicroTime": {"type": "string", "format": "date-time"},
    "Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "IntOrString": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    "Values": {"type": "array", "items": {"type": "string"}},
    "Verbs": {"type": "array", "items": {"type": "string"}},
    "RawExtension": {"type": "object"},
    "FieldsV1": {"type": "object"},
    "JSON": {},
    "SchemaOrValue": {},
}


@functools.cache
def source_digest() -> str:
    """A digest that changes when the field table does."""
    return hashlib.sha256(source()).hexdigest()


def has_descriptions() -> bool:
    """Whether the descriptions of built-in fields are available; starts collecting them where they aren't."""
    return bool(descriptions.load())


def component_name(key: str) -> str:
    """`io.k8s.api.core.v1.Pod` for `core/v1.Pod`."""
    package, _, name = key.partition(".")
    group, _, version = package.partition("/")
    match group:
        case "meta":
            return f"{_META}.{name}"
        case "apiextensions":
            return f"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{version}.{name}"
        case _:
            return f"io.k8s.api.{group}.{version}.{name}"


def custom_component_name(*, group: str, version: str, kind: str) -> str:
    """`sh.volcano.batch.v1alpha1.Job`: with the group reversed."""
    return ".".join([*reversed(group.split(".")), version, kind])


def add_kind(schemas: dict[str, Json], entry: Served) -> str:
    """Add the schemas of a resource and of its list; returns the component's name."""
    resource = entry.resource
    group, version, kind = resource.group, resource.version, resource.kind
    known = None if entry.generated else kind_struct(api_version=resource.api_version, kind=kind)
    gvk = {"group": group, "version": version, "kind": kind}
    if known is not None:
        name = component_name(known.key)
        add_struct(schemas, known.key)
        schemas[name]["x-kubernetes-group-version-kind"] = [gvk]
    else:
        name = custom_component_name(group=group, version=version, kind=kind)
        schemas[name] = {
            **_custom(schemas, entry.schema or {"type": "object"}),
            "x-kubernetes-group-version-kind": [gvk],
        }
    if "list" in entry.verbs:
        list_kind = entry.list_kind or f"{kind}List"
        schemas[f"{name}List"] = _list(schemas, name, {**gvk, "kind": list_kind}, kind)
    for sub_group, sub_version, sub_kind in entry.subresource_kinds.values():
        api_version = f"{sub_group}/{sub_version}" if sub_group else sub_version
        sub = kind_struct(api_version=api_version, kind=sub_kind)
        if sub is not None:
            add_struct(schemas, sub.key)
            sub_gvk = {"group": sub_group, "version": sub_version, "kind": sub_kind}
            schemas[component_name(sub.key)].setdefault("x-kubernetes-group-version-kind", [sub_gvk])
    return name


def add_struct(schemas: dict[str, Json], key: str) -> None:
    """Add the schema of a built-in type and of all types that it refers to."""
    waiting = [key]
    while waiting:
        one = structs()[waiting.pop()]
        name = component_name(one.key)
        if name in schemas:
            continue
        schemas[name] = _struct(one)
        waiting += [field.type for field in one.fields.values() if field.type in structs()]


def _struct(of: Struct) -> Json:
    words = descriptions.load().get(of.key, {})
    schema: Json = {"type": "object"}
    if words.get(""):
        schema["description"] = words[""]
    properties = {name: _field(field, words.get(name, "")) for name, field in of.fields.items()}
    if properties:
        schema["properties"] = dict(sorted(properties.items()))
    return schema


def _field(field: Field, description: str) -> Json:
    schema: Json = {"description": description} if description else {}
    match field.container:
        case "list":
            schema.update(type="array", items=_type(field.type))
            if field.merges:
                schema["x-kubernetes-patch-strategy"] = "merge,retainKeys" if field.retain_keys else "merge"
                if field.merge_key:
                    schema["x-kubernetes-patch-merge-key"] = field.merge_key
        case "map":
            schema.update(type="object", additionalProperties=_type(field.type))
        case _ if field.type in structs():
            schema["allOf"] = [_type(field.type)]
        case _:
            schema.update(_type(field.type))
    return schema


def _type(name: str) -> Json:
    if name in structs():
        return {"$ref": f"#/components/schemas/{component_name(name)}"}
    return dict(_SCALARS[name])


_TYPE_WORDS = {
    "apiVersion": "APIVersion defines the versioned schema of this representation of an object.",
    "kind": "Kind is a string value representing the REST resource this object represents.",
}


def _custom(schemas: dict[str, Json], declared: Json) -> Json:
    add_struct(schemas, "meta/v1.ObjectMeta")
    given: Json = declared.get("properties") or {}
    properties: Json = {
        "apiVersion": {"type": "string", "description": _TYPE_WORDS["apiVersion"]},
        "kind": {"type": "string", "description": _TYPE_WORDS["kind"]},
        **given,
        "metadata": {"allOf": [_type("meta/v1.ObjectMeta")], "description": "Standard object's metadata."},
    }
    return {**declared, "type": "object", "properties": properties}


def _list(schemas: dict[str, Json], name: str, gvk: Json, kind: str) -> Json:
    add_struct(schemas, "meta/v1.ListMeta")
    return {
        "type": "object",
        "description": f"{gvk['kind']} is a list of {kind}",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "description": _TYPE_WORDS["apiVersion"]},
            "kind": {"type": "string", "description": _TYPE_WORDS["kind"]},
            "items": {
                "type": "array",
                "items": {"$ref": f"#/components/schemas/{name}"},
                "description": f"List of {kind} objects.",
            },
            "metadata": {"allOf": [_type("meta/v1.ListMeta")], "description": "Standard list metadata."},
        },
        "x-kubernetes-group-version-kind": [gvk],
    }
