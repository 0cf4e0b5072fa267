"""policy: PodDisruptionBudgets, which limit evictions."""

from __future__ import annotations

import re
from typing import Any

from vcbatch.api import field_errors, name_rules, selectors
from vcbatch.api.resources import Resource
from vcbatch.local.apiserver.apierrors import FieldError
from vcbatch.local.apiserver.kinds.define import STATUS
from vcbatch.local.apiserver.kinds.strategy import BuiltIn
from vcbatch.local.apiserver.registry import Json, RequestContext, Served
from vcbatch.local.apiserver.tables import AGE, NAME, at, column

BUDGETS = Resource(group="policy", version="v1", plural="poddisruptionbudgets", kind="PodDisruptionBudget")

_PERCENT = re.compile("[0-9]+%")
PERCENT_ERROR = name_rules.regex_error(
    "a valid percent string must be a numeric string followed by an ending '%'", "[0-9]+%", "1%", "93%"
)


def int_or_percent_errors(value: Any, path: str) -> list[FieldError]:
    """Errors of a count that may be a number or a percentage."""
    if isinstance(value, str):
        return [] if _PERCENT.fullmatch(value) else [field_errors.invalid(path, value, PERCENT_ERROR)]
    return field_errors.not_negative(path, value)


_LONGEST_PERCENT = 20


def not_above_hundred_percent(value: Any, path: str) -> list[FieldError]:
    if (
        isinstance(value, str)
        and _PERCENT.fullmatch(value)
        and (len(value) > _LONGEST_PERCENT or int(value[:-1]) > 100)
    ):
        return [field_errors.invalid(path, value, "must not be greater than 100%")]
    return []


def _check(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    spec = obj.get("spec") or {}
    found: list[FieldError] = []
    if "minAvailable" in spec and "maxUnavailable" in spec:
        found.append(field_errors.invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"))
    for key in ("minAvailable", "maxUnavailable"):
        if key in spec:
            found += int_or_percent_errors(spec[key], f"spec.{key}")
            found += not_above_hundred_percent(spec[key], f"spec.{key}")
    if spec.get("selector") is not None:
        found += selectors.selector_errors(spec["selector"], "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in ("IfHealthyBudget", "AlwaysAllow"):
        found.append(
            field_errors.unsupported("spec.unhealthyPodEvictionPolicy", policy, ["AlwaysAllow", "IfHealthyBudget"])
        )
    return found


def _initial_status() -> Json:
    return {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}


def served() -> list[Served]:
    return [
        Served(
            resource=BUDGETS,
            singular="poddisruptionbudget",
            short_names=("pdb",),
            strategy=BuiltIn(
                type_name="PodDisruptionBudget",
                check=_check,
                has_status=True,
                initial_status=_initial_status,
                generation=True,
            ),
            columns=(
                NAME,
                column("Min Available", at("spec", "minAvailable", default="N/A")),
                column("Max Unavailable", at("spec", "maxUnavailable", default="N/A")),
                column("Allowed Disruptions", at("status", "disruptionsAllowed", default=0)),
                AGE,
            ),
            subresources=STATUS,
            unconditional_update=False,
        )
    ]
