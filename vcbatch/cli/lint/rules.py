"""What a server would refuse, or warn of, in objects that come from files: their schema, then admission."""

from __future__ import annotations

import copy
import difflib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Any, cast

from vcbatch.api import admission
from vcbatch.api.admission import Operation, Request
from vcbatch.api.crd import render
from vcbatch.api.loose import Json, part
from vcbatch.api.name_rules import dns_subdomain
from vcbatch.api.resources import CUSTOM_RESOURCES, QUEUES, Resource
from vcbatch.cli import known_kinds
from vcbatch.cli.lint.world import Files, world_of
from vcbatch.cli.manifests import Manifest
from vcbatch.local.apiserver.errors import DecodeError
from vcbatch.local.apiserver.schema import pruning, validation
from vcbatch.local.apiserver.schema.builtin import decode_at
from vcbatch.local.apiserver.schema.lists import validate_lists
from vcbatch.local.apiserver.schema.structural import Node, compile_schema

_NAMESPACE = "default"
_LONGEST = 60
"""Characters of a value in a message."""
_FIELD = re.compile(r"(spec|metadata)\.[^\s:,]+")
"""The field with which a warning begins."""


class Severity(StrEnum):
    """An error is refused by the server; a warning is shown by it and stored all the same."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """One thing to mend. `line` and `column` count from 1; `field` is the path in the object, "" where it is about
    the whole; `object` is its kind and name."""

    file: str
    line: int
    column: int
    severity: Severity
    object: str
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.severity}: {self.object}: {self.message}"


def checked(manifest: Manifest) -> bool:
    """Whether there are rules for its fields here; what isn't ours is for other tools."""
    return manifest.resource in CUSTOM_RESOURCES


def complaints(manifests: Iterable[Manifest], *, closed: bool = False) -> Iterator[Complaint]:
    """What is wrong with these objects, which together make one world, object by object in their order. In a `closed`
    world there are no other queues and priority classes than those in the files."""
    every = list(manifests)
    world = world_of(every, closed=closed)
    seen: dict[tuple[Resource, str, str], Manifest] = {}
    for manifest in every:
        yield from _written(manifest)
        resource = manifest.resource
        if resource is None:
            yield from _unknown(manifest)
            continue
        key = (resource, manifest.namespace if resource.namespaced else "", manifest.name)
        if manifest.name and "generateName" not in part(manifest.value, "metadata"):
            first = seen.setdefault(key, manifest)
            if first is not manifest:
                text = f"the same object is in {first.place()}; the one that is applied last wins"
                yield _complaint(manifest, text, field="metadata.name")
        if resource in CUSTOM_RESOURCES:
            yield from _judged(manifest, resource, world)


def _written(manifest: Manifest) -> Iterator[Complaint]:
    for repeat in manifest.placed.repeated:
        yield Complaint(
            file=manifest.file,
            line=repeat.line,
            column=repeat.column,
            severity=Severity.ERROR,
            object=manifest.title,
            field="",
            message=f"the key {repeat.key!r} is written twice; only the last counts",
        )


def _unknown(manifest: Manifest) -> Iterator[Complaint]:
    """Something that isn't an object at all, or of a kind that there can't be."""
    if not manifest.value:
        yield _complaint(manifest, "no object: must be a mapping with apiVersion and kind")
        return
    wrong = False
    for key in ("apiVersion", "kind"):
        value = manifest.value.get(key)
        if isinstance(value, str) and value:
            continue
        wrong = True
        text = "must be given" if value in (None, "") else f"must be a string, got {_shown(value)}"
        yield _complaint(manifest, f"no object: {key} {text}", field=key)
    if not wrong and (text := known_kinds.fault(manifest.api_version, manifest.kind)):
        yield _complaint(manifest, text, field="apiVersion")


def _judged(manifest: Manifest, resource: Resource, world: Files) -> Iterator[Complaint]:
    yield from _name_complaints(manifest)
    given = copy.deepcopy(manifest.value)
    schema = _schema(resource.kind)
    for field, text in [*_metadata_misfits(given), *_unknown_fields(given, schema)]:
        yield _complaint(manifest, text, field=field)
    written = copy.deepcopy(given)
    namespace = (manifest.namespace or _NAMESPACE) if resource.namespaced else ""
    if namespace:
        given["metadata"]["namespace"] = namespace
    lookup = world.without_queue(manifest.name) if resource == QUEUES else world
    asked = Request(
        resource=resource, operation=Operation.CREATE, name=manifest.name, namespace=namespace, object=given
    )
    defaulted = admission.mutate(asked, lookup)
    assert defaulted is not None  # noqa: S101 - an object was given
    pruning.apply_defaults(defaulted, schema)
    misfits = [*validation.validate_schema(defaulted, schema), *validate_lists(defaulted, schema)]
    # What is derived of a field that doesn't fit is nothing that somebody could mend.
    derived = {_dotted(path) for path in _paths(defaulted)} - {_dotted(path) for path in _paths(written)}
    mendable = [fault for fault in misfits if _dotted(fault.field) not in derived] or misfits
    for fault in mendable:
        yield _complaint(manifest, str(fault), field=fault.field)
    asked = Request(
        resource=resource, operation=Operation.CREATE, name=manifest.name, namespace=namespace, object=defaulted
    )
    verdict = admission.review(asked, lookup)
    told = {_dotted(fault.field) for fault in misfits}
    for fault in verdict.faults:
        field = fault.field.removeprefix("requestBody.")
        # What has the wrong type can't be judged at all, which then is said without a field.
        if not misfits or (field and _dotted(field) not in told | derived):
            yield _complaint(manifest, str(fault), field=field)
    of_writing = () if verdict.faults else admission.mutation_warnings(replace(asked, object=written), defaulted)
    for warning in (*of_writing, *verdict.warnings):
        field = _FIELD.match(warning)
        yield _complaint(manifest, warning, field=field[0] if field else "", severity=Severity.WARNING)


