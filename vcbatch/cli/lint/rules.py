"""The errors and warnings of a server for objects in files: those of the schema, then those of admission."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from vcbatch.api import admission
from vcbatch.api.admission import Operation, Request, Verdict
from vcbatch.api.loose import Json, part
from vcbatch.api.resources import CUSTOM_RESOURCES, QUEUES, Resource
from vcbatch.api.validate import ValidationError
from vcbatch.cli.files import known_kinds, schema
from vcbatch.cli.files.manifests import Manifest
from vcbatch.cli.files.positions import Place
from vcbatch.cli.files.wording import put, shown, within
from vcbatch.cli.lint.world import Files, world_of

_NAMESPACE: Final = "default"
_UNNAMED: Final = "unnamed"
"""Replaces a missing name of an object, so that its other fields can be validated."""
_BODY: Final = "requestBody."
"""The prefix of fields in Volcano's messages for queues."""
_NUMBERS: Final = (1, 100_000)
"""Two values that no validation rule confuses."""
_FIELD: Final = re.compile(r"(spec|metadata)\.[^\s:,]+")
"""The field at the beginning of a warning."""


class Severity(StrEnum):
    """An error is rejected by the server; with a warning the object is stored."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """One error to fix. `line` and `column` count from 1; `field` is the path in the object, "" for the whole object;
    `object` is its kind and name."""

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
    """Whether the fields of the object are validated here; other kinds are left to other tools."""
    return manifest.resource in CUSTOM_RESOURCES


def complaints(manifests: Iterable[Manifest], *, closed: bool = False) -> Iterator[Complaint]:
    """The errors of these objects, which are validated together, in the order of the objects. With `closed` only queues
    and priority classes from the files exist."""
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
                text = f"duplicate object, also in {first.place()}; the last one is used"
                yield _complaint(manifest, text, field="metadata.name")
        if resource in CUSTOM_RESOURCES:
            yield from _validated(manifest, resource, world)


def creation_errors(manifest: Manifest, every: Iterable[Manifest]) -> schema.Found:
    """Field and message of each error for which a server would reject the creation of the object; empty for a kind that
    isn't vcbatch's."""
    if manifest.resource not in CUSTOM_RESOURCES:
        return []
    reported = _validated(manifest, manifest.resource, world_of(every, closed=False))
    return [(one.field, one.message) for one in reported if one.severity is Severity.ERROR]


def _written(manifest: Manifest) -> Iterator[Complaint]:
    for repeat in manifest.placed.repeats():
        yield _complaint(manifest, str(repeat), field=repeat.field, place=repeat.place)


def _unknown(manifest: Manifest) -> Iterator[Complaint]:
    """The errors of a document that isn't an object, or has an impossible kind."""
    if not manifest.value:
        yield _complaint(manifest, "not an object: must be a mapping with apiVersion and kind")
        return
    wrong = False
    for key in ("apiVersion", "kind"):
        value = manifest.value.get(key)
        if isinstance(value, str) and value:
            continue
        wrong = True
        text = "is required" if value in (None, "") else f"must be a string, got {shown(value)}"
        yield _complaint(manifest, f"not an object: {key} {text}", field=key)
    if not wrong and (text := known_kinds.kind_error(manifest.api_version, manifest.kind)):
        yield _complaint(manifest, text, field="apiVersion")


