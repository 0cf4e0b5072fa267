"""Which of the objects that the pods of a job refer to don't exist, read from the server with the caller's
permissions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from vcbatch.api import names
from vcbatch.api.loose import Json, listed, part
from vcbatch.api.phases import JobPhase
from vcbatch.api.pod_references import Reference, references_of
from vcbatch.api.resources import CONFIGMAPS, PERSISTENTVOLUMECLAIMS, SECRETS
from vcbatch.core.waiting import phase_of
from vcbatch.interfaces.api import Api, ApiError, get_or_none

_PLUGINS: Final = frozenset(names.Plugin)
_MOST: Final = 50
"""At most this many objects are read."""


async def missing_of(api: Api, job: Json) -> tuple[Sequence[tuple[str, str]], Sequence[str]]:
    """Kind and name of each missing object, and the tasks whose pods refer to it; empty for a job that isn't Pending.
    Objects that may not be read, or whose read fails, aren't included, nor are those that the job or its plugins
    create."""
    if phase_of(job) is not JobPhase.PENDING:
        return (), ()
    namespace = str(part(job, "metadata").get("namespace", ""))
    absent: dict[Reference, bool] = {}
    tasks: list[str] = []
    for name, wanted in _wanted(job).items():
        for reference in wanted:
            if reference not in absent and len(absent) < _MOST:
                absent[reference] = await _is_absent(api, reference, namespace)
        if any(absent.get(reference) for reference in wanted):
            tasks.append(name)
    return [(one.resource.kind, one.name) for one, missing in absent.items() if missing], tasks


def _wanted(job: Json) -> dict[str, list[Reference]]:
    """The references by task, for tasks whose pods have to start now."""
    spec, started = part(job, "spec"), part(part(job, "status"), "taskStatusCount")
    own = _own(job)
    found: dict[str, list[Reference]] = {}
    for item in listed(spec, "tasks"):
        task = cast(Json, item) if isinstance(item, dict) else {}
        name, replicas = str(task.get("name", "")), task.get("replicas")
        counts = part(part(started, name), "phase")
        begun = sum(counts.get(phase) or 0 for phase in ("Running", "Succeeded", "Failed"))
        if part(task, "dependsOn") or not isinstance(replicas, int) or begun >= replicas:
            continue
        wanted = references_of(
            part(part(task, "template"), "spec"), priority_class=str(spec.get("priorityClassName") or "")
        )
        found[name] = [one for one in wanted if one not in own and (one.resource not in own)]
    return found


def _own(job: Json) -> set[object]:
    """The objects that the job itself creates, or names in `spec.volumes`. It isn't known which objects a plugin that
    isn't one of vcbatch's creates: with such a plugin no ConfigMap and no Secret is checked."""
    name, spec = str(part(job, "metadata").get("name", "")), part(job, "spec")
    plugins = part(spec, "plugins")
    own: set[object] = set()
    if plugins:
        own |= {Reference(CONFIGMAPS, names.svc_config_map(name)), Reference(SECRETS, names.ssh_secret(name))}
    if plugins.keys() - _PLUGINS:
        own |= {CONFIGMAPS, SECRETS}
    for volume in listed(spec, "volumes"):
        if isinstance(volume, dict):
            own.add(Reference(PERSISTENTVOLUMECLAIMS, str(cast(Json, volume).get("volumeClaimName") or "")))
    return own


async def _is_absent(api: Api, reference: Reference, namespace: str) -> bool:
    resource, name = reference
    try:
        return await get_or_none(api, resource, name, namespace=namespace if resource.namespaced else None) is None
    except ApiError:
        return False