def misfits(manifest: Manifest) -> list[tuple[str, str]]:
    """Field and fault of everything in an object of ours that its schema doesn't have, or has with another type."""
    if manifest.resource not in CUSTOM_RESOURCES:
        return []
    given = copy.deepcopy(manifest.value)
    unknown = [*_metadata_misfits(given), *_unknown_fields(given, _schema(manifest.kind))]
    return [*unknown, *type_misfits(manifest.kind, given)]


def type_misfits(kind: str, obj: Json) -> list[tuple[str, str]]:
    """Field and fault of everything in an object of this kind of ours that has another type than the schema says."""
    given, schema = copy.deepcopy(obj), _schema(kind)
    found = _metadata_misfits(given)
    pruning.prune(given, schema)
    pruning.apply_defaults(given, schema)
    faults = [*validation.validate_schema(given, schema), *validate_lists(given, schema)]
    return [*found, *((fault.field, str(fault)) for fault in faults)]


def _unknown_fields(given: Json, schema: Node) -> Iterator[tuple[str, str]]:
    for path in pruning.prune(given, schema):
        yield path, f"unknown field {path!r}{_meant(path, schema)}"


def _metadata_misfits(given: Json) -> list[tuple[str, str]]:
    """What in the metadata has the wrong type, which is dropped in place, so that the rest can be judged."""
    metadata = given.get("metadata")
    if not isinstance(metadata, dict):
        given["metadata"] = {}
        return [("metadata", f"metadata: must be a mapping, got {_shown(metadata)}")] if metadata is not None else []
    found: list[tuple[str, str]] = []
    for key in list(cast(Json, metadata)):
        try:
            decode_at("meta/v1.ObjectMeta", {key: copy.deepcopy(metadata[key])}, path="metadata.")
        except DecodeError as error:
            wanted = str(error).rpartition(" of type ")[2] if " of type " in str(error) else ""
            text = f"must be of type {wanted}, got {_shown(metadata[key])}" if wanted else str(error)
            found.append((f"metadata.{key}", f"metadata.{key}: {text}"))
            del metadata[key]
    return found


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _name_complaints(manifest: Manifest) -> Iterator[Complaint]:
    given = part(manifest.value, "metadata")
    if not manifest.name and (given.get("name") or given.get("generateName")):
        return  # of the wrong type, which is told elsewhere
    if not manifest.name:
        yield _complaint(manifest, "metadata.name (or generateName) must be given", field="metadata.name")
        return
    field = "metadata.name" if given.get("name") else "metadata.generateName"
    for text in dns_subdomain(manifest.name, prefix=field != "metadata.name"):
        yield _complaint(manifest, f'{field}: Invalid value: "{manifest.name}": {text}', field=field)


def _complaint(manifest: Manifest, message: str, *, field: str = "", severity: Severity = Severity.ERROR) -> Complaint:
    place = manifest.placed.place_of(field)
    return Complaint(
        file=manifest.file,
        line=place.line,
        column=place.column,
        severity=severity,
        object=manifest.title,
        field=field,
        message=message,
    )


def _paths(value: Any, path: str = "") -> Iterator[str]:
    """The path of everything in an object."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _paths(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _paths(inner, f"{path}[{index}]")


def _dotted(field: str) -> str:
    """The path with `.cpu` in place of `[cpu]`."""
    return re.sub(r"\[(\D[^\]]*)\]", r".\1", field)


def _meant(path: str, schema: Node) -> str:
    """The known field beside it that is written nearly so."""
    *above, name = re.findall(r"[^.\[\]]+", path) or [""]
    node: Node | None = schema
    for step in above:
        if node is not None:
            node = node.items if step.isdecimal() else node.properties.get(step, node.additional)
    close = difflib.get_close_matches(name, node.properties, n=1) if node is not None else []
    return f"; is {close[0]!r} meant?" if close else ""


@cache
def _schema(kind: str) -> Node:
    """What the definition of the kind says, less what it says of the whole object: that is the server's."""
    return compile_schema(render(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