def _validated(manifest: Manifest, resource: Resource, world: Files) -> Iterator[Complaint]:
    """Each error once, without those that follow from another one."""
    given = copy.deepcopy(manifest.value)
    unread = schema.read(resource.kind, given)
    written = copy.deepcopy(given)
    namespace = manifest.namespace or _NAMESPACE if resource.namespaced else ""
    if namespace:
        given["metadata"]["namespace"] = namespace
    creation = _Creation(manifest=manifest, resource=resource, namespace=namespace, world=world)
    defaulted = creation.defaulted(given)
    names = list(schema.metadata_errors(resource, given, unread=frozenset(field for field, _ in unread)))
    misfits = schema.validated(resource.kind, defaulted)
    derived = {_dotted(path) for path in _paths(defaulted)} - {_dotted(path) for path in _paths(written)}
    fields = [field for field, _ in misfits if _dotted(field) not in derived]
    if fields:  # otherwise all errors follow from values that are valid by themselves
        following = creation.misfits_without(given, fields)
        misfits = [error for error in misfits if error[0] in fields or error in following]
    for field, text in [*unread, *names, *misfits]:
        yield _complaint(manifest, text, field=field)
    verdict = creation.reviewed(defaulted)
    errors = [*verdict.errors]
    reported = {_dotted(field) for field, _ in names}
    if misfits:
        errors = creation.errors_without(given, [field for field, _ in misfits])
        reported |= {_dotted(field) for field, _ in misfits} | derived
        errors = [error for error in errors if not any(within(_field(error), field) for field, _ in misfits)]
    for error in dict.fromkeys(errors):
        if not error.field or _dotted(_field(error)) not in reported:
            yield _complaint(manifest, str(error).removeprefix(_BODY), field=_field(error))
    of_writing = () if verdict.errors else creation.warnings_of_writing(written, defaulted)
    for warning in (*of_writing, *verdict.warnings):
        field = _FIELD.match(warning)
        yield _complaint(manifest, warning, field=field[0] if field else "", severity=Severity.WARNING)


def _field(error: ValidationError) -> str:
    return error.field.removeprefix(_BODY)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Creation:
    """The creation of one object, as admission sees it."""

    manifest: Manifest
    resource: Resource
    namespace: str
    world: Files

    def _request(self, obj: Json) -> Request:
        return Request(
            resource=self.resource,
            operation=Operation.CREATE,
            name=self.manifest.name or _UNNAMED,
            namespace=self.namespace,
            object=obj,
        )

    @property
    def _lookup(self) -> Files:
        return self.world.without_queue(self.manifest.name) if self.resource == QUEUES else self.world

    def defaulted(self, given: Json) -> Json:
        document = copy.deepcopy(given)
        if not (document["metadata"].get("name") or document["metadata"].get("generateName")):
            document["metadata"]["name"] = _UNNAMED
        schema.filled(self.resource.kind, document)
        mutated = admission.mutate(self._request(document), self._lookup)
        assert mutated is not None  # noqa: S101 - an object was given
        schema.filled(self.resource.kind, mutated)
        return mutated

    def reviewed(self, defaulted: Json) -> Verdict:
        return admission.review(self._request(defaulted), self._lookup)

    def warnings_of_writing(self, written: Json, defaulted: Json) -> Iterator[str]:
        return admission.mutation_warnings(self._request(written), defaulted)

    def errors_without(self, given: Json, fields: Sequence[str]) -> list[ValidationError]:
        """The admission errors that remain for any valid values of these fields. Admission isn't called for an object
        with invalid values."""
        said = [self.reviewed(document).errors for document in self._repaired(given, fields)]
        return [error for error in said[0] if all(error in others for others in said[1:])]

    def misfits_without(self, given: Json, fields: Sequence[str]) -> schema.Found:
        """The schema errors that remain for any valid values of these fields."""
        found = [schema.validated(self.resource.kind, document) for document in self._repaired(given, fields)]
        return [error for error in found[0] if all(error in others for others in found[1:])]

    def _repaired(self, given: Json, fields: Sequence[str]) -> list[Json]:
        wrong = schema.unvalidatable(self.resource.kind, given, fields)
        return [self.defaulted(_repaired(given, wrong, self.resource.kind, number)) for number in _NUMBERS]


def _repaired(given: Json, misfits: Sequence[str], kind: str, number: int) -> Json:
    """The object with valid values in place of the invalid ones, derived from this number as far as possible."""
    document = copy.deepcopy(given)
    first = number == _NUMBERS[0]
    # A text that admission quotes appears only in messages that differ between the numbers.
    of_type: dict[str, Any] = {
        "integer": number, "number": number, "string": f"x{number}", "boolean": first, "array": [], "object": {},
    }  # fmt: skip
    for path in misfits:
        node = schema.node_at(path, kind)
        if node is not None and node.types:
            choice = node.enum[0 if first else -1] if node.enum else of_type[node.types[0]]
            put(document, path, copy.deepcopy(choice))
    return document


def _complaint(
    manifest: Manifest,
    message: str,
    *,
    field: str = "",
    severity: Severity = Severity.ERROR,
    place: Place | None = None,
) -> Complaint:
    place = place or manifest.placed.place_of(field)
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
    """The path of every value in an object."""
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
