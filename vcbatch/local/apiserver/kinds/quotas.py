"""ResourceQuotas and LimitRanges."""

from __future__ import annotations

from datetime import datetime

from vcbatch.api import field_errors, name_rules, quantities
from vcbatch.api.podspec import amounts
from vcbatch.api.resources import RESOURCEQUOTAS
from vcbatch.local.apiserver.apierrors import FieldError
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
_COMPUTE = frozenset(
    [
        "pods",
        "cpu",
        "memory",
        "requests.cpu",
        "requests.memory",
        "limits.cpu",
        "limits.memory",
        "ephemeral-storage",
        "requests.ephemeral-storage",
        "limits.ephemeral-storage",
    ]
)
_LIMIT_TYPES = ("Pod", "Container", "PersistentVolumeClaim")
_SCOPES = (
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
)


_POD_SCOPES = {
    "BestEffort": frozenset(["pods"]),
    "NotBestEffort": _COMPUTE,
    "Terminating": _COMPUTE,
    "NotTerminating": _COMPUTE,
    "PriorityClass": _COMPUTE,
    "CrossNamespacePodAffinity": _COMPUTE,
    "VolumeAttributesClass": frozenset(["persistentvolumeclaims", "requests.storage"]),
}
"""The resources that each scope may limit."""
_BARE_SCOPES = ("BestEffort", "CrossNamespacePodAffinity", "NotBestEffort", "NotTerminating", "Terminating")
_EXISTS_ONLY = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
_OPPOSITES = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))


