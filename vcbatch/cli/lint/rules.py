"""What a server would refuse, or warn of, in objects that come from files: their schema, then admission."""

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
"""What stands for the name that an object lacks, where its other fields are validated."""
_BODY: Final = "requestBody."
"""With this begin the fields in Volcano's words for queues."""
_NUMBERS: Final = (1, 100_000)
"""Two values that no rule takes for each other."""
_FIELD: Final = re.compile(r"(spec|metadata)\.[^\s:,]+")
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
                text = f"duplicate object, also in {first.place()}; the last one is used"
                yield _complaint(manifest, text, field="metadata.name")
        if resource in CUSTOM_RESOURCES:
            yield from _validated(manifest, resource, world)


def creation_errors(manifest: Manifest, every: Iterable[Manifest]) -> schema.Found:
    """Field and sentence of all for which a server would refuse to create one of these objects; empty for a kind that
    isn't ours."""
    if manifest.resource not in CUSTOM_RESOURCES:
        return []
    reported = _validated(manifest, manifest.resource, world_of(every, closed=False))
    return [(one.field, one.message) for one in reported if one.severity is Severity.ERROR]


def _written(manifest: Manifest) -> Iterator[Complaint]:
    for repeat in manifest.placed.repeats():
        yield _complaint(manifest, str(repeat), field=repeat.field, place=repeat.place)


def _unknown(manifest: Manifest) -> Iterator[Complaint]:
    """Something that isn't an object at all, or of a kind that there can't be."""
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
    """Each error once: what follows from another one needs no fix of its own."""
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
    if fields:  # else all follows from values that fit by themselves
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
    """The creation of one object, as admission is asked about it."""

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
        """What admission would say whatever fitting values were in these fields: it isn't asked about an object with
        other values."""
        said = [self.reviewed(document).errors for document in self._repaired(given, fields)]
        return [error for error in said[0] if all(error in others for others in said[1:])]

    def misfits_without(self, given: Json, fields: Sequence[str]) -> schema.Found:
        """What the schema would refuse whatever fitting values were in these fields."""
        found = [schema.validated(self.resource.kind, document) for document in self._repaired(given, fields)]
        return [error for error in found[0] if all(error in others for others in found[1:])]

    def _repaired(self, given: Json, fields: Sequence[str]) -> list[Json]:
        wrong = schema.unvalidatable(self.resource.kind, given, fields)
        return [self.defaulted(_repaired(given, wrong, self.resource.kind, number)) for number in _NUMBERS]


def _repaired(given: Json, misfits: Sequence[str], kind: str, number: int) -> Json:
    """The object with fitting values in place of the others, made of this number as far as may be."""
    document = copy.deepcopy(given)
    first = number == _NUMBERS[0]
    # A text that admission quotes is in no message that is the same for all numbers.
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
