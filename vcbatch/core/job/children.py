"""The objects that plugins keep for a job besides its pods: creation, repair and deletion."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from vcbatch.api import names
from vcbatch.api.job import Job
from vcbatch.api.model import owner_of
from vcbatch.api.resources import JOBS
from vcbatch.core.job.plan import plan_of
from vcbatch.core.job.plugins import Child, PluginSet, load
from vcbatch.core.job.view import ChildKey, JobView
from vcbatch.core.machine import Delete, Ensure, Json, ObjectRef


def wanted_children(job: Job) -> tuple[ChildKey, ...]:
    """The objects that the `JobView` of this job must contain where they exist, in the job's namespace."""
    if not job.spec.plugins:
        return ()
    plugins = load(plan_of(job))
    return tuple((child.resource, child.name) for child in plugins.children())


def ensures(view: JobView, plugins: PluginSet, *, blocked: Collection[ChildKey]) -> Iterator[Ensure]:
    """Create missing objects, and restore the plugins' fields of existing ones, except for those that are `blocked`. An
    object without a controller that has all the wanted contents is left as it is."""
    for child in plugins.children():
        stored = view.children.get((child.resource, child.name))
        if (child.resource, child.name) in blocked:
            continue
        if stored is None:
            yield Ensure(resource=child.resource, body=_body(view.job, child), keys=child.keys)
            continue
        update = {field: _patch(child, field, stored.get(field)) for field in child.owned}
        update = {field: patch for field, patch in update.items() if patch}
        if update:
            yield Ensure(resource=child.resource, body=_body(view.job, child), update=update, keys=child.keys)


def deletes(view: JobView, plugins: PluginSet) -> Iterator[Delete]:
    """Delete the existing ones, by UID, and only those that the job controls."""
    for child in plugins.children():
        stored = view.children.get((child.resource, child.name))
        metadata: Json = stored["metadata"] if stored is not None else {}
        if stored is not None and _owned(view.job, stored) and not metadata.get("deletionTimestamp"):
            yield Delete(
                ref=ObjectRef(
                    resource=child.resource,
                    namespace=view.job.namespace,
                    name=child.name,
                    uid=metadata["uid"],
                )
            )


def controlled_resources(plugins: PluginSet) -> dict[str, str]:
    """`status.controlledResources` of a job while its plugins are active. Volcano's hcclrank adds no entry."""
    return {names.plugin_resource_key(name): str(name) for name in plugins.plugins if name != names.Plugin.HCCLRANK}


def _body(job: Job, child: Child) -> Json:
    return {
        "apiVersion": child.resource.api_version,
        "kind": child.resource.kind,
        "metadata": {
            "name": child.name,
            "namespace": job.namespace,
            "ownerReferences": [owner_of(job, JOBS)],
        },
        **child.body,
    }


def _patch(child: Child, field: str, stored: Json | None) -> Json:
    """The merge patch from a stored flat map to the wanted one; keys generated at creation aren't changed."""
    have, wanted = stored or {}, child.body[field]
    changed: Json = {key: value for key, value in wanted.items() if have.get(key) != value}
    kept = {child.keys.private, *child.keys.public} if child.keys else set[str]()
    return changed | dict.fromkeys(have.keys() - wanted.keys() - kept)


def _owned(job: Job, stored: Json) -> bool:
    owners = stored.get("metadata", {}).get("ownerReferences") or ()
    return any(owner.get("uid") == job.uid and owner.get("controller") for owner in owners)
