"""Validation of CustomResourceDefinitions.

Source: apiextensions-apiserver `pkg/apis/apiextensions/validation`. Conversion webhooks are refused, as this server
calls none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from vcbatch.api import field_errors
from vcbatch.api import name_rules as rules
from vcbatch.local.apiserver.apierrors import FieldError
from vcbatch.local.apiserver.crds.schemas import schema_errors
from vcbatch.local.apiserver.registry import Json

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SCOPES = ("Cluster", "Namespaced")
_STRATEGIES = ("None", "Webhook")
_MAX_SELECTABLE = 8


def definition_errors(crd: Json) -> list[FieldError]:
    """The errors of a definition, without comparison to an older one."""
    return [*_name_errors(crd), *_spec_errors(crd.get("spec") or {}), *_approval_errors(crd)]


def update_errors(crd: Json, old: Json) -> list[FieldError]:
    """The errors of a change."""
    found = [*_spec_errors(crd.get("spec") or {})]
    spec, before = crd.get("spec") or {}, old.get("spec") or {}
    if spec.get("group") != before.get("group"):
        found += field_errors.immutable("spec.group", spec.get("group"), before.get("group"))
    names, names_before = spec.get("names") or {}, before.get("names") or {}
    if names.get("plural") != names_before.get("plural"):
        found += field_errors.immutable("spec.names.plural", names.get("plural"), names_before.get("plural"))
    if _established(old):
        found += field_errors.immutable("spec.scope", spec.get("scope"), before.get("scope"))
        found += field_errors.immutable("spec.names.kind", names.get("kind"), names_before.get("kind"))
    return [*found, *_stored_version_errors(crd)]


def _established(crd: Json) -> bool:
    conditions: Sequence[Json] = (crd.get("status") or {}).get("conditions") or ()
    return any(one.get("type") == "Established" and one.get("status") == "True" for one in conditions)


def _stored_version_errors(crd: Json) -> Iterator[FieldError]:
    known = {version.get("name") for version in (crd.get("spec") or {}).get("versions") or ()}
    for index, name in enumerate((crd.get("status") or {}).get("storedVersions") or ()):
        if name not in known:
            detail = f"missing from spec.versions; {name} was previously a storage version, and must remain in "
            detail += "spec.versions until a storage migration ensures no data remains persisted in "
            detail += f"{name} and removes {name} from status.storedVersions"
            yield field_errors.invalid(f"status.storedVersions[{index}]", name, detail)


_APPROVAL = "api-approved.kubernetes.io"
_APPROVAL_RULE = f'protected groups must have approval annotation "{_APPROVAL}"'
_APPROVAL_SOURCE = "see https://github.com/kubernetes/enhancements/pull/1111"


def _approval_errors(crd: Json) -> Iterator[FieldError]:
    """Groups of Kubernetes itself only accept definitions with the annotation of an approval, or of being
    unapproved."""
    group = str((crd.get("spec") or {}).get("group") or "")
    if not group.endswith((".k8s.io", ".kubernetes.io")):
        return
    given = ((crd.get("metadata") or {}).get("annotations") or {}).get(_APPROVAL) or ""
    at = f"metadata.annotations[{_APPROVAL}]"
    if not given:
        yield field_errors.required(at, f"{_APPROVAL_RULE}, {_APPROVAL_SOURCE}")
    elif not given.startswith("unapproved") and not re.match(r"[a-z][a-z0-9+.-]*://[^/\s]+", given):
        detail = f'{_APPROVAL_RULE} with either a URL or a reason starting with "unapproved", {_APPROVAL_SOURCE}'
        yield field_errors.invalid(at, given, detail)


def _name_errors(crd: Json) -> Iterator[FieldError]:
    spec: Json = crd.get("spec") or {}
    plural = (spec.get("names") or {}).get("plural") or ""
    name = (crd.get("metadata") or {}).get("name") or ""
    if name and name != f"{plural}.{spec.get('group') or ''}":
        yield field_errors.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')


def _spec_errors(spec: Json) -> Iterator[FieldError]:
    yield from _group_errors(spec.get("group") or "")
    scope = spec.get("scope") or ""
    if not scope:
        yield field_errors.required("spec.scope")
    elif scope not in _SCOPES:
        yield field_errors.unsupported("spec.scope", scope, _SCOPES)
    versions: Sequence[Json] = spec.get("versions") or ()
    yield from _version_set_errors(versions)
    yield from _names_errors(spec.get("names") or {}, "spec.names")
    shared = _shared(versions)
    for index, version in enumerate(versions):
        for error in _version_errors(version, f"spec.versions[{index}]"):
            yield _at_the_top(error, index, shared)
        if shared:
            break
    yield from _conversion_errors(spec.get("conversion") or {})
    if spec.get("preserveUnknownFields") is True:
        detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema "
        detail += "instead"
        yield field_errors.invalid("spec.preserveUnknownFields", True, detail)


_TOP = {"schema": "spec.validation", "subresources": "spec.subresources", "selectableFields": "spec.selectableFields",
        "additionalPrinterColumns": "spec.additionalPrinterColumns"}  # fmt: skip


def _shared(versions: Sequence[Json]) -> bool:
    """Whether all versions have the same schema, subresources and columns. Kubernetes keeps such a definition in its
    older form, which has them once, and reports errors there."""
    first = versions[0] if versions else {}
    return bool(first.get("schema")) and all(version.get(key) == first.get(key) for version in versions for key in _TOP)


def _at_the_top(error: FieldError, index: int, shared: bool) -> FieldError:
    prefix = f"spec.versions[{index}]."
    if not shared or not error.field.startswith(prefix):
        return error
    rest = error.field.removeprefix(prefix)
    key = next((key for key in _TOP if rest == key or rest.startswith((f"{key}.", f"{key}["))), "")
    return replace(error, field=_TOP[key] + rest.removeprefix(key)) if key else error


def _group_errors(group: str) -> Iterator[FieldError]:
    if not group:
        yield field_errors.required("spec.group")
        return
    found = rules.dns_subdomain(group)
    if found:
        yield field_errors.invalid("spec.group", group, ",".join(found))
    elif "." not in group:
        yield field_errors.invalid("spec.group", group, "should be a domain with at least one dot")


def _version_set_errors(versions: Sequence[Json]) -> Iterator[FieldError]:
    seen: list[Any] = []
    unique = True
    for index, version in enumerate(versions):
        name = version.get("name") or ""
        unique = unique and name not in seen
        seen.append(name)
        found = rules.dns1035_label(name)
        if found:
            yield field_errors.invalid(f"spec.versions[{index}].name", name, ",".join(found))
    if not unique:
        yield field_errors.invalid("spec.versions", list(versions), "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield field_errors.invalid(
            "spec.versions", list(versions), "must have exactly one version marked as storage version"
        )


def _names_errors(names: Json, path: str) -> Iterator[FieldError]:
    for key in ("plural", "singular", "kind", "listKind"):
        value = names.get(key) or ""
        if not value:
            yield field_errors.required(f"{path}.{key}")
            continue
        mixed = key in ("kind", "listKind")
        found = rules.dns1035_label(value.lower() if mixed else value)
        if found:
            prefix = "may have mixed case, but should otherwise match: " if mixed else ""
            yield field_errors.invalid(f"{path}.{key}", value, prefix + ",".join(found))
    for index, short in enumerate(names.get("shortNames") or ()):
        if found := rules.dns1035_label(short):
            yield field_errors.invalid(f"{path}.shortNames[{index}]", short, ",".join(found))
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield field_errors.invalid(f"{path}.listKind", names["listKind"], "kind and listKind may not be the same")
    for index, category in enumerate(names.get("categories") or ()):
        if found := rules.dns1035_label(category):
            yield field_errors.invalid(f"{path}.categories[{index}]", category, ",".join(found))


_NO_WEBHOOK = "should not be set when strategy is not set to Webhook"


def _conversion_errors(conversion: Json) -> Iterator[FieldError]:
    strategy = conversion.get("strategy") or ""
    if strategy == "Webhook":
        yield field_errors.forbidden("spec.conversion.strategy", "conversion webhooks aren't supported here: use None")
        return
    if not strategy and conversion:
        yield field_errors.required("spec.conversion.strategy")
    elif strategy and strategy not in _STRATEGIES:
        yield field_errors.unsupported("spec.conversion.strategy", strategy, _STRATEGIES)
    # With the field names of Kubernetes' internal form, in which the server reports errors.
    webhook: Json = conversion.get("webhook") or {}
    if webhook.get("clientConfig") is not None:
        yield field_errors.forbidden("spec.conversion.webhookClientConfig", _NO_WEBHOOK)
    if webhook.get("conversionReviewVersions"):
        yield field_errors.forbidden("spec.conversion.conversionReviewVersions", _NO_WEBHOOK)


def _version_errors(version: Json, path: str) -> Iterator[FieldError]:
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if schema is None:
        yield field_errors.required(f"{path}.schema.openAPIV3Schema")
    else:
        yield from schema_errors(schema, f"{path}.schema.openAPIV3Schema")
    warning = version.get("deprecationWarning")
    if warning is not None and not version.get("deprecated"):
        yield field_errors.invalid(f"{path}.deprecationWarning", warning, "can only be set for deprecated versions")
    yield from _subresource_errors(version.get("subresources") or {}, f"{path}.subresources")
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        yield from _column_errors(column, f"{path}.additionalPrinterColumns[{index}]")
    yield from _selectable_errors(version.get("selectableFields") or (), schema or {}, f"{path}.selectableFields")


def _subresource_errors(subresources: Json, path: str) -> Iterator[FieldError]:
    scale: Json | None = subresources.get("scale")
    if scale is None:
        return
    for key, roots, words in (
        ("specReplicasPath", (".spec.",), "should be a json path under .spec"),
        ("statusReplicasPath", (".status.",), "should be a json path under .status"),
        ("labelSelectorPath", (".spec.", ".status."), "should be a json path under either .spec or .status"),
    ):
        value = scale.get(key)
        if not value:
            if key != "labelSelectorPath":
                yield field_errors.required(f"{path}.scale.{key}")
        elif not value.startswith("."):
            yield field_errors.invalid(f"{path}.scale.{key}", value, "must be a simple json path starting with .")
        elif not _is_dotted(value):
            yield field_errors.invalid(f"{path}.scale.{key}", value, _SIMPLE_PATH)
        elif not value.startswith(roots):
            yield field_errors.invalid(f"{path}.scale.{key}", value, words)


_SIMPLE_PATH = "must be a simple json path of field names, each after a dot: array notation isn't allowed"


def _is_dotted(path: str) -> bool:
    return bool(re.fullmatch(r"(\.[\w-]+)+", path))


def _column_errors(column: Json, path: str) -> Iterator[FieldError]:
    if not column.get("name"):
        yield field_errors.required(f"{path}.name")
    type_ = column.get("type") or ""
    if not type_:
        yield field_errors.required(f"{path}.type", f"must be one of {','.join(_COLUMN_TYPES)}")
    elif type_ not in _COLUMN_TYPES:
        yield field_errors.invalid(f"{path}.type", type_, f"must be one of {','.join(_COLUMN_TYPES)}")
    format_ = column.get("format") or ""
    if format_ and format_ not in _COLUMN_FORMATS:
        yield field_errors.invalid(f"{path}.format", format_, f"must be one of {','.join(_COLUMN_FORMATS)}")
    json_path = column.get("jsonPath") or ""
    if not json_path:
        yield field_errors.required(f"{path}.JSONPath")
    elif not json_path.startswith("."):
        # Kubernetes stops here: a path that can't be parsed ends the list of columns.
        yield field_errors.invalid(f"{path}.JSONPath", json_path, "must be a simple json path starting with .")


def _selectable_errors(selectable: Sequence[Json], schema: Json, path: str) -> Iterator[FieldError]:
    if len(selectable) > _MAX_SELECTABLE:
        yield field_errors.too_many(path, len(selectable), _MAX_SELECTABLE)
    seen: set[str] = set()
    for index, one in enumerate(selectable):
        value, at = one.get("jsonPath") or "", f"{path}[{index}].jsonPath"
        if not value:
            yield field_errors.required(at)
        elif value in seen:
            yield field_errors.duplicate(at, value)
        elif not _is_dotted(value):
            yield field_errors.invalid(at, value, "is an invalid path: must be a simple path of field names")
        elif value.startswith(".metadata"):
            yield field_errors.invalid(at, value, "must not point to fields in metadata")
        elif (error := _selectable_error(value, schema)) is not None:
            yield field_errors.invalid(at, value, error)
        seen.add(value)


def _selectable_error(path: str, schema: Json) -> str | None:
    node: Json | None = schema
    for name in path.removeprefix(".").split("."):
        node = ((node or {}).get("properties") or {}).get(name)
        if node is None:
            return "is an invalid path: does not refer to a valid field"
    if (node or {}).get("type") not in ("string", "integer", "boolean"):
        return (
            "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are "
            "allowed."
        )
    return None
