"""Label selector objects: their errors and whether they match.

Source: k8s.io/apimachinery `pkg/apis/meta/v1/validation` and `pkg/labels`.
"""

from __future__ import annotations

from collections.abc import Mapping

from vcbatch.api import field_errors, name_rules
from vcbatch.api.field_errors import FieldError
from vcbatch.api.loose import listed, part
from vcbatch.api.model import Json


def selector_errors(selector: Json, path: str) -> list[FieldError]:
    """Errors of a `LabelSelector` at `path`."""
    found = label_errors(selector.get("matchLabels"), f"{path}.matchLabels")
    for index, expression in enumerate(listed(selector, "matchExpressions")):
        found += _expression_errors(expression, f"{path}.matchExpressions[{index}]")
    return found


def label_errors(labels: Mapping[str, str] | None, path: str) -> list[FieldError]:
    """Errors of a map of labels, all reported at `path`."""
    found: list[FieldError] = []
    for key in sorted(labels or {}):
        value = (labels or {})[key]
        found += field_errors.invalid_each(path, key, name_rules.qualified_name(key))
        found += field_errors.invalid_each(path, value, name_rules.label_value(value))
    return found


def _expression_errors(expression: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    operator, values = expression.get("operator", ""), listed(expression, "values")
    if operator in ("In", "NotIn"):
        if not values:
            detail = "must be specified when `operator` is 'In' or 'NotIn'"
            found.append(field_errors.required(f"{path}.values", detail))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            found.append(field_errors.forbidden(f"{path}.values", detail))
    else:
        found.append(field_errors.invalid(f"{path}.operator", operator, "not a valid selector operator"))
    key = expression.get("key", "")
    found += field_errors.invalid_each(f"{path}.key", key, name_rules.qualified_name(key))
    for index, value in enumerate(values):
        found += field_errors.invalid_each(f"{path}.values[{index}]", value, name_rules.label_value(value))
    return found


def matches(selector: Json | None, labels: Mapping[str, str] | None) -> bool:
    """Whether labels satisfy a `LabelSelector`. None selects nothing, an empty selector everything."""
    if selector is None:
        return False
    have = labels or {}
    for key, value in part(selector, "matchLabels").items():
        if have.get(key) != value:
            return False
    return all(_satisfied(expression, have) for expression in listed(selector, "matchExpressions"))


def _satisfied(expression: Json, labels: Mapping[str, str]) -> bool:
    key, values = expression.get("key", ""), listed(expression, "values")
    match expression.get("operator"):
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case _:
            return False
