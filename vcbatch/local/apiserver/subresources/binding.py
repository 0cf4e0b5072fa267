"""`pods/binding` and `bindings`: a scheduler's decision that a pod runs on a node.

Source: kubernetes `pkg/registry/core/pod/storage`, `BindingREST`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from vcbatch.api.resources import PODS
from vcbatch.local.apiserver.apierrors import StatusError, bad_request, conflict
from vcbatch.local.apiserver.registry import HandlerRequest, Json, Reply


async def bind(request: HandlerRequest) -> Reply:
    """Sets the pod's node and its PodScheduled condition, and merges the binding's labels and annotations."""
    body = request.body or {}
    metadata = body.get("metadata") or {}
    name = metadata.get("name") or request.name
    if request.name and name != request.name:
        raise bad_request("name in URL does not match name in Binding object")
    if not name:
        raise bad_request("name is required")
    node = _target(body)
    namespace = request.ctx.namespace
    if metadata.get("namespace") and metadata["namespace"] != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    now = request.operations.now()

    def change(pod: Json) -> None:
        _refuse(pod, metadata, namespace)
        _assign(pod, node, metadata, now)

    request.operations.get(PODS, namespace, name)
    await request.operations.change(PODS, namespace, name, change, request.ctx)
    return Reply(body=success_status(), code=201)


def success_status() -> Json:
    """The response to a create that creates no object."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def _target(body: Json) -> str:
    target: Any = body.get("target") or {}
    errors: list[str] = []
    if target.get("kind") not in (None, "", "Node"):
        errors.append(f'target.kind: Unsupported value: "{target["kind"]}": supported values: "Node", "<empty>"')
    if not target.get("name"):
        errors.append("target.name: Required value")
    if errors:
        text = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
        raise StatusError(500, "", text)
    return str(target["name"])


def _refuse(pod: Json, binding: Json, namespace: str | None) -> None:
    metadata = pod.get("metadata") or {}
    name, spec = metadata.get("name", ""), pod.get("spec") or {}
    wanted = binding.get("uid")
    if wanted and wanted != metadata.get("uid"):
        raise _stale(
            name,
            f"StorageError: invalid object, Code: 4, Key: /registry/pods/{namespace}/{name}, ResourceVersion: 0, "
            f"AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, "
            f"UID in object meta: {metadata.get('uid')}",
        )
    version = binding.get("resourceVersion")
    if version and version != metadata.get("resourceVersion"):
        raise _stale(
            name,
            f"StorageError: invalid object, Code: 4, Key: /registry/pods/{namespace}/{name}, ResourceVersion: 0, "
            f"AdditionalErrorMsg: Precondition failed: ResourceVersion in precondition: {version}, "
            f"ResourceVersion in object meta: {metadata.get('resourceVersion')}",
        )
    if metadata.get("deletionTimestamp"):
        raise _conflict(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise _conflict(name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise _conflict(name, f"pod {name} has non-empty .spec.schedulingGates")


def _stale(name: str, message: str) -> StatusError:
    return conflict(group="", plural="pods", name=name, message=message)


def _conflict(name: str, message: str) -> StatusError:
    return conflict(group="", plural="pods/binding", name=name, message=message)


def _assign(pod: Json, node: str, binding: Json, now: datetime) -> None:
    pod["spec"]["nodeName"] = node
    metadata = pod["metadata"]
    for key in ("annotations", "labels"):
        if binding.get(key):
            metadata[key] = {**(metadata.get(key) or {}), **binding[key]}
    conditions = pod.setdefault("status", {}).setdefault("conditions", [])
    set_condition(conditions, {"type": "PodScheduled", "status": "True"}, now)


def set_condition(conditions: list[Json], condition: Json, now: datetime) -> None:
    """Replace the condition of the same type, or add it; the transition time only changes with the status."""
    moment = now.replace(microsecond=0).isoformat().replace("+00:00", "Z")
    written = {"lastProbeTime": None, "lastTransitionTime": moment, **condition}
    for index, old in enumerate(conditions):
        if old.get("type") == condition["type"]:
            if old.get("status") == condition["status"] and old.get("lastTransitionTime"):
                written["lastTransitionTime"] = old["lastTransitionTime"]
            conditions[index] = written
            return
    conditions.append(written)
