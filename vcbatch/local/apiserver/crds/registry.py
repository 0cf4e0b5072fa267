"""The registry of custom kinds: the names that a definition gets, and the entries that serve its versions.

Source: apiextensions-apiserver `pkg/controller/{status,establish}` (conditions, conflicts of names).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from vcbatch.api.reasons import DefinitionReason
from vcbatch.api.resources import Resource
from vcbatch.local.apiserver.crds.columns import columns
from vcbatch.local.apiserver.crds.custom import CustomStrategy
from vcbatch.local.apiserver.metadata import timestamp
from vcbatch.local.apiserver.registry import Json, Served

_STATUS_VERBS = ("get", "patch", "update")


@dataclass(frozen=True, slots=True)
class _Kept:
    group: str
    names: Json
    """The accepted names of this definition."""
    entries: Sequence[Served]
    made_of: tuple[Json, bool]


class CrdRegistry:
    """A `CustomKinds`: built from definitions, in memory only."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}

    def reconcile(self, crd: Json, now: datetime) -> Json | None:
        """Register a definition, which must not be changed afterwards; returns its new status where that differs from
        the current one, else None."""
        name = str((crd.get("metadata") or {}).get("name"))
        spec, old = crd.get("spec") or {}, crd.get("status") or {}
        status = copy.deepcopy(old)
        given, conflict = self._accept(name, spec, old)
        status["acceptedNames"] = given
        accepted = conflict is None
        established = accepted or _is_true(old, "Established")
        conditions: list[Json] = [dict(one) for one in old.get("conditions") or ()]
        if accepted:
            _put(conditions, "NamesAccepted", True, DefinitionReason.NO_CONFLICTS, "no conflicts found", now)
            if not _is_true(old, "Established"):
                message = "the initial names have been accepted"
                _put(conditions, "Established", True, DefinitionReason.INITIAL_NAMES_ACCEPTED, message, now)
        else:
            reason, message = conflict or ("", "")
            _put(conditions, "NamesAccepted", False, reason, message, now)
            if not established:
                _put(conditions, "Established", False, DefinitionReason.NOT_ACCEPTED, "not all names are accepted", now)
        status["conditions"] = conditions
        self._keep(name, crd, given, established)
        return status if status != old else None

    def remove(self, name: str) -> None:
        self._kept.pop(name, None)

    def served(self) -> Sequence[Served]:
        return [entry for kept in self._kept.values() for entry in kept.entries]

    def _accept(self, name: str, spec: Json, old: Json) -> tuple[Json, tuple[str, str] | None]:
        """The names that the definition has now, and the first conflict of those that it requests."""
        asked: Json = spec.get("names") or {}
        given: Json = copy.deepcopy(old.get("acceptedNames") or {})
        others = [kept.names for key, kept in self._kept.items() if key != name and kept.group == spec.get("group", "")]
        resources = {text for names in others for text in _resource_names(names)}
        kinds = {text for names in others for text in (names.get("kind"), names.get("listKind")) if text}
        conflict: tuple[str, str] | None = None
        for key, taken, reason in (
            ("plural", resources, DefinitionReason.PLURAL_CONFLICT),
            ("singular", resources, DefinitionReason.SINGULAR_CONFLICT),
            ("shortNames", resources, DefinitionReason.SHORT_NAMES_CONFLICT),
            ("kind", kinds, DefinitionReason.KIND_CONFLICT),
            ("listKind", kinds, DefinitionReason.LIST_KIND_CONFLICT),
        ):
            wanted = asked.get(key)
            used = [text for text in (wanted if isinstance(wanted, list) else [wanted]) if text in taken]
            if not used:
                _take(given, key, wanted)
            elif conflict is None:
                conflict = (reason, ", ".join(f'"{text}" is already in use' for text in used))
        _take(given, "categories", asked.get("categories"))
        return given, conflict

    def _keep(self, name: str, crd: Json, names: Json, established: bool) -> None:
        spec = crd.get("spec") or {}
        metadata = crd.get("metadata") or {}
        changed = (metadata.get("generation") or 1) > 1
        made_of = (
            {"spec": spec, "names": names, "established": established, "changed": changed},
            bool(metadata.get("deletionTimestamp")),
        )
        before = self._kept.get(name)
        if before is not None and before.made_of == made_of:
            return
        entries = _entries(spec, names, changed=changed, terminating=made_of[1]) if established else ()
        self._kept[name] = _Kept(str(spec.get("group", "")), names, entries, made_of)


def _resource_names(names: Json) -> list[str]:
    return [text for text in (names.get("plural"), names.get("singular"), *(names.get("shortNames") or ())) if text]


def _take(names: Json, key: str, value: Any) -> None:
    if value:
        names[key] = copy.deepcopy(value)
    else:
        names.pop(key, None)


def _is_true(status: Json, type_: str) -> bool:
    return any(one.get("type") == type_ and one.get("status") == "True" for one in status.get("conditions") or ())


def _put(conditions: list[Json], type_: str, value: bool, reason: str, message: str, now: datetime) -> None:
    status = "True" if value else "False"
    for one in conditions:
        if one.get("type") == type_:
            if one.get("status") != status:
                one["lastTransitionTime"] = timestamp(now)
            one.update(status=status, reason=reason, message=message)
            return
    conditions.append(
        {"type": type_, "status": status, "lastTransitionTime": timestamp(now), "reason": reason, "message": message}
    )


def _entries(spec: Json, names: Json, *, changed: bool, terminating: bool) -> Sequence[Served]:
    """One entry for each served version. `changed`: objects may be stored that only an older schema accepts."""
    versions: list[Json] = [one for one in spec.get("versions") or () if one.get("served")]
    stored = next((one["name"] for one in spec.get("versions") or () if one.get("storage")), None)
    if stored is None:
        return ()
    return [_entry(spec, names, version, stored, changed=changed, terminating=terminating) for version in versions]


def _entry(spec: Json, names: Json, version: Json, stored: str, *, changed: bool, terminating: bool) -> Served:
    def resource(version_name: str) -> Resource:
        return Resource(
            group=spec["group"],
            version=version_name,
            plural=names["plural"],
            kind=names["kind"],
            namespaced=spec.get("scope") != "Cluster",
        )

    own = resource(version["name"])
    subresources: Json = version.get("subresources") or {}
    scale: Json | None = subresources.get("scale")
    schema: Json = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    is_stored = stored == version["name"]
    strategy = CustomStrategy(
        api_version=own.api_version,
        kind=own.kind,
        schema=schema,
        status="status" in subresources,
        scale=scale,
        terminating=terminating,
    )
    return Served(
        resource=own,
        singular=names.get("singular") or names["kind"].lower(),
        strategy=strategy,
        columns=columns(version.get("additionalPrinterColumns")),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources={name: _STATUS_VERBS for name in ("status", "scale") if name in subresources},
        subresource_kinds={"scale": ("autoscaling", "v1", "Scale")} if scale else {},
        list_kind=names.get("listKind") or f"{names['kind']}List",
        selectable_fields=tuple(
            str(one.get("jsonPath", "")).removeprefix(".") for one in version.get("selectableFields") or ()
        ),
        schema=schema,
        scale=scale,
        generated=True,
        storage=None if is_stored else resource(stored),
        from_storage=None if is_stored and not changed else strategy.as_served,
        validates_whole_on_update=False,
        unconditional_update=False,
    )
