"""What scenarios do to a cluster. The language is told in `player`."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tests.scenarios.conditions import BY_KIND, ScenarioFailed, named, place, target
from vcbatch.api.names import HOSTNAME_LABEL, VIRTUAL_NODE
from vcbatch.api.resources import (
    COMMANDS,
    CRONJOBS,
    JOBFLOWS,
    JOBS,
    JOBTEMPLATES,
    NODES,
    PODS,
    QUEUES,
    Resource,
)
from vcbatch.api.timestamps import format_time
from vcbatch.interfaces import ApiError, PatchKind

if TYPE_CHECKING:
    from tests.scenarios.player import World

Json = dict[str, Any]

_HOLD = "test.vcbatch.io/hold"
_OF_A_TASK = frozenset({"run", "pod", "labels", "annotations", "requests", "restart", "grace"})
_OF_A_NODE = frozenset({"name", "labels", "taints", "unschedulable"})
_TRIES = 100


@dataclass(slots=True)
class Owned:
    """What a scenario made outside of its namespace, to be removed afterwards."""

    scenario: str
    nodes: bool
    """Whether it has the nodes for itself."""
    made: list[tuple[Resource, str]] = field(default_factory=list[tuple[Resource, str]])

    def note(self, resource: Resource, name: str) -> None:
        """Raises `ScenarioFailed` for a name that could be another scenario's too."""
        if resource.namespaced or (resource == NODES and self.nodes):
            return
        if name != self.scenario and not name.startswith(f"{self.scenario}-"):
            raise ScenarioFailed(
                f"{resource.kind} {name} is seen by all that share the cluster: name it {self.scenario}-{name}"
            )
        self.made.append((resource, name))

    async def remove(self, world: World) -> None:
        """What makes jobs, the jobs of the namespace, and then what was made around it; queues go when they are closed
        and empty."""
        for resource in (CRONJOBS, JOBFLOWS, JOBS, PODS):
            for item in (await world.api.list(resource, namespace=world.namespace)).items:
                await _without_hold(resource, item, world)
                await _delete(resource, item["metadata"]["name"], world)
        for resource, name in reversed(self.made):
            await (_remove_queue(name, world) if resource == QUEUES else _delete(resource, name, world))


async def do(step: Json, world: World, owned: Owned) -> bool:
    """Do what the step says; False for one that isn't known here."""
    match step:
        case {"node": short, **rest} if not rest:
            await _apply(node(short, world.now()), world, owned)
        case {"job": body, **rest} if not rest:
            await _apply(job(body), world, owned)
        case {"cronJob": body, **rest} if not rest:
            await _apply(cron_job(body), world, owned)
        case {"jobTemplate": body, **rest} if not rest:
            await _apply(job_template(body), world, owned)
        case {"flow": body, **rest} if not rest:
            await _apply(flow(body), world, owned)
        case {"apply": objects, **rest} if not rest:
            for body in objects:
                await _apply(body, world, owned)
        case {"delete": text, **rest} if not rest:
            resource, name = await _found(text, world)
            await _done(step, world.api.delete(resource, name, namespace=place(resource, world)))
        case {"patch": text, "body": body, **rest} if not rest.keys() - {"subresource"}:
            await _done(step, _patch(text, body, world, subresource=rest.get("subresource", "")))
        case {"jsonpatch": text, "body": operations, **rest} if not rest:
            await _done(step, _patch(text, operations, world, kind=PatchKind.JSON))
        case {"refused": body, **rest} if not rest:
            await _refused(body, world, owned)
        case {"command": {"action": action, **about}, **rest} if not rest:
            await _command(about, action, world)
        case {"evict": text, **rest} if not rest:
            await _done(step, world.evict(target(text)[1]))
        case {"ends": text, "with": end, **rest} if not rest:
            _, name = await _found(text, world)
            await _done(step, _end(name, end, world))
        case {"hold": text, **rest} if not rest:
            await _done(step, _patch(text, {"metadata": {"finalizers": [_HOLD]}}, world))
        case {"release": text, **rest} if not rest:
            await _done(step, _patch(text, {"metadata": {"finalizers": None}}, world))
        case _:
            return await _to_node(step, world)
    return True