def _quota_errors(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    spec = obj.get("spec") or {}
    found = amounts_errors(spec.get("hard"), "spec.hard")
    scopes = spec.get("scopes") or []
    for scope in scopes:
        if scope not in _SCOPES:
            found.append(field_errors.invalid("spec.scopes", scopes, "unsupported scope"))
        for name in sorted(spec.get("hard") or {}):
            if not _scope_fits(scope, name):
                found.append(field_errors.invalid("spec.scopes", scopes, "unsupported scope applied to resource"))
    for pair in _OPPOSITES:
        if set(pair) <= set(scopes):
            found.append(field_errors.invalid("spec.scopes", scopes, "conflicting scopes"))
    return found + _scope_selector_errors(spec)


def _scope_fits(scope: str, resource: str) -> bool:
    if resource not in _COUNTED | _MEASURED:
        return True
    return scope not in _POD_SCOPES or resource in _POD_SCOPES[scope]


def _scope_selector_errors(spec: Json) -> list[FieldError]:
    selector = spec.get("scopeSelector")
    found: list[FieldError] = []
    path = "spec.scopeSelector.matchExpressions"
    for requirement in (selector or {}).get("matchExpressions") or ():
        scope, operator = requirement.get("scopeName", ""), requirement.get("operator", "")
        given = requirement.get("values") or []
        if scope not in _SCOPES:
            found.append(field_errors.invalid(f"{path}.scopeName", scope, "unsupported scope"))
        found += [
            field_errors.invalid(path, selector, "unsupported scope applied to resource")
            for name in sorted(spec.get("hard") or {})
            if not _scope_fits(scope, name)
        ]
        if scope in _BARE_SCOPES and operator != "Exists":
            found.append(field_errors.invalid(f"{path}.operator", operator, _EXISTS_ONLY))
        if operator in ("In", "NotIn"):
            if not given:
                detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                found.append(field_errors.required(f"{path}.values", detail))
        elif operator in ("Exists", "DoesNotExist"):
            if given:
                detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                found.append(field_errors.invalid(f"{path}.values", given, detail))
        else:
            found.append(field_errors.invalid(f"{path}.operator", operator, "not a valid selector operator"))
    return found


def _quota_status_errors(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    status = obj.get("status") or {}
    return amounts_errors(status.get("hard"), "status.hard") + amounts_errors(status.get("used"), "status.used")


def _quota_change(obj: Json, old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    before, after = dig(old, "spec", "scopes") or [], dig(obj, "spec", "scopes") or []
    if sorted(before) == sorted(after):
        return []
    return [field_errors.invalid("spec.scopes", after or None, field_errors.IMMUTABLE)]


def amounts_errors(amounts_: Json | None, path: str) -> list[FieldError]:
    """Errors of a map from quota resource names to quantities."""
    found: list[FieldError] = []
    for name in sorted(amounts_ or {}):
        place = f"{path}[{name}]"
        found += _resource_name_errors(name, place)
        amount = (amounts_ or {})[name]
        if quantities.compare(amount, "0") < 0:
            found.append(field_errors.invalid(place, quantities.text(amount), field_errors.NEGATIVE))
        elif (name in _COUNTED or name.startswith("count/")) and quantities.read(amount).milli() % 1000:
            found.append(field_errors.invalid(place, quantities.text(amount), "must be an integer"))
    return found


def _resource_name_errors(name: str, place: str) -> list[FieldError]:
    found = field_errors.invalid_each(place, name, name_rules.qualified_name(name))
    if found or "/" in name:
        return found
    if name not in _COUNTED | _MEASURED and ".storageclass.storage.k8s.io" not in name:
        known = [] if _is_standard(name) else ["must be a standard resource type or fully qualified"]
        return field_errors.invalid_each(place, name, [*known, "must be a standard resource for quota"])
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


def _limits_errors(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, item in enumerate(dig(obj, "spec", "limits") or ()):
        path = f"spec.limits[{index}]"
        kind = item.get("type", "")
        found += _limit_type_errors(kind, f"{path}.type")
        if kind in seen:
            found.append(field_errors.duplicate(f"{path}.type", kind))
        seen.add(kind)
        if kind == "Pod":
            given = [key for key in ("default", "defaultRequest") if item.get(key)]
            detail = "may not be specified when `type` is 'Pod'"
            found += [field_errors.forbidden(f"{path}.{key}", detail) for key in given]
        found += _limited_names_errors(item, path)
        if kind == "PersistentVolumeClaim" and not any("storage" in (item.get(key) or {}) for key in ("min", "max")):
            detail = "either minimum or maximum storage value is required, but neither was provided"
            found.append(field_errors.required(f"{path}.limits", detail))
        found += _order_errors(item, path)
        found += _ratio_errors(item, path)
    return found


def _limit_type_errors(kind: str, path: str) -> list[FieldError]:
    found = field_errors.invalid_each(path, kind, name_rules.qualified_name(kind))
    if not found and "/" not in kind and kind not in _LIMIT_TYPES:
        found.append(field_errors.invalid(path, kind, "must be a standard limit type or fully qualified"))
    return found


def _limited_names_errors(item: Json, path: str) -> list[FieldError]:
    """Errors of the resource names of an item: those of containers, or any standard one."""
    kind = item.get("type", "")
    keys = ["max", "min", "maxLimitRequestRatio"]
    if kind != "Pod":
        keys += ["default", "defaultRequest"]
    check = amounts.name_errors if kind in ("Pod", "Container") else _standard_name_errors
    return [
        error for key in keys for name in sorted(item.get(key) or {}) for error in check(name, f"{path}.{key}[{name}]")
    ]


def _standard_name_errors(name: str, path: str) -> list[FieldError]:
    found = field_errors.invalid_each(path, name, name_rules.qualified_name(name))
    if not found and "/" not in name and not _is_standard(name):
        found.append(field_errors.invalid(path, name, "must be a standard resource type or fully qualified"))
    return found


def _is_standard(name: str) -> bool:
    return name in _COUNTED | _MEASURED or name == "storage" or name.startswith(("hugepages-", "requests.hugepages-"))


def _ratio_errors(item: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for name, written in sorted((item.get("maxLimitRequestRatio") or {}).items()):
        place, ratio, text = f"{path}.maxLimitRequestRatio[{name}]", quantities.read(written), quantities.text(written)
        if quantities.compare(written, "1") < 0:
            found.append(field_errors.invalid(place, text, f"ratio {text} is less than 1"))
        least, most = (item.get("min") or {}).get(name), (item.get("max") or {}).get(name)
        if least is None or most is None or not quantities.read(least).milli():
            continue
        widest = quantities.read(most).milli() / quantities.read(least).milli()
        if ratio.milli() > widest * 1000:
            found.append(field_errors.invalid(place, text, f"ratio {text} is greater than max/min = {widest:f}"))
    return found


_ORDER = (
    ("min", "max", "min", "min", "min value {} is greater than max value {}"),
    (
        "min",
        "defaultRequest",
        "defaultRequest",
        "defaultRequest",
        "min value {} is greater than default request value {}",
    ),
    (
        "defaultRequest",
        "max",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than max value {}",
    ),
    (
        "defaultRequest",
        "default",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than default limit value {}",
    ),
    ("min", "default", "default", "min", "min value {} is greater than default value {}"),
    ("default", "max", "default", "max", "default value {} is greater than max value {}"),
)
"""Lower field, higher field, the field that the error is reported at, the field whose value it shows, and its text."""


def _order_errors(item: Json, path: str) -> list[FieldError]:
    """Errors of the order min <= defaultRequest <= default <= max."""
    found: list[FieldError] = []
    for name in sorted({name for key in ("min", "defaultRequest", "default", "max") for name in item.get(key) or {}}):
        for low, high, at, shown, text in _ORDER:
            if item.get("type") == "Pod" and "default" in f"{low}{high}":
                continue
            small, big = (item.get(low) or {}).get(name), (item.get(high) or {}).get(name)
            if small is None or big is None or quantities.compare(small, big) <= 0:
                continue
            detail = text.format(quantities.text(small), quantities.text(big))
            value = quantities.text((item.get(shown) or {})[name])
            found.append(field_errors.invalid(f"{path}.{at}[{name}]", value, detail))
    return found


def served() -> list[Served]:
    return [
        Served(
            resource=RESOURCEQUOTAS,
            singular="resourcequota",
            short_names=("quota",),
            strategy=BuiltIn(
                type_name="ResourceQuota",
                check=_quota_errors,
                check_update=_quota_change,
                check_status=_quota_status_errors,
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
            strategy=BuiltIn(type_name="LimitRange", defaults=_limits_defaults, check=_limits_errors),
            columns=(NAME, column("Created At", created_cell, kind="date")),
        ),
    ]
