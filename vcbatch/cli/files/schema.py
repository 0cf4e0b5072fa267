"""The errors that an API server finds in an object of vcbatch's kinds before it calls admission: types, unknown fields,
the schema, metadata.

The server's own functions validate; here all errors are reported at once, in the words of `wording`.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final, cast

from vcbatch.api.crd import render
from vcbatch.api.loose import Json
from vcbatch.api.resources import Resource
from vcbatch.api.spelling import nearest
from vcbatch.cli.files.wording import mistyped, schema_errors, shown, type_words, unknown_field, value_at
from vcbatch.local.apiserver import metadata as metadata_rules
from vcbatch.local.apiserver.apierrors import DecodeError
from vcbatch.local.apiserver.crds.custom import CustomStrategy
from vcbatch.local.apiserver.registry import RequestContext, dns_subdomain_name
from vcbatch.local.apiserver.schema import pruning
from vcbatch.local.apiserver.schema.builtin import decode_at
from vcbatch.local.apiserver.schema.structural import Node

Found = list[tuple[str, str]]
"""Field and message of each error."""

_REQUEST: Final = RequestContext(user="", groups=(), now=datetime(2026, 1, 1, tzinfo=UTC), namespace=None, patient=True)
"""A fixed request context: the validation doesn't depend on the user or the time."""
_OF_TYPE: Final = re.compile(r" into Go struct field (?P<place>\S+) of type (?P<wanted>\S+)$")
_NO_TIME: Final = "parsing time "
_MAPPINGS: Final = ("labels", "annotations")
_LISTS: Final = ("ownerReferences", "managedFields")
_NAMES: Final = ("metadata.name", "metadata.generateName")


def read(kind: str, given: Json) -> Found:
    """Decoding errors of an object of one of vcbatch's kinds: metadata of wrong types and unknown fields. These fields
    are removed from the object, so that the rest can be validated."""
    return [*_metadata_types(given), *_unknown_fields(kind, given)]


def _unknown_fields(kind: str, given: Json) -> Found:
    known = node(kind)
    return [(path, unknown_field(path, _meant(path, known))) for path in pruning.prune(given, known)]


def filled(kind: str, obj: Json) -> None:
    """Set the defaults of the schema, in place. A new object has no status."""
    _strategy(kind).default(obj, None, _REQUEST)


def validated(kind: str, obj: Json) -> Found:
    """The errors of the schema and its rules for an object that was read and defaulted."""
    return list(schema_errors(_strategy(kind).validate(obj, None, _REQUEST), obj))