async def _to_node(step: Json, world: World) -> bool:
    match step:
        case {"cordon": name}:
            await _done(step, world.api.patch(NODES, name, {"spec": {"unschedulable": True}}))
        case {"uncordon": name}:
            await _done(step, world.api.patch(NODES, name, {"spec": {"unschedulable": None}}))
        case {"unready": name}:
            await _done(step, _set_ready(name, "False", world))
        case {"ready": name}:
            await _done(step, _set_ready(name, "True", world))
        case {"lose": name}:
            await _done(step, _lose(name, world))
        case _:
            return False
    return True


def job(short: Json) -> Json:
    """A Job written out."""
    short = copy.deepcopy(short)
    metadata = {key: short.pop(key) for key in ("name", "labels", "annotations") if key in short}
    tasks = [_task(name, task or {}) for name, task in short.pop("tasks").items()]
    body = {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": metadata}
    return {**body, "spec": {**short, "tasks": tasks}}


def cron_job(short: Json) -> Json:
    """A CronJob written out."""
    short = copy.deepcopy(short)
    made = job(short.pop("job"))
    template = {"metadata": made["metadata"], "spec": made["spec"]}
    body = {"apiVersion": CRONJOBS.api_version, "kind": CRONJOBS.kind, "metadata": {"name": short.pop("name")}}
    return {**body, "spec": {**short, "jobTemplate": template}}


def job_template(short: Json) -> Json:
    """A JobTemplate written out."""
    return {**job(short), "apiVersion": JOBTEMPLATES.api_version, "kind": JOBTEMPLATES.kind}


def flow(short: Json) -> Json:
    """A JobFlow written out."""
    short = copy.deepcopy(short)
    body = {"apiVersion": JOBFLOWS.api_version, "kind": JOBFLOWS.kind, "metadata": {"name": short.pop("name")}}
    flows = [_entry(name, about or {}) for name, about in short.pop("jobs").items()]
    return {**body, "spec": {**short, "flows": flows}}


def _entry(name: str, about: Json) -> Json:
    unknown = about.keys() - {"after", "probe", "patch"}
    if unknown:
        raise ScenarioFailed(f"a job of a flow has after, probe, patch; not {sorted(unknown)}")
    entry: Json = {"name": name}
    if "after" in about:
        entry["dependsOn"] = {"targets": about["after"]} | ({"probe": about["probe"]} if "probe" in about else {})
    if "patch" in about:
        entry["patch"] = {"jobSpec": about["patch"]}
    return entry


def node(short: Json, now: datetime) -> Json:
    """A Node written out: `name`, `labels`, `taints`, `unschedulable`, and how much it has of each resource."""
    short = copy.deepcopy(short)
    sizes = {"pods": "110", **{key: str(value) for key, value in short.items() if key not in _OF_A_NODE}}
    spec = {key: short[key] for key in ("taints", "unschedulable") if key in short}
    labels = {HOSTNAME_LABEL: short["name"], **short.get("labels", {})}
    body: Json = {"metadata": {"name": short["name"], "labels": labels}, "spec": spec}
    return _pretended({**body, "status": {"capacity": sizes, "allocatable": sizes}}, now)


def _pretended(body: Json, now: datetime) -> Json:
    """A Node that is ready, with the marks by which each backend knows that its pods only pretend to run."""
    reported = format_time(now)
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "it pretends"}
    metadata = {
        **body["metadata"],
        "labels": {**body["metadata"].get("labels", {}), VIRTUAL_NODE: "true"},
        "annotations": {**body["metadata"].get("annotations", {}), "kwok.x-k8s.io/node": "fake"},
    }
    conditions = [{**ready, "lastHeartbeatTime": reported, "lastTransitionTime": reported}]
    status = {"conditions": conditions, **body.get("status", {})}
    return {"apiVersion": NODES.api_version, "kind": NODES.kind, **body, "metadata": metadata, "status": status}


