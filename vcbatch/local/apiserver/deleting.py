"""Delete: preconditions, grace period, finalizers and the propagation to dependents.

Source of the rules: k8s.io/apiserver `pkg/registry/rest/delete.go` and `pkg/registry/generic/registry/store.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from vcbatch.api.resources import CRDS, NAMESPACES
from vcbatch.local.apiserver import definitions, namespaces
from vcbatch.local.apiserver.apierrors import (
    MODIFIED,
    FieldError,
    StatusError,
    bad_request,
    conflict,
    forbidden,
    invalid,
    invalid_value,
    not_supported,
)
from vcbatch.local.apiserver.engine import Engine
from vcbatch.local.apiserver.gojson import kind_of
from vcbatch.local.apiserver.metadata import FOREGROUND, ORPHAN, timestamp
from vcbatch.local.apiserver.record import Record
from vcbatch.local.apiserver.registry import RequestContext, Served
from vcbatch.local.apiserver.request import MAX_INT64, go_integer

Json = dict[str, Any]

_LONGEST_GRACE = 2**31 - 1
"""The longest grace period in seconds (68 years): its end must be a valid time."""
_LAST_MOMENT = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
POLICIES = ("Foreground", "Background", "Orphan")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """The options of a DELETE. `propagation` "" is the kind's default; `grace_seconds` None the object's own."""

    propagation: str = ""
    grace_seconds: int | None = None
    uid: str | None = None
    resource_version: str | None = None
    dry_run: bool = False

    def shown(self) -> Json:
        """The options in their wire format, without kind."""
        preconditions = {"uid": self.uid, "resourceVersion": self.resource_version}
        wire: Json = {
            "gracePeriodSeconds": self.grace_seconds,
            "preconditions": {key: value for key, value in preconditions.items() if value is not None} or None,
            "propagationPolicy": self.propagation or None,
            "dryRun": ["All"] if self.dry_run else None,
        }
        return {key: value for key, value in wire.items() if value is not None}


def parse_delete_options(body: Json | None, query: Mapping[str, Any]) -> DeleteOptions:
    """The options in the body, or without one in the query. Raises 400 for wrong types and 422 for invalid values."""
    source = body or _from_query(query)
    kind, version = source.get("kind"), source.get("apiVersion") or "meta.k8s.io/v1"
    if kind and kind != "DeleteOptions":
        raise bad_request(
            f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
        )
    preconditions = source.get("preconditions") or {}
    grace = source.get("gracePeriodSeconds")
    orphan = source.get("orphanDependents")
    propagation = source.get("propagationPolicy")
    dry_run = source.get("dryRun") or []
    for name, value, wanted, title in (
        ("preconditions", preconditions, dict, "v1.Preconditions"),
        ("gracePeriodSeconds", grace, int, "int64"),
        ("orphanDependents", orphan, bool, "bool"),
        ("propagationPolicy", propagation, str, "v1.DeletionPropagation"),
        ("dryRun", dry_run, list, "[]string"),
    ):
        if value is not None and (not isinstance(value, wanted) or (wanted is int and isinstance(value, bool))):
            raise _mistyped(kind_of(value), name, title)
    if grace is not None and abs(grace) > MAX_INT64:
        raise _mistyped(f"number {grace:.3g}", "gracePeriodSeconds", "int64")
    for name, title in (("uid", "types.UID"), ("resourceVersion", "string")):
        if not isinstance(preconditions.get(name) or "", str):
            raise _mistyped(kind_of(preconditions[name]), f"preconditions.{name}", title)
    errors: list[FieldError] = []
    if grace is not None and grace > _LONGEST_GRACE:
        detail = f"must be less than or equal to {_LONGEST_GRACE}"
        errors.append(invalid_value("gracePeriodSeconds", grace, detail))
    if propagation is not None and orphan is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(invalid_value("propagationPolicy", propagation, detail))
    if propagation is not None and propagation not in POLICIES:
        errors.append(not_supported("propagationPolicy", propagation, [*POLICIES, "nil"]))
    if any(value != "All" for value in dry_run):
        errors.append(not_supported("dryRun", dry_run, ["All"]))
    if errors:
        raise invalid(group="meta.k8s.io", kind="DeleteOptions", name="", errors=errors)
    if propagation is None and orphan is not None:
        propagation = "Orphan" if orphan else "Background"
    if grace is not None and grace < 0:
        grace = 1  # as Kubernetes treats a negative grace period
    return DeleteOptions(
        propagation=propagation or "",
        grace_seconds=grace,
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        dry_run=bool(dry_run),
    )


def _mistyped(given: str, name: str, title: str) -> StatusError:
    return bad_request(f"json: cannot unmarshal {given} into Go struct field DeleteOptions.{name} of type {title}")


def _from_query(query: Mapping[str, Any]) -> Json:
    source: Json = {}
    for name in ("propagationPolicy", "gracePeriodSeconds", "orphanDependents", "dryRun"):
        values = query.get(name)
        if not values:
            continue
        text = values[0]
        if name == "gracePeriodSeconds":
            source[name] = go_integer(text)
        elif name == "orphanDependents":
            source[name] = text.lower() not in ("false", "0")
        elif name == "dryRun":
            source[name] = [value for value in values if value]
        else:
            source[name] = text
    return source


_MOST_TRIES = 5
"""How often a deletion is retried because the object changed while webhooks were called."""


class Deleter:
    """Executes deletions on an `Engine`. Waits for webhooks only."""

    def __init__(self, engine: Engine, store_change: Callable[[Served, Record, Json, Json, RequestContext], Record]):
        self._engine = engine
        self._store_change = store_change

    async def delete(
        self, entry: Served, name: str, options: DeleteOptions, ctx: RequestContext, *, named: bool = True
    ) -> tuple[Record, bool]:
        """Delete the object or mark it as being deleted. Returns the object and whether it was removed. Not `named`: it
        is one of a collection that is deleted as a whole."""
        engine, ctx = self._engine, replace(ctx, options=options.shown())
        for _ in range(_MOST_TRIES):
            record = engine.find(entry, ctx.namespace, name)
            old = engine.decode(entry, record)
            await self._admit(entry, old, ctx, named=named)
            if engine.is_current(entry, record):
                return self._delete(entry, record, old, options, ctx)
        resource = entry.resource
        raise conflict(group=resource.group, plural=resource.plural, name=name, message=MODIFIED)

    async def _admit(self, entry: Served, old: Json, ctx: RequestContext, *, named: bool) -> None:
        name = old["metadata"]["name"]
        if entry.resource == NAMESPACES and name in namespaces.IMMORTAL:
            raise forbidden(group="", plural="namespaces", name=name, message="this namespace may not be deleted")
        await self._engine.mutate("DELETE", entry, None, old, ctx, named=named)
        await self._engine.validate("DELETE", entry, None, old, ctx, named=named)

    def _delete(
        self, entry: Served, record: Record, old: Json, options: DeleteOptions, ctx: RequestContext
    ) -> tuple[Record, bool]:
        engine = self._engine
        self._check_preconditions(entry, record, options)
        obj = engine.decode(entry, record)
        metadata = obj["metadata"]
        if entry.resource == CRDS:
            definitions.begin_delete(obj, ctx.now)
            return self._store_change(entry, record, old, obj, ctx), False
        if entry.resource == NAMESPACES:
            namespaces.begin_delete(obj, ctx.now)
            self._set_finalizers(entry, metadata, options)
            return self._store_change(entry, record, old, obj, ctx), False
        graceful = self._apply_grace(entry, obj, options, ctx.now)
        self._set_finalizers(entry, metadata, options)
        if graceful or metadata.get("finalizers"):
            if not graceful:
                _mark(metadata, ctx.now)
            return self._store_change(entry, record, old, obj, ctx), False
        if ctx.dry_run:
            return record, True
        if entry.grace_period is None:
            return engine.remove(entry, record), True
        _mark(metadata, ctx.now)
        shown = msgspec.json.encode(engine.stored_form(entry, obj))
        return msgspec.structs.replace(engine.remove(entry, record), body=shown), True

    @staticmethod
    def _check_preconditions(entry: Served, record: Record, options: DeleteOptions) -> None:
        def refused(message: str) -> StatusError:
            resource = entry.resource
            return conflict(group=resource.group, plural=resource.kind, name=record.name, message=message)

        if options.uid is not None and options.uid != record.uid:
            raise refused(
                f"the UID in the precondition ({options.uid}) does not match the UID in record ({record.uid}). "
                "The object might have been deleted and then recreated"
            )
        if options.resource_version is not None and options.resource_version != str(record.version):
            raise refused(
                f"the ResourceVersion in the precondition ({options.resource_version}) does not match the "
                f"ResourceVersion in record ({record.version}). The object might have been modified"
            )

    @staticmethod
    def _apply_grace(entry: Served, obj: Json, options: DeleteOptions, now: datetime) -> bool:
        """Set or shorten the grace period of a kind that has one (pods). Returns whether the object stays during it."""
        if entry.grace_period is None:
            return False
        metadata = obj["metadata"]
        grace = entry.grace_period(obj, options.grace_seconds)
        if grace is None:
            return False
        if "deletionTimestamp" in metadata:
            current = metadata.get("deletionGracePeriodSeconds") or 0
            if options.grace_seconds is None or grace >= current:
                # A second delete may shorten the grace period, never extend it.
                return bool(current)
            left = grace - current  # below zero: it ends earlier
            metadata["deletionTimestamp"] = timestamp(max(now, _after(_parse(metadata["deletionTimestamp"]), left)))
            metadata["deletionGracePeriodSeconds"] = grace
            return grace > 0
        if grace <= 0:
            return False
        metadata["deletionTimestamp"] = timestamp(_after(now, grace))
        metadata["deletionGracePeriodSeconds"] = grace
        if "generation" in metadata:
            metadata["generation"] += 1
        return True

    @staticmethod
    def _set_finalizers(entry: Served, metadata: Json, options: DeleteOptions) -> None:
        """Store the propagation policy as a finalizer, until the garbage collector has processed it."""
        finalizers = list(metadata.get("finalizers", ()))
        policy = options.propagation
        if not policy:
            kept = [name for name in finalizers if name in (ORPHAN, FOREGROUND)]
            policy = {ORPHAN: "Orphan", FOREGROUND: "Foreground"}[kept[0]] if kept else entry.default_propagation
        wanted = {"Orphan": ORPHAN, "Foreground": FOREGROUND}.get(policy)
        result = [name for name in finalizers if name not in (ORPHAN, FOREGROUND) or name == wanted]
        if wanted and wanted not in result:
            result.append(wanted)
        if result:
            metadata["finalizers"] = result
        else:
            metadata.pop("finalizers", None)


def _after(moment: datetime, seconds: int) -> datetime:
    """The time so many seconds later, or the latest valid one."""
    try:
        return min(moment + timedelta(seconds=seconds), _LAST_MOMENT)
    except OverflowError:
        return _LAST_MOMENT if seconds > 0 else moment


def _mark(metadata: Json, now: datetime) -> None:
    if "deletionGracePeriodSeconds" not in metadata and "generation" in metadata:
        metadata["generation"] += 1
    stamp = timestamp(now)
    if "deletionTimestamp" not in metadata or metadata["deletionTimestamp"] > stamp:
        metadata["deletionTimestamp"] = stamp
    metadata["deletionGracePeriodSeconds"] = 0


def _parse(stamp: str) -> datetime:
    return datetime.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
