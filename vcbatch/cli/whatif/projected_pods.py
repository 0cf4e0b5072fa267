"""The pods that jobs will create once their gangs are admitted, for a snapshot, so that a simulation can place them.
Until then no pod of such a job exists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from vcbatch.api.names import GROUP_NAME, TASK_SPEC
from vcbatch.api.phases import JobPhase
from vcbatch.api.pod import Pod
from vcbatch.api.resources import JOBS
from vcbatch.api.scheduling import PodGroupView, PriorityClassView
from vcbatch.cli.base.output import CliError, note
from vcbatch.cli.files.job_files import members_of
from vcbatch.cli.whatif.world_files import prioritised
from vcbatch.interfaces.api import Api, ApiError

Json = Mapping[str, Any]


async def projected_pods(api: Api, objects: Sequence[msgspec.Struct]) -> list[Pod]:
    """The pods of jobs whose PodGroup is among the objects, isn't admitted and has no pods yet. Without the permission
    to list jobs there are none, which is reported. Raises `ApiError` where the server doesn't respond."""
    gangs = {
        obj.metadata.key for obj in objects if isinstance(obj, PodGroupView) and obj.status.phase in ("", "Pending")
    }
    gangs -= {gang for obj in objects if isinstance(obj, Pod) and (gang := _gang(obj))}
    if not gangs:
        return []
    try:
        jobs = (await api.list(JOBS)).items
    except ApiError as error:
        if error.code not in (403, 404):
            raise
        note(f"omitted: pods that jobs haven't created yet ({error.message})")
        return []
    classes: list[Json] = [msgspec.to_builtins(obj) for obj in objects if isinstance(obj, PriorityClassView)]
    return [pod for job in jobs for pod in _members(job, gangs, classes)]


def _gang(pod: Pod) -> str:
    name = (pod.metadata.annotations or {}).get(GROUP_NAME, "")
    return f"{pod.metadata.namespace}/{name}" if name else ""


def _members(job: Json, gangs: set[str], classes: Sequence[Json]) -> list[Pod]:
    """The pods of the job that don't wait for other tasks of it."""
    phase = ((job.get("status") or {}).get("state") or {}).get("phase")
    if phase not in (None, "", JobPhase.PENDING):
        return []
    values = {c["metadata"]["name"]: c["value"] for c in classes}
    try:
        group, bodies = members_of(job, values, source="snapshot")
    except CliError as error:
        note(f"omitted: pods of {error}")
        return []
    meta = group["metadata"]
    if f"{meta['namespace']}/{meta['name']}" not in gangs:
        return []
    later = {task.get("name") for task in job["spec"].get("tasks") or () if task.get("dependsOn")}
    found: list[Pod] = []
    for body in bodies:
        if body["metadata"]["labels"].get(TASK_SPEC) in later:
            continue
        own = {"uid": f"to-come/{meta['namespace']}/{body['metadata']['name']}", "namespace": meta["namespace"]}
        pod = {**body, "metadata": {**body["metadata"], **own, "creationTimestamp": meta.get("creationTimestamp")}}
        found.append(msgspec.convert(prioritised(pod, classes), Pod))
    return found