def _task(name: str, task: Json) -> Json:
    own = {key: task.pop(key) for key in _OF_A_TASK if key in task}
    container: Json = {"name": "main", "image": "img", "command": ["sh", "-c", own.get("run", "sleep 1000")]}
    if "requests" in own:
        container["resources"] = {"requests": own["requests"]}
    pod: Json = {
        "restartPolicy": own.get("restart", "Never"),
        "terminationGracePeriodSeconds": own.get("grace", 1),
        "containers": [container],
        **own.get("pod", {}),
    }
    template: Json = {"spec": pod}
    if metadata := {key: own[key] for key in ("labels", "annotations") if key in own}:
        template["metadata"] = metadata
    return {"name": name, "replicas": 1, **task, "template": template}


async def _done(step: Json, request: Any) -> None:
    """Send it; a refusal is a failure of the scenario."""
    try:
        await request
    except ApiError as error:
        raise ScenarioFailed(f"{step}: {error.message}") from None


async def _apply(body: Json, world: World, owned: Owned) -> None:
    resource = BY_KIND[body["apiVersion"], body["kind"]]
    name = body["metadata"].get("name", "")
    owned.note(resource, name)
    if resource == NODES:
        body = _pretended(body, world.now())
    try:
        await world.api.create(resource, body, namespace=place(resource, world))
    except ApiError as error:
        if not error.already_exists:
            raise ScenarioFailed(f"apply {body['kind']}/{name}: {error.message}") from None
        await _done({"apply": name}, world.api.patch(resource, name, body, namespace=place(resource, world)))


async def _patch(
    text: str, body: Any, world: World, *, subresource: str = "", kind: PatchKind = PatchKind.MERGE
) -> None:
    resource, name = await _found(text, world)
    namespace = place(resource, world)
    await world.api.patch(resource, name, body, namespace=namespace, subresource=subresource, kind=kind)


async def _found(text: str, world: World) -> tuple[Resource, str]:
    """The one that is meant, with the `*` of its name filled in."""
    resource, name = target(text)
    if "*" not in name:
        return resource, name
    there = [
        each["metadata"]["name"] for each in (await world.api.list(resource, namespace=place(resource, world))).items
    ]
    meant = [each for each in there if named(name, each)]
    if len(meant) != 1:
        raise ScenarioFailed(f"{text} could be any of {meant}" if meant else f"there is no {text} among {there}")
    return resource, meant[0]


async def _refused(body: Json, world: World, owned: Owned) -> None:
    match body:
        case {"apply": wanted, "with": text}:
            request = _create(wanted, world, owned)
        case {"job": short, "with": text}:
            request = _create(job(short), world, owned)
        case {"cronJob": short, "with": text}:
            request = _create(cron_job(short), world, owned)
        case {"flow": short, "with": text}:
            request = _create(flow(short), world, owned)
        case {"patch": about, "body": wanted, "with": text}:
            request = _patch(about, wanted, world)
        case {"delete": about, "with": text}:
            resource, name = target(about)
            request = world.api.delete(resource, name, namespace=place(resource, world))
        case _:
            raise ScenarioFailed(f"no such refusal: {body}")
    try:
        await request
    except ApiError as error:
        if text not in error.message:
            raise ScenarioFailed(f"refused with {error.message!r}, which doesn't say {text!r}") from None
        return
    raise ScenarioFailed(f"accepted, and should have been refused: {body}")


async def _create(body: Json, world: World, owned: Owned) -> None:
    """What is to be refused; where it isn't, others mustn't find it."""
    resource = BY_KIND[body["apiVersion"], body["kind"]]
    made = await world.api.create(resource, body, namespace=place(resource, world))
    owned.note(resource, made["metadata"]["name"])


async def _command(about: Json, action: str, world: World) -> None:
    kind = next(kind for kind in ("job", "queue", "flow") if kind in about)
    resource, name = await _found(f"{'jobflow' if kind == 'flow' else kind}/{about[kind]}", world)
    stored = await world.api.get(resource, name, namespace=place(resource, world))
    to = {"apiVersion": stored["apiVersion"], "kind": resource.kind, "name": name, "uid": stored["metadata"]["uid"]}
    body = {
        "apiVersion": COMMANDS.api_version,
        "kind": COMMANDS.kind,
        "metadata": {"generateName": f"{name}-", "ownerReferences": [{**to, "controller": True}]},
        "action": action,
        "target": to,
    }
    # Commands to queues live in the namespace default, as vcctl sends them.
    namespace = world.namespace if resource.namespaced else "default"
    await _done({"command": about, "action": action}, world.api.create(COMMANDS, body, namespace=namespace))


