"""Jobs in a history of `lives`, with the actions of a scheduler and a kubelet for them."""

from __future__ import annotations

from typing import Any

from tests.support.job_world import job_object, task
from tests.support.lives import NAMESPACE, Stage
from vcbatch.api.defaults import default_job
from vcbatch.api.resources import COMMANDS, JOBS, PODGROUPS, PODS, Resource

Json = dict[str, Any]


def submit(stage: Stage, name: str = "j", **spec: Any) -> Json:
    """Create a job of one pod, with the defaults of admission."""
    return stage.put(JOBS, name, spec=job_spec(**spec))


def job_spec(**spec: Any) -> Json:
    return default_job(job_object(tasks=[task("w", 1)], **spec))["spec"]


async def run_pods(stage: Stage) -> None:
    """Admit every gang and run every pod that is created for it."""
    await stage.rest()
    for name in _with_phase(stage, PODGROUPS, "Pending"):
        await stage.change(PODGROUPS, name, {"status": {"phase": "Inqueue"}})
    await stage.rest()
    for name in _with_phase(stage, PODS, "Pending"):
        await stage.change(PODS, name, {"status": {"phase": "Running"}})
    for name in _with_phase(stage, PODGROUPS, "Inqueue"):
        await stage.change(PODGROUPS, name, {"status": {"phase": "Running"}})
    await stage.rest()


async def end_pods(stage: Stage, job: str, phase: str = "Succeeded") -> None:
    """End all pods of the job in this phase."""
    for name in stage.names(PODS):
        if name.startswith(f"{job}-w-"):
            await stage.change(PODS, name, {"status": {"phase": phase}})
    await stage.rest()


def _with_phase(stage: Stage, resource: Resource, phase: str) -> list[str]:
    return [
        found["metadata"]["name"]
        for found in stage.server.all(resource)
        if found.get("status", {}).get("phase", "Pending") == phase
    ]


def phase_of(stage: Stage, name: str = "j") -> str:
    return stage.get(JOBS, name)["status"]["state"]["phase"]


def ask(stage: Stage, resource: Resource, name: str, action: str, *, uid: str | None = None) -> None:
    """Create a Command without an owner, as users do."""
    command = f"{name}-{action.lower()}"
    target = {"apiVersion": resource.api_version, "kind": resource.kind, "name": name}
    if uid is None:
        uid = stage.server.objects[resource, NAMESPACE if resource.namespaced else "", name]["metadata"]["uid"]
    stage.put(COMMANDS, command, action=action, target={**target, "uid": uid})
