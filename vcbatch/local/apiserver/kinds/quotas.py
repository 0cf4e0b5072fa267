"""ResourceQuotas and LimitRanges."""

from __future__ import annotations

from datetime import datetime

from vcbatch.api import faults, name_rules, quantities
from vcbatch.api.resources import RESOURCEQUOTAS
from vcbatch.local.apiserver.errors import FieldError
from vcbatch.local.apiserver.kinds.define import STATUS
from vcbatch.local.apiserver.kinds.pods.limits import LIMIT_RANGES
from vcbatch.local.apiserver.kinds.strategy import BuiltIn
from vcbatch.local.apiserver.registry import Json, RequestContext, Served
from vcbatch.local.apiserver.tables import AGE, NAME, Cell, column, created_cell, dig

_COUNTED = frozenset(
    [
        "pods",
        "services",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    ]
)
_MEASURED = frozenset(
    [
        "cpu",
        "memory",
        "ephemeral-storage",
        "requests.cpu",
        "requests.memory",
        "requests.storage",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
    ]
)
_SCOPES = (
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
)


def _quota_faults(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    spec = obj.get("spec") or {}
    found = amounts_faults(spec.get("hard"), "spec.hard")
    scopes = spec.get("scopes") or []
    for scope in scopes:
        if scope not in _SCOPES:
            found.append(faults.invalid("spec.scopes", scopes, "unsupported scope"))
    return found


def _quota_status_faults(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    status = obj.get("status") or {}
    return amounts_faults(status.get("hard"), "status.hard") + amounts_faults(status.get("used"), "status.used")


def _quota_change(obj: Json, old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    before, after = dig(old, "spec", "scopes") or [], dig(obj, "spec", "scopes") or []
    if sorted(before) == sorted(after):
        return []
    return [faults.invalid("spec.scopes", after, faults.IMMUTABLE)]


def amounts_faults(amounts: Json | None, path: str) -> list[FieldError]:
    """Faults of a map of quota resource names to amounts."""
    found: list[FieldError] = []
    for name in sorted(amounts or {}):
        place = f"{path}[{name}]"
        found += _resource_name_faults(name, place)
        amount = (amounts or {})[name]
        if quantities.compare(amount, "0") < 0:
            found.append(faults.invalid(place, quantities.text(amount), faults.NEGATIVE))
        elif (name in _COUNTED or name.startswith("count/")) and quantities.read(amount).milli() % 1000:
            found.append(faults.invalid(place, quantities.text(amount), "must be an integer"))
    return found


def _resource_name_faults(name: str, place: str) -> list[FieldError]:
    found = faults.invalid_each(place, name, name_rules.qualified_name(name))
    if found or "/" in name:
        return found
    if name not in _COUNTED | _MEASURED and ".storageclass.storage.k8s.io" not in name:
        return [faults.invalid(place, name, "must be a standard resource type or fully qualified")]
    return []


def _shares(limits: bool) -> Cell:
    def cell(obj: Json, _now: datetime) -> str:
        hard, used = dig(obj, "status", "hard") or {}, dig(obj, "status", "used") or {}
        names_shown = [name for name in sorted(hard) if name.startswith("limits") is limits]
        return ", ".join(f"{name}: {quantities.text(used.get(name, 0))}/{hard[name]}" for name in names_shown)

    return cell


def _limits_defaults(obj: Json, _old: Json | None, _ctx: RequestContext) -> None:
    """Source: kubernetes `pkg/apis/core/v1/defaults.go`, LimitRangeItem."""
    for item in dig(obj, "spec", "limits") or ():
        if item.get("type") != "Container":
            continue
        default = item.setdefault("default", {})
        for name, amount in (item.get("max") or {}).items():
            default.setdefault(name, amount)
        requested = item.setdefault("defaultRequest", {})
        for source in (default, item.get("min") or {}):
            for name, amount in source.items():
                requested.setdefault(name, amount)
        for key in ("default", "defaultRequest"):
            if not item[key]:
                del item[key]


def _limits_faults(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, item in enumerate(dig(obj, "spec", "limits") or ()):
        path = f"spec.limits[{index}]"
        kind = item.get("type", "")
        if not kind:
            found.append(faults.required(f"{path}.type"))
        if kind in seen:
            found.append(faults.duplicate(f"{path}.type", kind))
        seen.add(kind)
        if kind == "Pod":
            given = [key for key in ("default", "defaultRequest") if item.get(key)]
            detail = "may not be specified when `type` is 'Pod'"
            found += [faults.forbidden(f"{path}.{key}", detail) for key in given]
        found += _order_faults(item, path)
    return found


def _order_faults(item: Json, path: str) -> list[FieldError]:
    """What is less must not be more: min <= defaultRequest <= default <= max."""
    found: list[FieldError] = []
    ladder = (("min", "min"), ("defaultRequest", "default request"), ("default", "default"), ("max", "max"))
    resources = sorted({name for key, _ in ladder for name in item.get(key) or {}})
    for name in resources:
        for low, (low_key, low_text) in enumerate(ladder):
            for high_key, high_text in ladder[low + 1 :]:
                small, big = (item.get(low_key) or {}).get(name), (item.get(high_key) or {}).get(name)
                if small is None or big is None or quantities.compare(small, big) <= 0:
                    continue
                detail = (
                    f"{low_text} value {quantities.text(small)} is greater than {high_text} value "
                    f"{quantities.text(big)}"
                )
                found.append(faults.invalid(f"{path}.{low_key}[{name}]", quantities.text(small), detail))
    return found


def served() -> list[Served]:
    return [
        Served(
            resource=RESOURCEQUOTAS,
            singular="resourcequota",
            short_names=("quota",),
            strategy=BuiltIn(
                type_name="ResourceQuota",
                check=_quota_faults,
                check_update=_quota_change,
                check_status=_quota_status_faults,
                update_first=False,
                has_status=True,
            ),
            columns=(NAME, column("Request", _shares(False)), column("Limit", _shares(True)), AGE),
            subresources=STATUS,
            returns_deleted=True,
        ),
        Served(
            resource=LIMIT_RANGES,
            singular="limitrange",
            short_names=("limits",),
            strategy=BuiltIn(type_name="LimitRange", defaults=_limits_defaults, check=_limits_faults),
            columns=(NAME, column("Created At", created_cell, kind="date")),
        ),
    ]
