"""The scale subresource of custom resources: an autoscaling/v1 Scale over three paths of the object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from vcbatch.local.apiserver.apierrors import MODIFIED, bad_request, conflict, invalid, invalid_value
from vcbatch.local.apiserver.engine import Engine
from vcbatch.local.apiserver.gojson import kind_of
from vcbatch.local.apiserver.patch.transform import Patch
from vcbatch.local.apiserver.record import Record
from vcbatch.local.apiserver.registry import RequestContext, Served
from vcbatch.local.apiserver.tables import selector_text
from vcbatch.local.apiserver.writing import Made, Writer

Json = dict[str, Any]

_MOST_TRIES = 5


def _path(entry: Served, name: str) -> list[str]:
    text = (entry.scale or {}).get(name, "")
    return [part for part in text.split(".") if part]


def _at(obj: Json, path: list[str]) -> Any:
    node: Any = obj
    for part in path:
        node = node.get(part) if isinstance(node, dict) else None
    return node


def _selector_text(selector: Json) -> str:
    """The selector as text. Built-in kinds have a selector object, or (ReplicationController) a map of labels."""
    known = "matchLabels" in selector or "matchExpressions" in selector
    return selector_text(selector if known else {"matchLabels": selector})


def read_scale(entry: Served, obj: Json) -> Json:
    """The Scale of an object."""
    metadata = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    replicas = _at(obj, _path(entry, "specReplicasPath")) or 0
    status: Json = {"replicas": _at(obj, _path(entry, "statusReplicasPath")) or 0}
    selector = _at(obj, _path(entry, "labelSelectorPath"))
    if selector:
        status["selector"] = selector if isinstance(selector, str) else _selector_text(selector)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


async def write_scale(
    engine: Engine,
    writer: Writer,
    entry: Served,
    name: str,
    *,
    patch: Patch | None,
    body: Json | None,
    ctx: RequestContext,
) -> Record:
    """Set the replicas of a Scale (`body`), or of a patch of the present one. Admission gets the Scale."""
    of_object = replace(ctx, subresource="", unadmitted=True)
    for _ in range(_MOST_TRIES):
        record = engine.find(entry, ctx.namespace, name)
        present = read_scale(entry, engine.decode(entry, record))
        scale = body if body is not None else {}
        if patch is not None:
            scale, _ = patch.apply(read_scale(entry, engine.decode(entry, record)), entry)
        _replicas(entry, name, record, scale)
        metadata: Json = {"name": name, "namespace": ctx.namespace, **(scale.get("metadata") or {})}
        shown = {"kind": present["kind"], "apiVersion": present["apiVersion"], "status": {"replicas": 0}, **scale}
        changed = await engine.mutate("UPDATE", entry, {**shown, "metadata": metadata}, present, ctx)
        replicas = _replicas(entry, name, record, changed or scale)
        wanted = {**present, "spec": {"replicas": replicas} if replicas else {}}
        await engine.validate("UPDATE", entry, wanted, present, ctx)
        if engine.is_current(entry, record):
            return await writer.replace(entry, name, _scaled(engine, entry, replicas), of_object)
    raise conflict(group=entry.resource.group, plural=entry.resource.plural, name=name, message=MODIFIED)


def _check_types(scale: Json) -> None:
    """400 where a field that is read has the wrong type."""
    for path, wanted, title in _FIELDS:
        value = _at(scale, path.split("."))
        fits = isinstance(value, wanted) and not isinstance(value, bool)
        if value is not None and not (fits and (not isinstance(value, int) or abs(value) < 2**31)):
            given = f"number {value:.6g}" if isinstance(value, int) and fits else kind_of(value)
            raise bad_request(
                f'Scale in version "v1" cannot be handled as a Scale: json: cannot unmarshal {given} into Go struct '
                f"field Scale.{path} of type {title}"
            )


_FIELDS: tuple[tuple[str, type, str], ...] = (
    ("metadata", dict, "v1.ObjectMeta"),
    ("metadata.name", str, "string"),
    ("metadata.namespace", str, "string"),
    ("metadata.uid", str, "types.UID"),
    ("metadata.resourceVersion", str, "string"),
    ("spec", dict, "v1.ScaleSpec"),
    ("spec.replicas", int, "int32"),
    ("status", dict, "v1.ScaleStatus"),
)
"""The fields that are read from a client's Scale."""


def _replicas(entry: Served, name: str, record: Record, scale: Json) -> int:
    """The replicas of the Scale. Raises `StatusError` for invalid ones."""
    _check_types(scale)
    replicas: int = (scale.get("spec") or {}).get("replicas") or 0
    if replicas < 0:
        errors = [invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")]
        raise invalid(group="autoscaling", kind="Scale", name=name, errors=errors)
    version = (scale.get("metadata") or {}).get("resourceVersion")
    if version and version != str(record.version):
        raise conflict(group=entry.resource.group, plural=entry.resource.plural, name=name, message=MODIFIED)
    return replicas


def _scaled(engine: Engine, entry: Served, replicas: int) -> Callable[[Record, RequestContext], Made]:
    def make(record: Record, _ctx: RequestContext) -> Made:
        obj = engine.decode(entry, record)
        node = obj
        *parents, last = _path(entry, "specReplicasPath")
        for part in parents:
            node = node.setdefault(part, {})
        node[last] = replicas
        return obj, None

    return make
