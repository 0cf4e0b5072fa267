"""What applying a manifest would change, found out by a server-side dry run."""

from __future__ import annotations

import copy
import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from vcbatch.api import yaml_writer
from vcbatch.api.names import LAST_APPLIED
from vcbatch.api.resources import CUSTOM_RESOURCES, PRIORITYCLASSES, Resource
from vcbatch.cli.apply.errors import immutable_fields, typed
from vcbatch.cli.base.deletion import PATIENCE_SECONDS, delete_and_wait
from vcbatch.cli.base.terminal import Terminal, Tone
from vcbatch.cli.base.titles import title
from vcbatch.cli.files.manifests import Manifest
from vcbatch.cli.files.wording import within
from vcbatch.interfaces.api import ApiError, get_or_none
from vcbatch.interfaces.clock import Clock
from vcbatch.runtime.client.rest import RestApi

Json = dict[str, Any]

MANAGER: Final = "vcbatch"
"""The field manager of vcbatch."""
_PEOPLE: Final = re.compile(r"kubectl.*|before-first-apply|vcbatch.*|vcctl.*")
"""Field managers that stand for a user with a file or a command, like vcbatch itself."""
_CONFLICT: Final = re.compile(r'conflicts? with "([^"]*)"')
_CONTEXT: Final = 2


class Change(StrEnum):
    CREATE = "create"
    CHANGE = "change"
    RECREATE = "recreate"
    NOTHING = "unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One object of the plan. `unchecked` names the object that must exist before the server can validate it; `taken`
    are the fields that are taken over from another manager, in the server's words; `fields` are those whose change
    requires that the object is recreated."""

    manifest: Manifest
    resource: Resource
    namespace: str | None
    change: Change
    before: Json | None = None
    after: Json | None = None
    unchecked: str = ""
    taken: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The title in the plan and in errors, with the namespace."""
        return title(self.resource, self.manifest.name, namespace=self.namespace)

    @property
    def body(self) -> Json:
        """The request body."""
        body = copy.deepcopy(self.manifest.value)
        if self.namespace:
            body["metadata"]["namespace"] = self.namespace
        return body


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a manifest can't be applied, with the fields that the server reports, if any. `fixed`: immutable fields, the
    object would have to be recreated; `new`: the object doesn't exist yet."""

    manifest: Manifest
    message: str
    fields: tuple[str, ...] = ()
    fixed: bool = False
    new: bool = False

    @property
    def field(self) -> str:
        """The first field, or "" for the whole object."""
        return self.fields[0] if self.fields else ""


async def plan(
    api: RestApi, manifests: Sequence[Manifest], *, namespace: str, force: bool, recreate: bool = False
) -> tuple[list[Step], list[Refusal]]:
    """The steps and refusals of all manifests, in their order. With `recreate`, objects whose changes the server
    rejects are deleted and created. Raises `ApiError` where the server doesn't respond."""
    steps: list[Step] = []
    refusals: list[Refusal] = []
    for manifest in manifests:
        resource = manifest.resource
        assert resource is not None  # noqa: S101 - checked by the caller
        where = (manifest.namespace or namespace) if resource.namespaced else None
        step = Step(manifest=manifest, resource=resource, namespace=where, change=Change.NOTHING)
        before: Json | None = None
        try:
            before = await get_or_none(api, step.resource, step.manifest.name, namespace=step.namespace)
            if errors := _lint(manifest, new=before is None):
                refusals += errors
                continue
            after, taken = await _tried(api, step, force=force)
        except ApiError as error:
            misfits = typed_errors(error, manifest, new=before is None)
            if (error.transient and not misfits) or error.code == 401:
                raise
            if misfits:
                refusals += misfits
                continue
            if (fields := immutable_fields(error, before, manifest)) and before is not None:
                errors = await _refused_recreation(api, step) if recreate else [_unchangeable(manifest, error, fields)]
                refusals += errors
                if not errors:
                    steps.append(_with(step, Change.RECREATE, before=before, after=step.body, fields=fields))
                continue
            awaited = _awaited(error, steps)
            if awaited:
                steps.append(_with(step, Change.CREATE, unchecked=awaited))
            else:
                refusals.append(_refusal(manifest, error, new=before is None))
            continue
        change = Change.CREATE if before is None else Change.NOTHING
        if before is not None and shown(before) != shown(after):
            change = Change.CHANGE
        steps.append(_with(step, change, before=before, after=after, taken=taken))
    return steps, refusals


