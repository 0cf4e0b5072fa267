"""Decides which webhooks apply to a request.

Source: apiserver `pkg/admission/plugin/webhook/{rules,predicates,matchconditions,generic}`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vcbatch.api import selectors
from vcbatch.api.resources import NAMESPACES
from vcbatch.local.apiserver import expressions
from vcbatch.local.apiserver.admission.hooks import Condition, Rule
from vcbatch.local.apiserver.admission.request import AdmissionRequest
from vcbatch.local.apiserver.apierrors import forbidden, not_found
from vcbatch.local.apiserver.registry import Served
from vcbatch.local.apiserver.served import ServedSet
from vcbatch.local.apiserver.store import Store

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """The properties of a request that rules match; a server sees few different ones."""

    group: str
    version: str
    plural: str
    subresource: str
    operation: str
    in_namespace: bool

    @classmethod
    def of(cls, request: AdmissionRequest) -> Place:
        resource = request.resource
        return cls(
            resource.group,
            resource.version,
            resource.plural,
            request.subresource,
            request.operation,
            bool(request.namespace) and (resource.group, resource.plural) != (NAMESPACES.group, NAMESPACES.plural),
        )


def concerns(rule: Rule, place: Place) -> bool:
    """Whether the rule matches such requests."""
    return (
        rule.scope in ("*", "Namespaced" if place.in_namespace else "Cluster")
        and _names(rule.operations, place.operation)
        and _names(rule.groups, place.group)
        and _names(rule.versions, place.version)
        and any(_is_resource(resource, place) for resource in rule.resources)
    )


def _names(values: Sequence[str], value: str) -> bool:
    return "*" in values or value in values


def _is_resource(given: str, place: Place) -> bool:
    name, _, sub = given.partition("/")
    return name in ("*", place.plural) and sub in ("*", place.subresource)


def served_as(rules: Sequence[Rule], place: Place, served: ServedSet, *, equivalent: bool) -> Served | None:
    """The entry in whose version the webhook gets such requests, None where its rules don't match them. With
    `equivalent`, rules may name another version of the same resource."""
    own = served.at(place.group, place.version, place.plural)
    if own is None:
        return None
    if any(concerns(rule, place) for rule in rules):
        return own
    if equivalent:
        others = [entry for entry in served.stored_as(own.stored_as) if entry is not own]
        for rule in rules:
            for entry in others:
                if concerns(rule, _moved(place, entry)):
                    return entry
    return None


def _moved(place: Place, entry: Served) -> Place:
    resource = entry.resource
    return Place(
        resource.group, resource.version, resource.plural, place.subresource, place.operation, place.in_namespace
    )


# -- selectors ------------------------------------------------------------------------------------------------------


def selected_namespace(selector: Mapping[str, Any], request: AdmissionRequest, store: Store) -> bool:
    """Whether the labels of the request's namespace match. True for cluster-scoped objects. Raises 404 where the
    namespace doesn't exist."""
    is_namespace = request.resource == NAMESPACES
    if not selector or not (request.namespace or is_namespace):
        return True
    if is_namespace and not request.subresource and request.object is not None:
        return selectors.matches(dict(selector), _labels(request.object))
    record = store.get(NAMESPACES, None, request.namespace)
    if record is None:
        raise not_found(group="", plural="namespaces", name=request.namespace)
    return selectors.matches(dict(selector), record.labels)


def selected_object(selector: Mapping[str, Any], request: AdmissionRequest) -> bool:
    """Whether the labels of the object, or of the old object, match."""
    if not selector:
        return True
    return any(
        obj is not None and selectors.matches(dict(selector), _labels(obj)) for obj in (request.object, request.old)
    )


def _labels(obj: Json) -> Mapping[str, str]:
    return (obj.get("metadata") or {}).get("labels") or {}


_CONDITION_LIMIT = 2_500_000
"""The limit of the cost of one webhook's conditions for a request. Source: k8s.io/apiserver `pkg/apis/cel/config.go`,
RuntimeCELCostBudgetMatchConditions."""


# -- conditions -----------------------------------------------------------------------------------------------------


def fulfilled(
    conditions: Sequence[Condition],
    request: AdmissionRequest,
    review: Json,
    *,
    ignores_failure: bool,
    patient: bool = True,
) -> bool:
    """Whether all conditions are true for the `request` of the review. A false condition takes precedence over one that
    can't be evaluated; with only the latter, the request is refused (403), or with `ignores_failure` the webhook
    skipped. Not `patient`: raises `expressions.TooLong` instead of blocking the event loop."""
    troubles: list[str] = []
    costs = expressions.Costs(patient=patient, limit=_CONDITION_LIMIT)
    for condition in conditions:
        outcome = costs.run(condition.expression, variables_of(review))
        if outcome is False:
            return False
        if isinstance(outcome, expressions.Trouble):
            troubles.append(f"expression '{condition.expression}' resulted in error: {outcome.text}")
        elif outcome is not True:
            troubles.append(f"expression '{condition.expression}' resulted in error: it gives no bool")
    if not troubles:
        return True
    if ignores_failure:
        return False
    resource, message = request.resource, troubles[0] if len(troubles) == 1 else f"[{', '.join(troubles)}]"
    raise forbidden(group=resource.group, plural=resource.plural, name=request.name, message=message)


def variables_of(review: Json) -> dict[str, Any]:
    """The variables of expressions from the `request` of an AdmissionReview."""
    facts = {key: value for key, value in review.items() if key not in ("object", "oldObject")}
    return {"object": review.get("object"), "oldObject": review.get("oldObject"), "request": facts}


def equivalent_conversion(own: Served, other: Served, obj: Json) -> Json:
    """The object in the version that `other` serves. The given one isn't changed."""
    if own is other:
        return obj
    stored = own.to_storage(dict(obj)) if own.to_storage else obj
    if other.from_storage:
        return other.from_storage(dict(stored))
    return {**stored, "apiVersion": other.resource.api_version, "kind": other.resource.kind}
