"""Errors of a pod's scheduling constraints: affinity, tolerations, topology spread, gates.

Source: kubernetes `pkg/apis/core/validation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vcbatch.api import field_errors, name_rules, selectors
from vcbatch.api.field_errors import FieldError
from vcbatch.api.loose import listed, part
from vcbatch.api.model import Json
from vcbatch.api.podspec import values

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NOT_AN_OPERATOR = "not a valid selector operator"


def affinity_errors(affinity: Json | None, path: str) -> list[FieldError]:
    """Errors of an Affinity."""
    if not affinity:
        return []
    found: list[FieldError] = []
    node = affinity.get("nodeAffinity")
    if node is not None:
        found += _node_affinity_errors(node, f"{path}.nodeAffinity")
    for kind in ("podAffinity", "podAntiAffinity"):
        if affinity.get(kind) is not None:
            found += _pod_affinity_errors(affinity[kind], f"{path}.{kind}")
    return found


def _node_affinity_errors(node: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    if node.get(_REQUIRED) is not None:
        found += node_selector_errors(node[_REQUIRED], f"{path}.{_REQUIRED}")
    for index, term in enumerate(listed(node, _PREFERRED)):
        place = f"{path}.{_PREFERRED}[{index}]"
        found += _weight_errors(term, place)
        found += _node_term_errors(part(term, "preference"), f"{place}.preference", check_values=False)
    return found


def node_selector_errors(selector: Json, path: str) -> list[FieldError]:
    """Errors of a NodeSelector."""
    place = f"{path}.nodeSelectorTerms"
    terms = listed(selector, "nodeSelectorTerms")
    if not terms:
        return [field_errors.required(place, "must have at least one node selector term")]
    found: list[FieldError] = []
    for index, term in enumerate(terms):
        found += _node_term_errors(term, f"{place}[{index}]", check_values=True)
    return found


def _node_term_errors(term: Json, path: str, *, check_values: bool) -> list[FieldError]:
    found: list[FieldError] = []
    for index, requirement in enumerate(listed(term, "matchExpressions")):
        found += _node_requirement_errors(requirement, f"{path}.matchExpressions[{index}]", check_values)
    for index, requirement in enumerate(listed(term, "matchFields")):
        found += _node_field_errors(requirement, f"{path}.matchFields[{index}]")
    return found


def _node_requirement_errors(requirement: Json, path: str, check_values: bool) -> list[FieldError]:
    found: list[FieldError] = []
    given, operator, place = listed(requirement, "values"), requirement.get("operator", ""), f"{path}.values"
    match operator:
        case "In" | "NotIn":
            if not given:
                found.append(field_errors.required(place, "must be specified when `operator` is 'In' or 'NotIn'"))
        case "Exists" | "DoesNotExist":
            if given:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                found.append(field_errors.forbidden(place, detail))
        case "Gt" | "Lt":
            if len(given) != 1:
                detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                found.append(field_errors.required(place, detail))
        case _:
            found.append(field_errors.invalid(f"{path}.operator", operator, _NOT_AN_OPERATOR))
    key = requirement.get("key", "")
    found += field_errors.invalid_each(f"{path}.key", key, name_rules.qualified_name(key))
    if check_values:
        for index, value in enumerate(given):
            found += field_errors.invalid_each(f"{place}[{index}]", value, name_rules.label_value(value))
    return found


def _node_field_errors(requirement: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    given, operator, key = listed(requirement, "values"), requirement.get("operator", ""), requirement.get("key", "")
    if operator in ("In", "NotIn"):
        if len(given) != 1:
            detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            found.append(field_errors.required(f"{path}.values", detail))
    else:
        found.append(field_errors.invalid(f"{path}.operator", operator, _NOT_AN_OPERATOR))
    if key != "metadata.name":
        return [*found, field_errors.invalid(f"{path}.key", key, "not a valid field selector key")]
    for index, value in enumerate(given):
        found += values.subdomain_errors(f"{path}.values[{index}]", value)
    return found


def _weight_errors(term: Json, path: str) -> list[FieldError]:
    weight = term.get("weight", 0)
    return [] if 0 < weight <= 100 else [field_errors.invalid(f"{path}.weight", weight, "must be in the range 1-100")]


def _pod_affinity_errors(affinity: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for index, term in enumerate(listed(affinity, _REQUIRED)):
        found += _pod_term_errors(term, f"{path}.{_REQUIRED}[{index}]")
    for index, weighted in enumerate(listed(affinity, _PREFERRED)):
        place = f"{path}.{_PREFERRED}[{index}]"
        found += _weight_errors(weighted, place)
        found += _pod_term_errors(part(weighted, "podAffinityTerm"), f"{place}.podAffinityTerm")
    return found


def _pod_term_errors(term: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for key in ("labelSelector", "namespaceSelector"):
        if term.get(key) is not None:
            found += selectors.selector_errors(term[key], f"{path}.{key}")
    for namespace in listed(term, "namespaces"):
        found += field_errors.invalid_each(f"{path}.namespace", namespace, name_rules.dns_label(namespace))
    topology = term.get("topologyKey", "")
    if not topology:
        found.append(field_errors.required(f"{path}.topologyKey", "can not be empty"))
    found += field_errors.invalid_each(f"{path}.topologyKey", topology, name_rules.qualified_name(topology))
    return found + _term_keys_errors(term, path)


def _term_keys_errors(term: Json, path: str) -> list[FieldError]:
    """Errors of the keys that are replaced by the pod's own labels."""
    found: list[FieldError] = []
    for kind in ("matchLabelKeys", "mismatchLabelKeys"):
        keys = listed(term, kind)
        if keys and term.get("labelSelector") is None:
            found.append(
                field_errors.forbidden(f"{path}.{kind}", "must not be specified when labelSelector is not set")
            )
            continue
        for index, key in enumerate(keys):
            found += field_errors.invalid_each(f"{path}.{kind}[{index}]", key, name_rules.qualified_name(key))
    selected: set[str] = {*part(part(term, "labelSelector"), "matchLabels")}
    for index, requirement in enumerate(listed(part(term, "labelSelector"), "matchExpressions")):
        key = requirement.get("key", "")
        if key in selected and key in listed(term, "matchLabelKeys"):
            detail = "exists in both matchLabelKeys and labelSelector"
            found.append(field_errors.invalid(f"{path}[{index}]", key, detail))
        selected.add(key)
    for index, key in enumerate(listed(term, "matchLabelKeys")):
        if key in listed(term, "mismatchLabelKeys"):
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            found.append(field_errors.invalid(f"{path}.matchLabelKeys[{index}]", key, detail))
    return found


