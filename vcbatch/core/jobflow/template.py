"""The job of an entry: its JobTemplate, with the flow's changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from vcbatch.api import names
from vcbatch.api.jobflow import Flow, JobFlow
from vcbatch.api.loose import part
from vcbatch.api.model import Json, owner_of
from vcbatch.api.resources import JOBFLOWS, JOBS

_KEYS: Final[Mapping[str, Sequence[str]]] = {
    "tasks": ("name",),
    "containers": ("name",),
    "initContainers": ("name",),
    "env": ("name",),
    "volumes": ("name", "mountPath"),  # of a pod, and of a job
    "volumeMounts": ("mountPath",),
}
"""Lists whose entries are identified by the first of these fields that they have; any other list is replaced."""


def job_body(flow: JobFlow, entry: Flow, template: Json, *, name: str) -> Json:
    """The job as Volcano creates it, with `patch.jobSpec` applied, which Volcano stores and ignores."""
    marks = {
        names.CREATED_BY_JOB_FLOW: flow.name,
        names.CREATED_BY_JOB_TEMPLATE: entry.name,
    }
    spec = part(template, "spec")
    if entry.patch is not None and entry.patch.job_spec is not None:
        spec = patched(spec, entry.patch.job_spec.dump())
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {
            "name": name,
            "namespace": flow.namespace,
            "labels": {key: names.created_by_label(flow.namespace, value) for key, value in marks.items()},
            "annotations": {key: names.created_by(flow.namespace, value) for key, value in marks.items()},
            "ownerReferences": [owner_of(flow, JOBFLOWS)],
        },
        "spec": spec,
    }


def version_of(template: Json) -> str:
    """The identity of the JobTemplate and of its present spec."""
    metadata = part(template, "metadata")
    return f"{metadata.get('uid', '')}/{metadata.get('generation', 0)}"


def patched(base: Json, patch: Mapping[str, Any]) -> Json:
    """`base` with the fields of `patch`: objects are merged by field, the lists of `_KEYS` by entry with new entries at
    the end, and everything else is replaced. Neither argument is changed."""
    result = dict(base)
    for key, value in patch.items():
        before = base.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            result[key] = patched(cast(Json, before), cast(Json, value))
        elif key in _KEYS and isinstance(value, list) and isinstance(before, list):
            result[key] = _entries(cast("list[Any]", before), cast("list[Any]", value), _KEYS[key])
        else:
            result[key] = value
    return result


def _entries(base: list[Any], patch: list[Any], keys: Sequence[str]) -> list[Any]:
    changes = {name: cast(Json, entry) for entry in patch if (name := _name(entry, keys))}
    known: set[str] = set()
    result: list[Any] = []
    for entry in base:
        name = _name(entry, keys)
        if name in changes and name not in known:
            result.append(patched(cast(Json, entry), changes[name]))
            known.add(name)
        else:
            result.append(entry)
    return [*result, *(entry for entry in patch if _name(entry, keys) not in known)]


def _name(entry: Any, keys: Sequence[str]) -> str:
    """The value of the entry's key; empty for an entry without one, which matches no other."""
    given = (cast(Json, entry).get(key) for key in keys) if isinstance(entry, dict) else ()
    return next((value for value in given if isinstance(value, str) and value), "")