def _lint(manifest: Manifest, *, new: bool) -> list[Refusal]:
    """The fields that don't fit the kind's schema, as `vcbatch lint` reports them; servers report them in different
    ways, some as an internal error."""
    if manifest.resource not in CUSTOM_RESOURCES:
        return []
    from vcbatch.cli.files.schema import misfits

    return [
        Refusal(manifest=manifest, message=text, fields=(field,) if field else (), new=new)
        for field, text in misfits(manifest.kind, manifest.value)
    ]


def _with(step: Step, change: Change, **more: Any) -> Step:
    return Step(manifest=step.manifest, resource=step.resource, namespace=step.namespace, change=change, **more)


async def carry_out(api: RestApi, step: Step, *, clock: Clock) -> None:
    """Execute one step. Raises `ApiError`."""
    if step.change is Change.RECREATE and step.before is not None:
        await _delete(api, step, step.before["metadata"]["uid"], clock=clock)
    await api.apply(step.resource, step.body, namespace=step.namespace, manager=MANAGER, force=bool(step.taken))


async def _delete(api: RestApi, step: Step, uid: str, *, clock: Clock) -> None:
    """Delete the object with this UID and its dependents, and return when it is deleted. Raises `ApiError`."""
    name, namespace = step.manifest.name, step.namespace
    if not await delete_and_wait(api, step.resource, name, namespace=namespace, uid=uid, clock=clock):
        text = f"still being deleted after {PATIENCE_SECONDS:.0f} s; apply the files again when it is deleted"
        raise ApiError(409, "Conflict", text)


async def _refused_recreation(api: RestApi, step: Step) -> list[Refusal]:
    """Why the server would refuse to recreate the object, found out by a dry run under another name."""
    body = step.body
    body["metadata"] = {**body["metadata"], "name": f"{step.manifest.name[:40].rstrip('-.')}-recreated"}
    try:
        await api.apply(step.resource, body, namespace=step.namespace, manager=MANAGER, dry_run=True)
    except ApiError as error:
        if error.transient and not typed_errors(error, step.manifest):
            raise
        return typed_errors(error, step.manifest, new=True) or [_refusal(step.manifest, error, new=True)]
    return []


def _unchangeable(manifest: Manifest, error: ApiError, fields: Sequence[str]) -> Refusal:
    # Admission names the part of the object; the fields that differ in it are more exact.
    message = error.sentence.partition("; changed: ")[0]
    return Refusal(
        manifest=manifest, message=f"{message}; changed: {', '.join(fields)}", fields=tuple(fields), fixed=True
    )


async def _tried(api: RestApi, step: Step, *, force: bool) -> tuple[Json, tuple[str, ...]]:
    """The object as it would be stored, and the fields that are taken over for that."""
    try:
        applied = await api.apply(step.resource, step.body, namespace=step.namespace, manager=MANAGER, dry_run=True)
        return applied, ()
    except ApiError as error:
        owners = _CONFLICT.findall(str(error))
        if not error.conflict or not owners:
            raise
        if not force and not all(_PEOPLE.fullmatch(owner) for owner in owners):
            raise
        taken = _taken(error)
    applied = await api.apply(
        step.resource, step.body, namespace=step.namespace, manager=MANAGER, dry_run=True, force=True
    )
    return applied, taken


def _taken(error: ApiError) -> tuple[str, ...]:
    causes = error.details.get("causes")
    found = [cause for cause in causes if isinstance(cause, dict)] if isinstance(causes, list) else []
    texts = [f"{cause.get('field')} ({cause.get('message')})" for cause in found]
    return tuple(texts) or (str(error),)


def _awaited(error: ApiError, steps: Sequence[Step]) -> str:
    """The object that the plan creates and without which the server rejects this one; empty for other errors."""
    created = [step for step in steps if step.change is Change.CREATE]
    return next((step.title for step in created if _missed(step) in str(error)), "")


def _missed(step: Step) -> str:
    """The text with which servers and admission report that the object doesn't exist."""
    if step.resource == PRIORITYCLASSES:
        return f"no PriorityClass with name {step.manifest.name} was found"
    return f'"{step.manifest.name}" not found'