async def _end(name: str, end: Json, world: World) -> None:
    unknown = end.keys() - {"exit", "reason", "message", "pod"}
    if unknown:
        raise ScenarioFailed(f"a pod ends with exit, reason, message, pod; not {sorted(unknown)}")
    pod = await world.api.get(PODS, name, namespace=world.namespace)
    now = format_time(world.now())
    code = int(end.get("exit", 0))
    terminated = {"exitCode": code, "reason": end.get("reason", "Error" if code else "Completed"), "finishedAt": now}
    if "message" in end:
        terminated["message"] = end["message"]
    statuses = [
        {"name": container["name"], "image": container["image"], "imageID": "", "ready": False, "restartCount": 0,
         "started": False, "state": {"terminated": terminated}}
        for container in pod["spec"]["containers"]
    ]  # fmt: skip
    status: Json = {"phase": "Failed" if code or "pod" in end else "Succeeded"}
    if "pod" in end:
        status |= {"reason": end["pod"], "message": end.get("message", "")}
    if "exit" in end:
        status["containerStatuses"] = statuses
    await world.api.patch(PODS, name, {"status": status}, namespace=world.namespace, subresource="status")


async def _set_ready(name: str, status: str, world: World) -> None:
    node = await world.api.get(NODES, name)
    now = format_time(world.now())
    others = [each for each in node["status"]["conditions"] if each["type"] != "Ready"]
    ready = {"type": "Ready", "status": status, "reason": "Told", "lastHeartbeatTime": now, "lastTransitionTime": now}
    body = {"status": {"conditions": [*others, ready]}}
    await world.api.patch(NODES, name, body, subresource="status")


async def _lose(node: str, world: World) -> None:
    """The Node, and its pods as the pod garbage collector takes them; on a cluster that one waits 40 seconds first."""
    await world.api.delete(NODES, node)
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}
    for pod in (await world.api.list(PODS, namespace=world.namespace)).items:
        name, status = pod["metadata"]["name"], pod.get("status") or {}
        if pod["spec"].get("nodeName") != node:
            continue
        if status.get("phase") not in ("Succeeded", "Failed"):
            others = [each for each in status.get("conditions", ()) if each["type"] != "DisruptionTarget"]
            patch = {"status": {"phase": "Failed", "conditions": [*others, condition]}}
            try:
                await world.api.patch(PODS, name, patch, namespace=world.namespace, subresource="status")
            except ApiError as error:
                # Somebody answered the loss of the others already, and took this one away.
                if not error.not_found:
                    raise
        await _delete(PODS, name, world, at_once=True)


async def _delete(resource: Resource, name: str, world: World, *, at_once: bool = False) -> None:
    grace = 0 if at_once else None
    namespace = place(resource, world)
    try:
        await world.api.delete(resource, name, namespace=namespace, propagation="Background", grace_seconds=grace)
    except ApiError as error:
        if not error.not_found:
            raise


async def _without_hold(resource: Resource, item: Json, world: World) -> None:
    if _HOLD in (item["metadata"].get("finalizers") or ()):
        await _patch(f"{resource.kind.lower()}/{item['metadata']['name']}", {"metadata": {"finalizers": None}}, world)


async def _remove_queue(name: str, world: World) -> None:
    """As a person would: closed first, deleted once it is empty."""
    for attempt in range(_TRIES):
        try:
            queue = await world.api.get(QUEUES, name)
            if attempt == 0 and queue.get("status", {}).get("state") != "Closed":
                await _command({"queue": name}, "CloseQueue", world)
            await world.api.delete(QUEUES, name)
        except ApiError as error:
            if error.not_found:
                return
            await world.pass_time(0.1)
