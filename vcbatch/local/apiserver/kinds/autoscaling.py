"""autoscaling: HorizontalPodAutoscalers are stored and printed; nothing scales by them in local mode."""

from __future__ import annotations

from datetime import datetime

from vcbatch.api.resources import Resource
from vcbatch.local.apiserver.kinds.define import STATUS
from vcbatch.local.apiserver.kinds.strategy import BuiltIn
from vcbatch.local.apiserver.registry import Json, RequestContext, Served
from vcbatch.local.apiserver.tables import AGE, NAME, NONE, UNKNOWN, UNSET, at, column, dig

AUTOSCALERS = Resource(
    group="autoscaling", version="v2", plural="horizontalpodautoscalers", kind="HorizontalPodAutoscaler"
)


def _reference(obj: Json, _now: datetime) -> str:
    target = dig(obj, "spec", "scaleTargetRef") or {}
    return f"{target.get('kind', '')}/{target.get('name', '')}"


def _targets(obj: Json, _now: datetime) -> str:
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


def served() -> list[Served]:
    return [
        Served(
            resource=AUTOSCALERS,
            singular="horizontalpodautoscaler",
            short_names=("hpa",),
            categories=("all",),
            strategy=BuiltIn(type_name="autoscaling/v2.HorizontalPodAutoscaler", defaults=_defaults, has_status=True),
            columns=(
                NAME,
                column("Reference", _reference),
                column("Targets", _targets),
                column("MinPods", at("spec", "minReplicas", default=UNSET)),
                column("MaxPods", at("spec", "maxReplicas", default=0)),
                column("Replicas", at("status", "currentReplicas", default=0)),
                AGE,
            ),
            subresources=STATUS,
        )
    ]
