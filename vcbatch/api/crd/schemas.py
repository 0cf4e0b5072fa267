"""OpenAPI v3 schemas of basic types and of the pod template (structural schemas, as a CRD holds them).

Schemas are shared between the documents that contain them: don't modify them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from vcbatch.api.crd.pod_types import POD_TYPES
from vcbatch.api.model import Json

DNS_SUBDOMAIN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
DNS_LABEL: Final = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
QUANTITY_PATTERN: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)

STRING: Final[Json] = {"type": "string"}
BOOLEAN: Final[Json] = {"type": "boolean"}
INT: Final[Json] = {"type": "integer"}
INT32: Final[Json] = {"type": "integer", "format": "int32"}
INT64: Final[Json] = {"type": "integer", "format": "int64"}
TIME: Final[Json] = {"type": "string", "format": "date-time"}
INT_OR_STRING: Final[Json] = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
QUANTITY: Final[Json] = {**INT_OR_STRING, "pattern": QUANTITY_PATTERN}


def array(items: Json) -> Json:
    return {"type": "array", "items": items}


def mapping(values: Json) -> Json:
    return {"type": "object", "additionalProperties": values}


METADATA: Final[Json] = {
    "type": "object",
    "properties": {
        "annotations": mapping(STRING),
        "finalizers": array(STRING),
        "labels": mapping(STRING),
        "name": STRING,
        "namespace": STRING,
    },
}
"""Metadata inside another object: other keys are pruned."""

CONDITION: Final[Json] = {
    "type": "object",
    "required": ["lastTransitionTime", "message", "reason", "status", "type"],
    "properties": {
        "lastTransitionTime": TIME,
        "message": {"type": "string", "maxLength": 32768},
        "observedGeneration": {**INT64, "minimum": 0},
        "reason": {
            "type": "string",
            "minLength": 1,
            "maxLength": 1024,
            "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        },
        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "type": {
            "type": "string",
            "maxLength": 316,
            "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
            r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        },
    },
}
"""`metav1.Condition`."""

_BASIC: Final[dict[str, Json]] = {
    "string": STRING,
    "bool": BOOLEAN,
    "int32": INT32,
    "int64": INT64,
    "integer": INT,
    "quantity": QUANTITY,
    "int-or-string": INT_OR_STRING,
    "metadata": METADATA,
}

_FIELD = re.compile(
    r"(?P<name>\w+)(?P<required>!?): (?P<type>\S+)"
    r"(?: (?P<list>atomic|set|map\((?P<keys>[\w ]+)\)))?(?: = (?P<default>.+))?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Type:
    base: str
    atomic: bool
    fields: dict[str, re.Match[str]] = field(default_factory=dict[str, re.Match[str]])


@cache
def _table() -> dict[str, _Type]:
    types: dict[str, _Type] = {}
    current = _Type(base="", atomic=False)
    for line in POD_TYPES.strip().splitlines():
        if not line.startswith(" "):
            head, _, base = line.partition(" < ")
            name, _, atomic = head.partition(" ")
            current = types[name] = _Type(base=base, atomic=bool(atomic))
            continue
        for text in filter(None, line.strip().split(";")):
            found = _FIELD.fullmatch(text.strip())
            if found is None:
                raise ValueError(f"malformed line in the table of pod types: {text!r}")
            current.fields[found["name"]] = found
    return types


@cache
def core_type(name: str) -> Json:
    """The schema of a core/v1 type of the pod template, such as `PodTemplateSpec` or `PersistentVolumeClaimSpec`."""
    of_type = _table()[name]
    fields = {**(_table()[of_type.base].fields if of_type.base else {}), **of_type.fields}
    schema: Json = {"type": "object"}
    required = [key for key, found in fields.items() if found["required"]]
    if required:
        schema["required"] = sorted(required)
    schema["properties"] = {key: _property(fields[key]) for key in sorted(fields)}
    if of_type.atomic:
        schema["x-kubernetes-map-type"] = "atomic"
    return schema


def core_types() -> tuple[str, ...]:
    """The names of all types of the table."""
    return tuple(_table())


def _property(found: re.Match[str]) -> Json:
    schema = dict(_schema(found["type"]))
    if found["list"]:
        merged, _, _ = found["list"].partition("(")
        schema["x-kubernetes-map-type" if schema["type"] == "object" else "x-kubernetes-list-type"] = merged
    if found["keys"]:
        schema["x-kubernetes-list-map-keys"] = found["keys"].split()
    if found["default"]:
        schema["default"] = _default(found["default"])
    return schema


def _schema(of_type: str) -> Json:
    if of_type.startswith("["):
        return array(_schema(of_type[1:-1]))
    if of_type.startswith("{"):
        return mapping(_schema(of_type[1:-1]))
    return _BASIC.get(of_type) or core_type(of_type)


def _default(text: str) -> Any:
    return json.loads(text)