def metadata_errors(resource: Resource, obj: Json, *, unread: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Errors in names, labels and owner references. `unread` are fields that are reported already."""
    # The server sets them; for a cluster-scoped object it drops the namespace.
    others = ("generation",) if resource.namespaced else ("generation", "namespace")
    metadata = {key: value for key, value in obj["metadata"].items() if key not in others}
    named = bool(metadata.get("name") or metadata.get("generateName"))
    if not named and not unread & {"metadata", *_NAMES}:
        yield "metadata.name", "metadata.name (or generateName) is required"
    errors = metadata_rules.validate(metadata, namespaced=resource.namespaced, rule=dns_subdomain_name, built_in=False)
    for error in errors:
        if metadata.get("name") or error.field != "metadata.name":
            yield error.field, str(error)


def misfits(kind: str, obj: Json, *, unknown: bool = True) -> Found:
    """All schema errors of an object of one of vcbatch's kinds: wrong types and invalid values; with `unknown` also
    unknown fields."""
    given = copy.deepcopy(obj)
    found = _metadata_types(given)
    found += _unknown_fields(kind, given) if unknown else []
    pruning.prune(given, node(kind))
    filled(kind, given)
    return [*found, *validated(kind, given)]


@cache
def _strategy(kind: str) -> CustomStrategy:
    definition = render(kind)["spec"]
    version = definition["versions"][0]
    subresources: Mapping[str, Any] = version.get("subresources") or {}
    return CustomStrategy(
        api_version=f"{definition['group']}/{version['name']}",
        kind=kind,
        schema=version["schema"]["openAPIV3Schema"],
        status="status" in subresources,
        scale=subresources.get("scale"),
    )


def node(kind: str) -> Node:
    """The schema of the kind."""
    return _strategy(kind).schema


def node_at(path: str, kind: str) -> Node | None:
    """The schema of a field of the kind; None where the field is unknown."""
    at: Node | None = node(kind)
    for step in re.findall(r"[^.\[\]]+", path):
        if at is not None:
            at = at.items if step.isdecimal() and at.items is not None else at.properties.get(step, at.additional)
    return at


_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,), "integer": (int,), "number": (int, float),
    "boolean": (bool,), "array": (list,), "object": (dict,),
}  # fmt: skip


def unvalidatable(kind: str, obj: Json, fields: Iterable[str]) -> list[str]:
    """The fields whose values have another type than the schema says, or are numbers out of its range. Rules can't be
    evaluated on them, so errors of other fields that result from them are meaningless."""
    found: list[str] = []
    for field in fields:
        known, value = node_at(field, kind), value_at(obj, field)
        types = [one for name in known.types for one in _TYPES[name]] if known is not None else []
        if types and (isinstance(value, bool | int | float) or not isinstance(value, tuple(types))):
            found.append(field)
    return found


def _meant(path: str, schema: Node) -> str:
    """The sibling field in the schema with a similar name."""
    *above, name = re.findall(r"[^.\[\]]+", path) or [""]
    beside: Node | None = schema
    for step in above:
        if beside is not None:
            beside = beside.items if step.isdecimal() else beside.properties.get(step, beside.additional)
    return nearest(name, beside.properties) if beside is not None else ""


def _metadata_types(given: Json) -> Found:
    metadata = given.get("metadata")
    if not isinstance(metadata, dict):
        given["metadata"] = {}
        return [("metadata", f"metadata: must be a mapping, got {shown(metadata)}")] if metadata is not None else []
    found: Found = []
    for key, value in list(cast(Json, metadata).items()):
        # An entry that doesn't fit hides all entries after it.
        while (error := _metadata_error(key, metadata.get(key))) is not None:
            found.append((f"metadata.{key}", error[0]))
            if error[1] is None or not isinstance(value, dict):
                del metadata[key]
                break
            metadata[key] = {name: one for name, one in metadata[key].items() if name != error[1]}
    return found


def _metadata_error(key: str, value: Any) -> tuple[str, str | None] | None:
    """The type error of the first wrong value in a field of metadata, and the key of its mapping entry."""
    field = f"metadata.{key}"
    if value is None:
        return None
    try:
        metadata_rules.check_types({"metadata": {key: copy.deepcopy(value)}}, built_in=False)
        decode_at("meta/v1.ObjectMeta", {key: copy.deepcopy(value)}, path="metadata.")
    except DecodeError as error:
        wrong = _OF_TYPE.search(str(error))
        if wrong is None:
            return (mistyped(field, "v1.Time", value) if _NO_TIME in str(error) else f"{field}: {error}"), None
        if isinstance(value, dict) and key in _MAPPINGS and wrong["wanted"] == "string":
            name = next((name for name, one in value.items() if not isinstance(one, str) and one is not None), None)
            if name is not None:
                return mistyped(f"{field}[{name}]", "string", value[name]), name
        if key in _LISTS and isinstance(value, list) and (below := wrong["place"].rpartition(".")[2]) != key:
            text = f"{below} of each must be {type_words(wrong['wanted'])}, got {shown(value)}"
            return f"{field}: {text}", None
        wanted = "[]string" if isinstance(value, list) and key == "finalizers" else wrong["wanted"]
        return mistyped(field, wanted, value), None
    return None