def typed_errors(error: ApiError, manifest: Manifest, *, new: bool = False) -> list[Refusal]:
    """A refusal for each field that doesn't fit the kind's schema; empty for errors of another kind."""
    return [
        Refusal(manifest=manifest, message=message, fields=(field,) if field else (), new=new)
        for field, message in typed(error, manifest)
    ]


def reported_in_full(refusals: Sequence[Refusal], every: Sequence[Manifest]) -> list[Refusal]:
    """All errors of each refused manifest, each once and with its field. A server reports only the first error, or
    errors of one kind, and the author of a file needs all of them. For the kinds of vcbatch they can be determined here
    and are worded as in `lint`."""
    from vcbatch.cli.files.schema import misfits
    from vcbatch.cli.lint.rules import creation_errors

    found: list[Refusal] = []
    for manifest in {id(one.manifest): one.manifest for one in refusals}.values():
        server = [one for one in refusals if one.manifest is manifest]
        ours: Sequence[tuple[str, str]] = ()
        if manifest.resource in CUSTOM_RESOURCES and not any(one.fixed for one in server):
            new = all(one.new for one in server)
            ours = creation_errors(manifest, every) if new else misfits(manifest.kind, manifest.value)
        known = [field for field, _ in ours]
        kept = [one for one in server if not one.fields or not all(_among(field, known) for field in one.fields)]
        left = [field for one in kept for field in one.fields]
        said = [one.message for one in kept]
        found += kept
        found += [
            Refusal(manifest=manifest, message=text, fields=(field,) if field else ())
            for field, text in ours
            if not (_among(field, left) or any(text in message for message in said))
        ]
    return found


def _among(field: str, others: Sequence[str]) -> bool:
    """Whether the field, one below it or one above it is among the others."""
    plain = field.removeprefix("requestBody.").removeprefix(".")
    return bool(plain) and any(within(plain, other) or within(other, plain) for other in others if other)


def _refusal(manifest: Manifest, error: ApiError, *, new: bool = False) -> Refusal:
    causes = error.details.get("causes")
    given = [one.get("field") for one in causes if isinstance(one, dict)] if isinstance(causes, list) else []
    fields = tuple(one for one in given if isinstance(one, str) and one and one != "<nil>")
    return Refusal(manifest=manifest, message=error.sentence, fields=fields, new=new)


# -- output ------------------------------------------------------------------------------------------------------

_OWN: Final = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink")


def shown(obj: Json) -> str:
    """The object as YAML, without the fields that the server maintains."""
    copied = {key: copy.deepcopy(value) for key, value in obj.items() if key != "status"}
    metadata = copied.get("metadata")
    if isinstance(metadata, dict):
        for key in _OWN:
            metadata.pop(key, None)
        annotations = metadata.get("annotations")
        if isinstance(annotations, dict):
            annotations.pop(LAST_APPLIED, None)
            if not annotations:
                del metadata["annotations"]
    return yaml_writer.dump(copied, sort_keys=True, ascii_only=True, width=1000)


def text_of(step: Step, terminal: Terminal, *, verbose: bool) -> list[str]:
    """The lines that report the step: the operation, and its diff."""
    marks = {
        Change.CREATE: ("+", Tone.GOOD),
        Change.CHANGE: ("~", Tone.WAITING),
        Change.RECREATE: ("-+", Tone.BAD),
        Change.NOTHING: ("=", None),
    }
    mark, tone = marks[step.change]
    lines = [terminal.paint(f"{mark} {step.change} {step.title}", tone)]
    lines += [f"    {field} differs" for field in step.fields]
    if step.unchecked:
        lines.append(f"    not validated: requires {step.unchecked}")
    lines += [f"    takes ownership of {field}" for field in step.taken]
    if step.change is Change.CHANGE and step.before is not None and step.after is not None:
        lines += _diff(shown(step.before), shown(step.after), terminal)
    elif verbose and step.change is Change.CREATE and step.after is not None:
        lines += [terminal.paint(f"    + {line}", Tone.GOOD) for line in shown(step.after).splitlines()]
    return lines


def _diff(before: str, after: str, terminal: Terminal) -> list[str]:
    tones = {"+": Tone.GOOD, "-": Tone.BAD}
    found = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=_CONTEXT)
    body = [line for line in found if not line.startswith(("---", "+++"))]
    return [terminal.paint(f"    {line}", tones.get(line[:1])) for line in body]
