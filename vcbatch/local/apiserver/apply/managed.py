"""Managed fields: the fields that an apply adds and removes, and the effect of other writes on existing claims."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import msgspec

from vcbatch.api.field_errors import go_quote
from vcbatch.local.apiserver.apierrors import StatusError
from vcbatch.local.apiserver.apply.fieldset import FieldSet, Json, MalformedFields, Path, from_json, shown, to_json
from vcbatch.local.apiserver.apply.merge import leaves, merged, without
from vcbatch.local.apiserver.apply.shapes import Shape, shape_of
from vcbatch.local.apiserver.registry import Served

BEFORE_FIRST_APPLY = "before-first-apply"
CLIENT_SIDE_APPLY = "kubectl-client-side-apply"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_MAX_CLAIMS = 100
_SERVER_OWNED = frozenset(
    {
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "generation",
        "managedFields",
        "resourceVersion",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    }
)
"""Metadata that no manager owns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claim:
    """One entry of `managedFields`."""

    manager: str
    operation: str
    subresource: str
    api_version: str
    time: str
    fields: FieldSet

    @property
    def key(self) -> tuple[str, str, str]:
        return self.manager, self.operation, self.subresource

    def __str__(self) -> str:
        """The manager in the form of conflict messages."""
        text = go_quote(self.manager)
        if self.subresource:
            text += f" with subresource {go_quote(self.subresource)}"
        if self.operation == "Update":
            text += f" using {self.api_version}"
            if self.time:
                text += f" at {self.time}"
        return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """The object after an apply, and its new `managedFields`."""

    obj: Json
    managed: Sequence[Json]


def apply(
    *, live: Json, config: Json, entry: Served, manager: str, subresource: str, force: bool, now: datetime
) -> Applied:
    """Apply `config` to `live`. Raises `StatusError` (409) where other managers own fields that it changes, unless
    `force`."""
    shape = shape_of(entry)
    claims = _claims(live.get("metadata", {}).get("managedFields"))
    if not claims:
        claims = _first_claims(live, entry, shape)
    own_key = (manager, "Apply", subresource)
    before = next((claim.fields for claim in claims if claim.key == own_key), frozenset[Path]())
    others = [claim for claim in claims if claim.key != own_key]
    wanted = _owned(config, entry, shape, subresource)
    body = {key: value for key, value in config.items() if key not in ("apiVersion", "kind", "metadata")}
    body["metadata"] = {k: v for k, v in (config.get("metadata") or {}).items() if k not in _SERVER_OWNED}
    combined = merged(live, body, shape)
    changed = _changed(leaves(live, shape), leaves(combined, shape))
    others = _settled(others, changed & wanted, force=force)
    kept: FieldSet = frozenset[Path]().union(*(claim.fields for claim in others))
    gone = before - wanted
    obj = without(combined, gone, kept | wanted, shape) if gone else combined
    present = frozenset(leaves(obj, shape))
    others = [replace(claim, fields=claim.fields & present) for claim in others]
    mine = _Claim(
        manager=manager,
        operation="Apply",
        subresource=subresource,
        api_version=entry.resource.api_version,
        time=_time(now),
        fields=wanted,
    )
    return Applied(obj=obj, managed=_written([mine, *others], live))


def created(*, config: Json, entry: Served, manager: str, now: datetime) -> Sequence[Json]:
    """The `managedFields` of an object that an apply creates."""
    claim = _Claim(
        manager=manager,
        operation="Apply",
        subresource="",
        api_version=entry.resource.api_version,
        time=_time(now),
        fields=_owned(config, entry, shape_of(entry), ""),
    )
    return _written([claim], {})


def given_claims(obj: Json, old: Json) -> Sequence[Json]:
    """The claims after a client writes `obj` over `old`, before the write's own changes: those it sent, where they are
    well-formed (as kubectl does when it takes over from client-side apply), else the stored ones. An empty list drops
    all."""
    stored: Sequence[Json] = old.get("metadata", {}).get("managedFields") or ()
    given = obj.get("metadata", {}).get("managedFields")
    if given is None or not stored:
        return stored
    try:
        return _written(_claims(given, strict=True), old)
    except MalformedFields:
        return stored


def updated(
    *, obj: Json, old: Json, claims: Sequence[Json], entry: Served, manager: str, subresource: str, now: datetime
) -> Sequence[Json]:
    """The `managedFields` after a write that was no apply: the writer owns the fields that it changed."""
    shape = shape_of(entry)
    after = leaves(obj, shape)
    changed = _ownable(_changed(leaves(old, shape), after))
    present = frozenset(after)
    key = (manager, "Update", subresource)
    others: list[_Claim] = []
    mine = _Claim(
        manager=manager,
        operation="Update",
        subresource=subresource,
        api_version=entry.resource.api_version,
        time=_time(now),
        fields=changed,
    )
    for claim in _claims(claims):
        if claim.key == key:
            mine = replace(
                mine, fields=(claim.fields & present) | changed, time=claim.time if not changed else mine.time
            )
        else:
            others.append(replace(claim, fields=(claim.fields & present) - changed))
    return _written([*others, mine], old)