def tolerations_errors(tolerations: Sequence[Json], path: str) -> list[FieldError]:
    """Errors of a list of tolerations."""
    found: list[FieldError] = []
    for index, toleration in enumerate(tolerations):
        found += _toleration_errors(toleration, f"{path}[{index}]")
    return found


def _toleration_errors(toleration: Json, path: str) -> list[FieldError]:
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    value, effect = toleration.get("value", ""), toleration.get("effect", "")
    found: list[FieldError] = []
    if key:
        found += field_errors.invalid_each(f"{path}.key", key, name_rules.qualified_name(key))
    elif operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        found.append(field_errors.invalid(f"{path}.operator", operator, detail))
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        found.append(field_errors.invalid(f"{path}.effect", effect, detail))
    match operator:
        case "" | "Equal":
            faulty = name_rules.label_value(value)
            if faulty:
                found.append(field_errors.invalid(f"{path}.operator", value, ";".join(faulty)))
        case "Exists":
            if value:
                detail = "value must be empty when `operator` is 'Exists'"
                found.append(field_errors.invalid(f"{path}.operator", value, detail))
        case _:
            found.append(field_errors.unsupported(f"{path}.operator", operator, ["Equal", "Exists"]))
    if effect and effect not in _EFFECTS:
        found.append(field_errors.unsupported(f"{path}.effect", effect, _EFFECTS))
    return found


def spread_errors(constraints: Sequence[Json], path: str) -> list[FieldError]:
    """Errors of topology spread constraints."""
    found: list[FieldError] = []
    last = {_spread_key(constraint): index for index, constraint in enumerate(constraints)}
    for index, constraint in enumerate(constraints):
        repeated = last[_spread_key(constraint)] > index
        found += _spread_errors(constraint, f"{path}[{index}]", repeated=repeated)
    return found


def _spread_key(constraint: Json) -> tuple[str, str]:
    return constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")


def _spread_errors(constraint: Json, path: str, *, repeated: bool) -> list[FieldError]:
    found: list[FieldError] = []
    skew = constraint.get("maxSkew", 0)
    key, action = _spread_key(constraint)
    if skew <= 0:
        found.append(field_errors.invalid(f"{path}.maxSkew", skew, "must be greater than zero"))
    if not key:
        found.append(field_errors.required(f"{path}.topologyKey", "can not be empty"))
    if action not in ("DoNotSchedule", "ScheduleAnyway"):
        allowed = ["DoNotSchedule", "ScheduleAnyway"]
        found.append(field_errors.unsupported(f"{path}.whenUnsatisfiable", action, allowed))
    if repeated:
        found.append(field_errors.duplicate(f"{path}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
    found += _domains_errors(constraint, action, f"{path}.minDomains")
    for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        value = constraint.get(policy)
        if value is not None and value not in ("Honor", "Ignore"):
            found.append(field_errors.unsupported(f"{path}.{policy}", value, ["Honor", "Ignore"]))
    found += _label_keys_errors(constraint, path)
    if constraint.get("labelSelector") is not None:
        found += selectors.selector_errors(constraint["labelSelector"], f"{path}.labelSelector")
    return found


def _domains_errors(constraint: Json, action: str, path: str) -> list[FieldError]:
    domains = constraint.get("minDomains")
    if domains is None:
        return []
    found: list[FieldError] = []
    if domains <= 0:
        found.append(field_errors.invalid(path, domains, "must be greater than zero"))
    if action != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        found.append(field_errors.invalid(path, domains, detail))
    return found


def _label_keys_errors(constraint: Json, path: str) -> list[FieldError]:
    keys, selector = listed(constraint, "matchLabelKeys"), constraint.get("labelSelector")
    if not keys:
        return []
    place = f"{path}.matchLabelKeys"
    if selector is None:
        return [field_errors.forbidden(place, "must not be specified when labelSelector is not set")]
    used: set[Any] = {*part(selector, "matchLabels")}
    used |= {expression.get("key") for expression in listed(selector, "matchExpressions")}
    found: list[FieldError] = []
    for index, key in enumerate(keys):
        found += field_errors.invalid_each(f"{place}[{index}]", key, name_rules.qualified_name(key))
        if key in used:
            found.append(
                field_errors.invalid(f"{place}[{index}]", key, "exists in both matchLabelKeys and labelSelector")
            )
    return found


def gates_errors(gates: Sequence[Json], path: str) -> list[FieldError]:
    """Errors of scheduling gates: qualified names, each once."""
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        place, name = f"{path}[{index}]", gate.get("name", "")
        found += field_errors.invalid_each(place, name, name_rules.qualified_name(name))
        if name in seen:
            found.append(field_errors.duplicate(place, name))
        seen.add(name)
    return found
