"""Events, which two API groups serve: stored as core events, converted for events.k8s.io.

Source: kubernetes `pkg/apis/events/v1/conversion.go`, `pkg/apis/core/validation/events.go`, the event printer.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from vcbatch.api import field_errors, name_rules
from vcbatch.api.resources import EVENTS, Resource
from vcbatch.local.apiserver.apierrors import FieldError
from vcbatch.local.apiserver.kinds.strategy import BuiltIn
from vcbatch.local.apiserver.registry import Json, RequestContext, Served
from vcbatch.local.apiserver.tables import UNKNOWN, column, dig, name_cell, since

NEW_EVENTS = Resource(group="events.k8s.io", version="v1", plural="events", kind="Event")

_RENAMED = (
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
)
"""Field of a core event, field of an events.k8s.io event."""

_LONGEST_NOTE = 1024
_LONGEST_WORD = 128
_LEAST_OF_A_SERIES = 2
_TYPES = ("Normal", "Warning")


def to_core(event: Json) -> Json:
    """A core event from one of events.k8s.io."""
    return _renamed(event, {new: old for old, new in _RENAMED}, EVENTS.api_version)


def from_core(event: Json) -> Json:
    """An events.k8s.io event from a core one."""
    return _renamed(event, dict(_RENAMED), NEW_EVENTS.api_version)


def _renamed(event: Json, words: dict[str, str], api_version: str) -> Json:
    converted = {words.get(key, key): value for key, value in event.items()}
    converted["apiVersion"] = api_version
    return converted


def _as_core(event: Json) -> Json:
    return to_core(event) if "regarding" in event or event.get("apiVersion") == NEW_EVENTS.api_version else event


def _core_errors(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    """Namespaces must agree; an event about a cluster-scoped object must be in `default`."""
    namespace = dig(obj, "metadata", "namespace") or ""
    about = dig(obj, "involvedObject", "namespace") or ""
    found: list[FieldError] = []
    new = bool(obj.get("eventTime"))
    fits = (
        about or namespace in ("default", "kube-system")
        if new
        else about == namespace or (not about and namespace in ("", "default"))
    )
    if not fits:
        found.append(field_errors.invalid("involvedObject.namespace", about, "does not match event.namespace"))
    return found + (_reported_errors(obj) if new else [])


def _reported_errors(obj: Json) -> list[FieldError]:
    """Errors of the fields that an event of events.k8s.io requires, whichever group it is written through."""
    component = "reportingController" if "reportingController" in obj else "reportingComponent"
    found: list[FieldError] = []
    reporter = obj.get("reportingController") or obj.get("reportingComponent") or ""
    if not reporter:
        found.append(field_errors.required(component))
    found += field_errors.invalid_each(component, reporter, name_rules.qualified_name(reporter))
    for key in ("reportingInstance", "action", "reason"):
        value = obj.get(key) or ""
        if not value:
            found.append(field_errors.required(key))
        elif len(value) > _LONGEST_WORD:
            found.append(field_errors.invalid(key, "", f"can have at most {_LONGEST_WORD} characters"))
    if len(obj.get("message") or "") > _LONGEST_NOTE:
        found.append(field_errors.invalid("message", "", f"can have at most {_LONGEST_NOTE} characters"))
    return found


def _new_errors(obj: Json, old: Json | None, ctx: RequestContext) -> list[FieldError]:
    core = {**_as_core(obj), "reportingController": obj.get("reportingController")}
    found = _core_errors(core, old, ctx)
    if old is None or obj.get("series") != old.get("series"):
        found += _series_errors(obj.get("series"))
    if old is not None:
        return found + _frozen_errors(core, _as_core(old))
    if not obj.get("eventTime"):
        found.append(field_errors.required("eventTime"))
    if obj.get("type") not in _TYPES:
        found.append(field_errors.invalid("type", "", "has invalid value: " + str(obj.get("type") or "")))
    unwanted = ("firstTimestamp", "lastTimestamp", "count", "source")
    return found + [field_errors.invalid(key, "", "needs to be unset") for key in unwanted if core.get(key)]


def _series_errors(series: Json | None) -> list[FieldError]:
    if series is None:
        return []
    found: list[FieldError] = []
    if series.get("count", 0) < _LEAST_OF_A_SERIES:
        found.append(field_errors.invalid("series.count", "", f"should be at least {_LEAST_OF_A_SERIES}"))
    if not series.get("lastObservedTime"):
        found.append(field_errors.required("series.lastObservedTime"))
    return found


_FROZEN = ("involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "type",
           "eventTime", "action", "related", "reportingComponent", "reportingInstance")  # fmt: skip


def _zero(value: Any) -> Any:
    """The value that a message shows for a removed field."""
    return "" if isinstance(value, str) else None


def _frozen_errors(event: Json, old: Json) -> list[FieldError]:
    """Errors of changed fields that events.k8s.io makes immutable. Kubernetes checks the reason twice."""
    names = {"reportingComponent": "reportingController"}
    changed = [key for key in (*_FROZEN, "reason") if (event.get(key) or None) != (old.get(key) or None)]
    return [
        field_errors.invalid(names.get(key, key), event.get(key) or _zero(old.get(key)), field_errors.IMMUTABLE)
        for key in changed
    ]


def _first_seen(event: Json, now: datetime) -> str:
    event = _as_core(event)
    return since(event.get("firstTimestamp") or event.get("eventTime"), now)


def _last_seen(event: Json, now: datetime) -> str:
    core = _as_core(event)
    observed = dig(core, "series", "lastObservedTime")
    shown = since(observed or core.get("lastTimestamp"), now)
    return _first_seen(event, now) if shown == UNKNOWN else shown


def _object(event: Json, _now: datetime) -> str:
    about = _as_core(event).get("involvedObject") or {}
    kind = str(about.get("kind", "")).lower()
    return f"{kind}/{about['name']}" if about.get("name") else kind


def _source(event: Json, _now: datetime) -> str:
    core = _as_core(event)
    source = core.get("source") or {}
    parts = [source.get("component") or core.get("reportingComponent") or ""]
    host = source.get("host") or core.get("reportingInstance")
    if host:
        parts.append(host)
    return ", ".join(parts)


def _count(event: Json, _now: datetime) -> int:
    core = _as_core(event)
    # Events of events.k8s.io that happened once have no count.
    return dig(core, "series", "count") or core.get("count") or 1


def _core(*path: str) -> Any:
    return lambda event, _now: dig(_as_core(event), *path) or ""


_COLUMNS = (
    column("Last Seen", _last_seen),
    column("Type", _core("type")),
    column("Reason", _core("reason")),
    column("Object", _object),
    column("Subobject", _core("involvedObject", "fieldPath"), wide=True),
    column("Source", _source, wide=True),
    column("Message", lambda event, _now: str(_as_core(event).get("message") or "").strip()),
    column("First Seen", _first_seen, wide=True),
    column("Count", _count, wide=True),
    column("Name", name_cell, wide=True, text_format="name"),
)
_ABOUT = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


def _selected(*, about: str, component: str) -> Any:
    def values(event: Json) -> dict[str, str]:
        core = _as_core(event)
        found = {f"{about}.{key}": dig(core, "involvedObject", key) or "" for key in _ABOUT}
        found["reason"], found["type"] = core.get("reason") or "", core.get("type") or ""
        found[component] = core.get("reportingComponent") or ""
        found["source"] = dig(core, "source", "component") or core.get("reportingComponent") or ""
        return found

    return values


def _fields(about: str, component: str) -> tuple[str, ...]:
    return (*(f"{about}.{key}" for key in _ABOUT), "reason", component, "source", "type")


def served() -> list[Served]:
    return [
        Served(
            resource=EVENTS,
            singular="event",
            short_names=("ev",),
            strategy=BuiltIn(type_name="core/v1.Event", check=_core_errors),
            columns=_COLUMNS,
            selectable_fields=_fields("involvedObject", "reportingComponent"),
            field_values=_selected(about="involvedObject", component="reportingComponent"),
        ),
        Served(
            resource=NEW_EVENTS,
            singular="event",
            short_names=("ev",),
            strategy=BuiltIn(type_name="events/v1.Event", check=_new_errors),
            columns=_COLUMNS,
            selectable_fields=_fields("regarding", "reportingController"),
            field_values=_selected(about="regarding", component="reportingController"),
            storage=EVENTS,
            to_storage=to_core,
            from_storage=from_core,
        ),
    ]
