"""Objects inside of custom resources. Source: apiextensions-apiserver `pkg/apiserver/schema/objectmeta`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vcbatch.api import field_errors, name_rules
from vcbatch.local.apiserver.apierrors import FieldError
from vcbatch.local.apiserver.schema.structural import Json, Node


def validate_embedded(value: Any, schema: Node) -> list[FieldError]:
    """Errors of the type and name of objects embedded in a custom resource."""
    return list(_embedded_errors(value, schema, "")) if schema.has_embedded else []


def _embedded_errors(value: Any, node: Node, path: str) -> Iterator[FieldError]:
    if isinstance(value, dict):
        if node.embedded:
            yield from _embedded_type(value, path)
        for name in sorted(value):
            sub = node.properties.get(name) or node.additional
            if sub is not None and sub.has_embedded:
                key = f"{path}.{name}" if path and name in node.properties else f"{path}[{name}]" if path else name
                yield from _embedded_errors(value[name], sub, key)
    elif isinstance(value, list) and node.items is not None:
        for index, item in enumerate(value):
            yield from _embedded_errors(item, node.items, f"{path}[{index}]")


def _embedded_type(value: Json, path: str) -> Iterator[FieldError]:
    api_version, kind = value.get("apiVersion"), value.get("kind")
    at = f"{path}.apiVersion"
    if "apiVersion" not in value:
        yield field_errors.required(at)
    elif not isinstance(api_version, str):
        yield field_errors.invalid(at, api_version, "must be a string")
    elif not api_version:
        yield field_errors.invalid(at, api_version, "must not be empty")
    elif api_version.count("/") > 1:
        yield field_errors.invalid(at, api_version, f"unexpected GroupVersion string: {api_version}")
    at = f"{path}.kind"
    if "kind" not in value:
        yield field_errors.required(at)
    elif not isinstance(kind, str):
        yield field_errors.invalid(at, kind, "must be a string")
    elif not kind:
        yield field_errors.invalid(at, kind, "must not be empty")
    else:
        for error in name_rules.dns1035_label(kind.lower()):
            yield field_errors.invalid(at, kind, f"may have mixed case, but should otherwise match: {error}")
    metadata = value.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("name"), str) and metadata["name"]:
        for error in name_rules.dns_subdomain(metadata["name"]):
            yield field_errors.invalid(f"{path}.metadata.name", metadata["name"], error)
