"""The strategy of a built-in kind: functions for its special rules, called in one order.

Source of the order: Kubernetes' `registry/generic` (decode, default, prepare, validate).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from vcbatch.local.apiserver.apierrors import FieldError
from vcbatch.local.apiserver.registry import Json, RequestContext
from vcbatch.local.apiserver.schema.builtin import decode

Prepare = Callable[[Json, Json | None, RequestContext], None]
"""(object, stored object or None, request): edits the object in place."""

Check = Callable[[Json, Json | None, RequestContext], list[FieldError]]
"""(object, stored object or None, request): returns the errors."""


def _no_change(_obj: Json, _old: Json | None, _ctx: RequestContext) -> None:
    return None


def _admit_all(_obj: Json, _ctx: RequestContext) -> None:
    return None


def _no_errors(_obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    return []


def _no_warnings(_obj: Json) -> Iterable[str]:
    return ()


def _no_status() -> Json:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltIn:
    """A `Strategy` made of functions. All of them must be idempotent."""

    type_name: str
    """The Go type of the body, such as `Pod`, or with its group where several have it."""
    defaults: Prepare = _no_change
    """Sets the fields that the client omitted, for creates, updates and writes of the status."""
    prepare: Prepare = _no_change
    """Sets fields as admission and the kind's strategy do, on a create or an update of the main resource."""
    check: Check = _no_errors
    """Errors of the object itself, on creates and updates of the main resource."""
    check_update: Check = _no_errors
    """Further errors of a change of the main resource; runs before or after `check` as `update_first` says."""
    check_status: Check = _no_errors
    """Errors of a write of the status."""
    admit: Callable[[Json, RequestContext], None] = _admit_all
    """The last step of admission on a create; raises `StatusError` to refuse it."""
    warn: Callable[[Json], Iterable[str]] = _no_warnings
    """Warnings for an accepted object."""
    update_first: bool = True
    """Whether the errors of the change come before those of the object."""
    checks_whole_on_update: bool = True
    has_status: bool = False
    initial_status: Callable[[], Json] = _no_status
    status_fields: Sequence[str] = ("status",)
    """The fields that a write of the status may change; all others, except metadata, stay as stored."""
    generation: bool = False
    generation_counts: bool = True
    """Whether the generation counts changes, or stays at 1."""
    annotations_generate: bool = False
    """Whether a change of annotations counts as a change of the desired state, as it does for a Deployment."""

    def fields(self, obj: Json, ctx: RequestContext) -> list[str]:
        return decode(self.type_name, obj)

    def default(self, obj: Json, old: Json | None, ctx: RequestContext) -> None:
        if ctx.subresource == "status" and old is not None:
            self._keep_all_but_status(obj, old)
            self.defaults(obj, old, ctx)
            return
        if self.has_status:
            self._keep_status(obj, old)
        self.defaults(obj, old, ctx)
        self.prepare(obj, old, ctx)

    def validate(self, obj: Json, old: Json | None, ctx: RequestContext) -> list[FieldError]:
        if ctx.subresource == "status":
            return self.check_status(obj, old, ctx)
        if old is None:
            found = self.check(obj, None, ctx)
            if not found:
                self._warn(obj, ctx)
            return found
        changed = self.check_update(obj, old, ctx)
        if self.checks_whole_on_update:
            whole = self.check(obj, old, ctx)
            changed = changed + whole if self.update_first else whole + changed
        if not changed:
            self._warn(obj, ctx)
        return changed

    def admit_create(self, obj: Json, ctx: RequestContext) -> None:
        self.admit(obj, ctx)

    def _warn(self, obj: Json, ctx: RequestContext) -> None:
        known = set(ctx.warnings)
        ctx.warnings.extend(text for text in self.warn(obj) if text not in known)

    def changes_generation(self, obj: Json, old: Json | None) -> bool:
        if not self.generation:
            return False
        if old is None or (self.generation_counts and _desired(obj) != _desired(old)):
            return True
        return self.annotations_generate and _annotations(obj) != _annotations(old)

    def _keep_status(self, obj: Json, old: Json | None) -> None:
        kept = self.initial_status() if old is None else copy.deepcopy(old.get("status") or {})
        obj["status"] = kept

    def _keep_all_but_status(self, obj: Json, old: Json) -> None:
        writable = {*self.status_fields, "metadata", "apiVersion", "kind"}
        for key in [key for key in obj if key not in writable and key not in old]:
            del obj[key]
        for key, value in old.items():
            if key not in writable:
                obj[key] = copy.deepcopy(value)
        obj.setdefault("status", {})


def _desired(obj: Json) -> Json:
    """The desired state: the `spec`, or for a kind without one, all fields but type, metadata and status."""
    if "spec" in obj:
        return obj["spec"]
    return {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata", "status")}


def _annotations(obj: Json) -> Json:
    return (obj.get("metadata") or {}).get("annotations") or {}