def _first_claims(live: Json, entry: Served, shape: Shape) -> list[_Claim]:
    """The owners of an object before the first apply here: kubectl owns the fields in its annotation of client-side
    apply, as it expects when it moves to server-side apply; the rest belongs to `before-first-apply`."""
    everything = _ownable(leaves(live, shape))
    remembered = _last_applied(live, shape) & everything
    first = _Claim(
        manager=BEFORE_FIRST_APPLY,
        operation="Update",
        subresource="",
        api_version=entry.resource.api_version,
        time="",
        fields=everything - remembered,
    )
    if not remembered:
        return [first]
    return [first, replace(first, manager=CLIENT_SIDE_APPLY, fields=remembered)]


def _last_applied(live: Json, shape: Shape) -> FieldSet:
    annotations = (live.get("metadata") or {}).get("annotations") or {}
    try:
        config = msgspec.json.decode(annotations.get(_LAST_APPLIED, ""))
    except (msgspec.DecodeError, RecursionError):
        return frozenset()
    if not isinstance(config, dict):
        return frozenset()
    annotation = ("f:metadata", "f:annotations", f"f:{_LAST_APPLIED}")
    return frozenset((*leaves(config, shape), annotation))


def _owned(config: Json, entry: Served, shape: Shape, subresource: str) -> FieldSet:
    """The fields that an applied configuration claims. The main resource never claims a status that is a subresource's,
    and the status nothing else."""
    fields = _ownable(leaves(config, shape))
    if subresource == "status":
        return frozenset(path for path in fields if path[0] == "f:status")
    if "status" in entry.subresources:
        return frozenset(path for path in fields if path[0] != "f:status")
    return fields


def _ownable(paths: Iterable[Path]) -> FieldSet:
    return frozenset(path for path in paths if not _is_servers(path))


def _is_servers(path: Path) -> bool:
    if path[0] in ("f:apiVersion", "f:kind"):
        return True
    return path[0] == "f:metadata" and (len(path) == 1 or path[1][2:] in _SERVER_OWNED)


def _changed(before: Mapping[Path, Any], after: Mapping[Path, Any]) -> FieldSet:
    return frozenset(path for path, value in after.items() if path not in before or before[path] != value)


def _settled(others: Sequence[_Claim], changed: FieldSet, *, force: bool) -> list[_Claim]:
    """The claims of other managers without the changed fields. Raises `StatusError` where that needs force."""
    conflicts = [(claim, path) for claim in others for path in sorted(claim.fields & changed)]
    if conflicts and not force:
        raise _conflict(conflicts)
    return [replace(claim, fields=claim.fields - changed) for claim in others]


def _conflict(conflicts: Sequence[tuple[_Claim, Path]]) -> StatusError:
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {claim}", "field": shown(path)}
        for claim, path in conflicts
    ]
    if len(conflicts) == 1:
        (claim, path) = conflicts[0]
        text = f"1 conflict: conflict with {claim}: {shown(path)}"
    else:
        lines: list[str] = []
        for name in sorted({str(claim) for claim, _ in conflicts}):
            lines.append(f"conflicts with {name}:")
            lines += [f"- {shown(path)}" for claim, path in conflicts if str(claim) == name]
        text = f"{len(conflicts)} conflicts: " + "\n".join(lines)
    return StatusError(409, "Conflict", f"Apply failed with {text}", {"causes": causes})


def _time(now: datetime) -> str:
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def _claims(entries: Any, *, strict: bool = False) -> list[_Claim]:
    """The claims of a stored `managedFields`. With `strict`, of one that a client sent: raises `MalformedFields`."""
    found: list[_Claim] = []
    if strict and (not isinstance(entries, list) or len(entries) > _MAX_CLAIMS):
        raise MalformedFields("managedFields must be a short list")
    for entry in entries or ():
        if not entry:
            continue
        try:
            found.append(_claim(entry))
        except (MalformedFields, AttributeError, TypeError):
            if strict:
                raise MalformedFields("managedFields has an entry that isn't one") from None
    return found


def _claim(entry: Json) -> _Claim:
    if entry.get("operation") not in ("Apply", "Update"):
        raise MalformedFields("an operation is Apply or Update")
    return _Claim(
        manager=str(entry.get("manager") or ""),
        operation=entry["operation"],
        subresource=str(entry.get("subresource") or ""),
        api_version=str(entry.get("apiVersion") or ""),
        time=str(entry.get("time") or ""),
        fields=from_json(entry.get("fieldsV1") or {}),
    )


def _written(claims: Sequence[_Claim], live: Json) -> Sequence[Json]:
    """The entries of `managedFields`; an unchanged entry keeps its time, so that a write that changes nothing stays
    one."""
    before = {claim.key: claim for claim in _claims(live.get("metadata", {}).get("managedFields"))}
    entries: list[Json] = []
    for claim in claims:
        if not claim.fields:
            continue
        old = before.get(claim.key)
        time = old.time if old is not None and old.fields == claim.fields else claim.time
        entry: Json = {
            "manager": claim.manager,
            "operation": claim.operation,
            "apiVersion": claim.api_version,
            "time": time,
            "fieldsType": "FieldsV1",
            "fieldsV1": to_json(claim.fields),
            "subresource": claim.subresource,
        }
        entries.append({key: value for key, value in entry.items() if value})
    return sorted(entries, key=lambda one: (one["operation"] == "Update", one.get("time", ""), one.get("manager", "")))
