"""autoscaling: HorizontalPodAutoscalers are stored and printed; in local mode no controller scales by them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from vcbatch.api import field_errors, name_rules
from vcbatch.api.resources import Resource
from vcbatch.local.apiserver.apierrors import FieldError
from vcbatch.local.apiserver.kinds.define import STATUS
from vcbatch.local.apiserver.kinds.strategy import BuiltIn
from vcbatch.local.apiserver.registry import Json, RequestContext, Served
from vcbatch.local.apiserver.tables import AGE, NAME, NONE, UNKNOWN, UNSET, at, column, dig

AUTOSCALERS = Resource(
    group="autoscaling", version="v2", plural="horizontalpodautoscalers", kind="HorizontalPodAutoscaler"
)
AUTOSCALERS_V1 = Resource(
    group="autoscaling", version="v1", plural="horizontalpodautoscalers", kind="HorizontalPodAutoscaler"
)


def _reference(obj: Json, _now: datetime) -> str:
    target = dig(obj, "spec", "scaleTargetRef") or {}
    return f"{target.get('kind', '')}/{target.get('name', '')}"


def _targets(obj: Json, _now: datetime) -> str:
    obj = to_v2(obj) if obj.get("apiVersion") == AUTOSCALERS_V1.api_version else obj
    shown: list[str] = []
    current = dig(obj, "status", "currentMetrics") or []
    for index, metric in enumerate(dig(obj, "spec", "metrics") or []):
        kind = str(metric.get("type", ""))
        key = kind[:1].lower() + kind[1:]
        source = metric.get(key) or {}
        target = source.get("target") or {}
        seen = dig(current[index], key, "current") if index < len(current) else None
        label = f"{source['name']}: " if kind == "Resource" and "name" in source else ""
        if "averageUtilization" in target:
            have = f"{seen['averageUtilization']}%" if seen and "averageUtilization" in seen else UNKNOWN
            shown.append(f"{label}{have}/{target['averageUtilization']}%")
        elif "averageValue" in target:
            have = seen.get("averageValue", UNKNOWN) if seen else UNKNOWN
            shown.append(f"{label}{have}/{target['averageValue']}" + (" (avg)" if kind != "Resource" else ""))
        else:
            have = seen.get("value", UNKNOWN) if seen else UNKNOWN
            shown.append(f"{label}{have}/{target.get('value', UNKNOWN)}")
    if not shown:
        return NONE
    more = f" + {len(shown) - 2} more..." if len(shown) > 2 else ""
    return ", ".join(shown[:2]) + more


def _defaults(obj: Json, _old: Json | None, _ctx: RequestContext) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def from_v2(obj: Json) -> Json:
    """The v1 form: one target for CPU; in Kubernetes an annotation has the other metrics, which local mode leaves
    out."""
    spec = dict(obj.get("spec") or {})
    metrics = spec.pop("metrics", None) or []
    spec.pop("behavior", None)
    target = next((_cpu_target(metric) for metric in metrics if _cpu_target(metric) is not None), None)
    if target is not None:
        spec["targetCPUUtilizationPercentage"] = target
    status = {key: value for key, value in (obj.get("status") or {}).items() if key in _STATUS_V1}
    return {**obj, "apiVersion": AUTOSCALERS_V1.api_version, "spec": spec, "status": status}


_STATUS_V1 = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")


def _cpu_target(metric: Json) -> Any:
    if metric.get("type") != "Resource" or dig(metric, "resource", "name") != "cpu":
        return None
    return dig(metric, "resource", "target", "averageUtilization")


def to_v2(obj: Json) -> Json:
    """The stored form of a v1 object."""
    spec = dict(obj.get("spec") or {})
    target = spec.pop("targetCPUUtilizationPercentage", None)
    if target is not None:
        utilization = {"type": "Utilization", "averageUtilization": target}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": utilization}}]
    return {**obj, "apiVersion": AUTOSCALERS.api_version, "spec": spec}


def _v1_defaults(obj: Json, _old: Json | None, _ctx: RequestContext) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    spec.setdefault("targetCPUUtilizationPercentage", 80)


def _check(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    spec = obj.get("spec") or {}
    found: list[FieldError] = []
    least, most = spec.get("minReplicas", 1), spec.get("maxReplicas", 0)
    if least < 1:
        found.append(field_errors.invalid("spec.minReplicas", least, "must be greater than or equal to 1"))
    if most < 1:
        found.append(field_errors.invalid("spec.maxReplicas", most, "must be greater than 0"))
    if most < least:
        detail = "must be greater than or equal to `minReplicas`"
        found.append(field_errors.invalid("spec.maxReplicas", most, detail))
    reference = spec.get("scaleTargetRef") or {}
    for key in ("kind", "name"):
        path = f"spec.scaleTargetRef.{key}"
        if not reference.get(key):
            found.append(field_errors.required(path))
        else:
            found += field_errors.invalid_each(path, reference[key], name_rules.path_segment(reference[key]))
    return found


_COLUMNS = (
    NAME,
    column("Reference", _reference),
    column("Targets", _targets),
    column("MinPods", at("spec", "minReplicas", default=UNSET)),
    column("MaxPods", at("spec", "maxReplicas", default=0)),
    column("Replicas", at("status", "currentReplicas", default=0)),
    AGE,
)


def _entry(resource: Resource, **extra: Any) -> Served:
    return Served(
        resource=resource,
        singular="horizontalpodautoscaler",
        short_names=("hpa",),
        categories=("all",),
        columns=_COLUMNS,
        subresources=STATUS,
        **extra,
    )


def _status() -> Json:
    return {"currentReplicas": 0, "desiredReplicas": 0}


def served() -> list[Served]:
    return [
        _entry(
            AUTOSCALERS,
            strategy=BuiltIn(
                type_name="autoscaling/v2.HorizontalPodAutoscaler",
                defaults=_defaults,
                check=_check,
                has_status=True,
                initial_status=_status,
            ),
        ),
        _entry(
            AUTOSCALERS_V1,
            strategy=BuiltIn(
                type_name="autoscaling/v1.HorizontalPodAutoscaler",
                defaults=_v1_defaults,
                check=_check,
                has_status=True,
                initial_status=_status,
            ),
            storage=AUTOSCALERS,
            to_storage=to_v2,
            from_storage=from_v2,
        ),
    ]
