"""`pods/eviction`: deletes a pod unless a PodDisruptionBudget forbids it.

No controller keeps the status of budgets in local mode, so that what a budget allows is counted here from the pods it
selects, at the moment of the request. Source of the rules: kubernetes `pkg/registry/core/pod/storage`, `EvictionREST`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from vcbatch.api.resources import PODS, Resource
from vcbatch.local.apiserver.errors import StatusError, bad_request
from vcbatch.local.apiserver.kinds import selectors
from vcbatch.local.apiserver.registry import HandlerRequest, Json, Reply
from vcbatch.local.apiserver.subresources.binding import set_condition, success_status

_BUDGETS = Resource(group="policy", version="v1", plural="poddisruptionbudgets", kind="PodDisruptionBudget")
_VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."
_TOO_MANY = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."


async def evict(request: HandlerRequest) -> Reply:
    """Answers 429 with the budget in the way, or deletes the pod and marks it as a DisruptionTarget."""
    body = request.body or {}
    name = (body.get("metadata") or {}).get("name") or request.name
    if name != request.name:
        raise bad_request("name in URL does not match name in Eviction object")
    operations, namespace = request.operations, request.ctx.namespace
    pod = operations.get(PODS, namespace, name)
    if not _may_go(pod):
        _obey(pod, operations.list(_BUDGETS, namespace), operations.list(PODS, namespace))
    options: Json = {"kind": "DeleteOptions", "apiVersion": "v1", **(body.get("deleteOptions") or {})}
    if not request.ctx.dry_run and not options.get("dryRun") and not _deleting(pod):
        now = operations.now()

        def mark(target: Json) -> None:
            conditions = target.setdefault("status", {}).setdefault("conditions", [])
            set_condition(conditions, _TARGET, now)

        await operations.change(PODS, namespace, name, mark, request.ctx)
    await operations.delete(PODS, namespace, name, options, request.ctx)
    return Reply(body=success_status(), code=201)


_TARGET: Json = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}


def _deleting(pod: Json) -> bool:
    return bool((pod.get("metadata") or {}).get("deletionTimestamp"))


def _may_go(pod: Json) -> bool:
    """Pods that serve nobody are no disruption: finished, not yet started, or already on their way out."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed", "Pending") or _deleting(pod)


def _obey(pod: Json, budgets: Sequence[Json], pods: Sequence[Json]) -> None:
    labels = (pod.get("metadata") or {}).get("labels")
    mine = [item for item in budgets if selectors.matches((item.get("spec") or {}).get("selector"), labels)]
    if len(mine) > 1:
        raise StatusError(500, "InternalError", f"Internal error occurred: {_TOO_MANY}")
    if not mine:
        return
    budget = mine[0]
    selected = [
        item
        for item in pods
        if not _deleting(item)
        and (item.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
        and selectors.matches(budget["spec"].get("selector"), (item.get("metadata") or {}).get("labels"))
    ]
    healthy = sum(1 for item in selected if _ready(item))
    wanted = desired_healthy(budget.get("spec") or {}, len(selected))
    if healthy - wanted > 0:
        return
    if not _ready(pod) and (healthy >= wanted or budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow"):
        return
    name = budget["metadata"]["name"]
    text = f"The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently"
    raise StatusError(429, "TooManyRequests", _VIOLATES, {"causes": [{"reason": "DisruptionBudget", "message": text}]})


def _ready(pod: Json) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(item.get("type") == "Ready" and item.get("status") == "True" for item in conditions)


def desired_healthy(spec: Json, expected: int) -> int:
    """How many of `expected` pods a budget wants ready; percentages are rounded up."""
    if spec.get("maxUnavailable") is not None:
        return max(0, expected - _count(spec["maxUnavailable"], expected))
    return _count(spec.get("minAvailable", 1), expected)


def _count(value: Any, whole: int) -> int:
    if isinstance(value, int):
        return value
    percent = re.fullmatch("([0-9]+)%", str(value))
    return -(-int(percent[1]) * whole // 100) if percent else 0
