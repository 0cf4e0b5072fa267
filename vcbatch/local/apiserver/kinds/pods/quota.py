"""Enforces the namespace's ResourceQuotas for new pods, with the current usage of its pods.

No controller counts usage in local mode, so it is counted here. Source of the rules and texts: kubernetes
`pkg/quota/v1/evaluator/core/pods.go`, `staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from vcbatch.api import quantities
from vcbatch.api.pod import TERMINAL_PHASES
from vcbatch.api.podspec.amounts import is_native, service_class
from vcbatch.api.quantity import ZERO, Quantity
from vcbatch.api.resources import RESOURCEQUOTAS
from vcbatch.local.apiserver.apierrors import forbidden
from vcbatch.local.apiserver.registry import Json, RequestContext

_ONE = quantities.read(1)
_PLAIN_REQUESTS = ("cpu", "memory", "ephemeral-storage")
_NEEDED = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")


def refuse_over_quota(pod: Json, ctx: RequestContext) -> None:
    """Raises 403 naming the quota that a pod would exceed, or whose resources the pod doesn't specify."""
    for quota in ctx.listed(RESOURCEQUOTAS, ctx.namespace):
        spec = quota.get("spec") or {}
        hard = {name: quantities.read(amount) for name, amount in (spec.get("hard") or {}).items()}
        if not hard or not in_scope(pod, spec):
            continue
        name = quota["metadata"]["name"]
        missing = _missing(pod, hard)
        if missing:
            raise _refusal(pod, f"failed quota: {name}: must specify {missing}")
        wanted = {key: amount for key, amount in usage(pod).items() if key in hard and amount}
        used = ctx.used(ctx.namespace or "", spec)
        over = sorted(key for key, amount in wanted.items() if amount + used.get(key, ZERO) > hard[key])
        if over:
            shown = (_shown(over, wanted), _shown(over, used), _shown(over, hard))
            raise _refusal(pod, f"exceeded quota: {name}, requested: {shown[0]}, used: {shown[1]}, limited: {shown[2]}")


def _refusal(pod: Json, message: str) -> Exception:
    name = (pod.get("metadata") or {}).get("name") or ""
    return forbidden(group="", plural="pods", name=name, message=message)


def _shown(names: Iterable[str], amounts: Mapping[str, Quantity]) -> str:
    return ",".join(f"{name}={amounts.get(name, ZERO)}" for name in names)


def usage(pod: Json) -> dict[str, Quantity]:
    """The usage of a pod under each quota resource name: the sum of its containers, or the largest init container,
    whichever is more. A finished pod counts as an object, and uses nothing."""
    if (pod.get("status") or {}).get("phase") in TERMINAL_PHASES:
        return {"count/pods": _ONE}
    spec = pod.get("spec") or {}
    counted = {"pods": _ONE, "count/pods": _ONE}
    for kind in ("requests", "limits"):
        for resource, amount in effective(spec, kind).items():
            counted[f"{kind}.{resource}"] = amount
            if kind == "requests" and resource in _PLAIN_REQUESTS:
                counted[resource] = amount
            elif kind == "requests" and not is_native(resource):
                counted.setdefault(resource, amount)
    return counted


def effective(spec: Json, kind: str) -> dict[str, Quantity]:
    """The total `requests` or `limits` of a pod."""
    total: dict[str, Quantity] = {}
    for container in spec.get("containers") or ():
        _add(total, container, kind)
    sidecars: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            _add(sidecars, container, kind)
            _add(total, container, kind)
            continue
        step = dict(sidecars)
        _add(step, container, kind)
        for name, amount in step.items():
            peak[name] = max(peak.get(name, ZERO), amount)
    for name, amount in peak.items():
        total[name] = max(total.get(name, ZERO), amount)
    for name, amount in (spec.get("overhead") or {}).items():
        total[name] = total.get(name, ZERO) + quantities.read(amount)
    return total


def _add(total: dict[str, Quantity], container: Json, kind: str) -> None:
    for name, amount in ((container.get("resources") or {}).get(kind) or {}).items():
        total[name] = total.get(name, ZERO) + quantities.read(amount)


def _missing(pod: Json, hard: Mapping[str, Quantity]) -> str:
    """The containers that don't specify limited resources: `requests.cpu for: a,b; limits.memory for: a`."""
    spec = pod.get("spec") or {}
    found: list[str] = []
    for name in sorted(set(hard) & set(_NEEDED)):
        kind, _, resource = name.rpartition(".")
        without = [
            str(container.get("name", ""))
            for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
            if resource not in ((container.get("resources") or {}).get(kind or "requests") or {})
        ]
        if without:
            found.append(f"{name} for: {','.join(sorted(set(without)))}")
    return "; ".join(found)


def in_scope(pod: Json, spec: Json) -> bool:
    """Whether a quota with scopes applies to this pod."""
    best_effort = service_class(pod.get("spec") or {}) == "BestEffort"
    ends = (pod.get("spec") or {}).get("activeDeadlineSeconds") is not None
    holds = {
        "BestEffort": best_effort,
        "NotBestEffort": not best_effort,
        "Terminating": ends,
        "NotTerminating": not ends,
        "PriorityClass": bool((pod.get("spec") or {}).get("priorityClassName")),
        "CrossNamespacePodAffinity": _selects_across_namespaces(pod.get("spec") or {}),
    }
    if not all(holds.get(scope, True) for scope in spec.get("scopes") or ()):
        return False
    expressions = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return all(_selected(expression, pod, holds) for expression in expressions)


def _selects_across_namespaces(spec: Json) -> bool:
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        preferred = terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        required = terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for term in (*required, *(one.get("podAffinityTerm") or {} for one in preferred)):
            if term.get("namespaces") or term.get("namespaceSelector") is not None:
                return True
    return False


def _selected(expression: Json, pod: Json, holds: Mapping[str, bool]) -> bool:
    scope, operator, values = expression.get("scopeName", ""), expression.get("operator"), expression.get("values")
    if scope != "PriorityClass":
        return holds.get(scope, True)
    name = (pod.get("spec") or {}).get("priorityClassName") or ""
    match operator:
        case "In":
            return name in (values or ())
        case "NotIn":
            return name not in (values or ())
        case "DoesNotExist":
            return not name
        case _:
            return bool(name)
