"""`pods/eviction`: deletes a pod unless a PodDisruptionBudget forbids it.

The allowed disruptions are counted from the selected pods at the time of the request, and not read from the budget's
status, which is updated a little later. Source of the rules: kubernetes `pkg/registry/core/pod/storage`,
`EvictionREST`.
"""

from __future__ import annotations

from collections.abc import Sequence

from vcbatch.api.pod import PodPhase
from vcbatch.api.reasons import EVICTION_BY_API, PodConditionType
from vcbatch.api.resources import PODS, Resource
from vcbatch.local.apiserver.apierrors import StatusError, bad_request
from vcbatch.local.apiserver.kinds.disruption import covers, is_leaving, is_ready, measure
from vcbatch.local.apiserver.registry import HandlerRequest, Json, Reply
from vcbatch.local.apiserver.subresources.binding import set_condition, success_status

_BUDGETS = Resource(group="policy", version="v1", plural="poddisruptionbudgets", kind="PodDisruptionBudget")
_VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."
_TOO_MANY = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."


async def evict(request: HandlerRequest) -> Reply:
    """Deletes the pod and marks it as a DisruptionTarget, or answers 429 with the budget that forbids it."""
    body = request.body or {}
    name = (body.get("metadata") or {}).get("name") or request.name
    if name != request.name:
        raise bad_request("name in URL does not match name in Eviction object")
    operations, namespace = request.operations, request.ctx.namespace
    pod = operations.get(PODS, namespace, name)
    if not _may_go(pod):
        _obey(pod, operations.list(_BUDGETS, namespace), operations.list(PODS, namespace))
    options: Json = {"kind": "DeleteOptions", "apiVersion": "v1", **(body.get("deleteOptions") or {})}
    if not request.ctx.dry_run and not options.get("dryRun") and not is_leaving(pod):
        now = operations.now()

        def mark(target: Json) -> None:
            conditions = target.setdefault("status", {}).setdefault("conditions", [])
            set_condition(conditions, _TARGET, now)

        await operations.change(PODS, namespace, name, mark, request.ctx)
    await operations.delete(PODS, namespace, name, options, request.ctx)
    return Reply(body=success_status(), code=201)


_TARGET: Json = {
    "type": PodConditionType.DISRUPTION_TARGET.value,
    "status": "True",
    "reason": EVICTION_BY_API,
    "message": "Eviction API: evicting",
}


def _may_go(pod: Json) -> bool:
    """Whether the pod's eviction is no disruption: it has finished, hasn't started, or is already being deleted."""
    return (pod.get("status") or {}).get("phase") in (
        PodPhase.SUCCEEDED,
        PodPhase.FAILED,
        PodPhase.PENDING,
    ) or is_leaving(pod)


def _obey(pod: Json, budgets: Sequence[Json], pods: Sequence[Json]) -> None:
    mine = [item for item in budgets if covers(item, pod)]
    if len(mine) > 1:
        raise StatusError(500, "InternalError", f"Internal error occurred: {_TOO_MANY}")
    if not mine:
        return
    budget = mine[0]
    found = measure(budget, pods)
    if found.allowed:
        return
    always = (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow"
    if not is_ready(pod) and (found.healthy >= found.desired or always):
        return
    name = budget["metadata"]["name"]
    text = f"The disruption budget {name} needs {found.desired} healthy pods and has {found.healthy} currently"
    raise StatusError(429, "TooManyRequests", _VIOLATES, {"causes": [{"reason": "DisruptionBudget", "message": text}]})
