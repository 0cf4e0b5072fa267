"""Errors of requests and limits, and the QoS class that they give a pod.

Source: kubernetes `pkg/apis/core/validation` (`validateResourceRequirements`) and `pkg/apis/core/helper/qos`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from vcbatch.api import field_errors, name_rules, quantities
from vcbatch.api.field_errors import FieldError
from vcbatch.api.loose import listed, part
from vcbatch.api.model import Json
from vcbatch.api.podspec.defaults import containers
from vcbatch.api.quantity import MalformedQuantity, parse_quantity

_CONTAINER_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_HUGE_PAGES = "hugepages-"
_COUNTED_IN_CLASS = ("cpu", "memory")


def is_native(resource: str) -> bool:
    """Whether a resource is Kubernetes' own and not an extended one, such as `nvidia.com/gpu`."""
    return "/" not in resource or "kubernetes.io/" in resource


def _overcommits(resource: str) -> bool:
    return is_native(resource) and not resource.startswith(_HUGE_PAGES)


def name_errors(resource: str, path: str) -> list[FieldError]:
    """Errors of a container's resource name."""
    found = field_errors.invalid_each(path, resource, name_rules.qualified_name(resource))
    if found:
        return found
    if "/" not in resource:
        if resource in _CONTAINER_RESOURCES or resource.startswith(_HUGE_PAGES):
            return []
        return [
            field_errors.invalid(path, resource, "must be a standard resource type or fully qualified"),
            field_errors.invalid(path, resource, "must be a standard resource for containers"),
        ]
    if not is_native(resource) and resource.startswith("requests."):
        return [field_errors.invalid(path, resource, "doesn't follow extended resource name standard")]
    return []


def amount_errors(resource: str, amount: Any, path: str) -> list[FieldError]:
    """Errors of a quantity: malformed, negative, or a fraction of an indivisible resource."""
    try:
        parse_quantity(amount)
    except MalformedQuantity as error:
        return [field_errors.invalid(path, amount, str(error))]
    if quantities.compare(amount, "0") < 0:
        return [field_errors.invalid(path, quantities.text(amount), field_errors.NEGATIVE)]
    if not is_native(resource) and quantities.read(amount).milli() % 1000:
        return [field_errors.invalid(path, quantities.text(amount), "must be an integer")]
    return _page_errors(resource, amount, path)


def _page_errors(resource: str, amount: Any, path: str) -> list[FieldError]:
    """Errors of a quantity of huge pages that isn't a multiple of the page size."""
    if not resource.startswith(_HUGE_PAGES):
        return []
    try:
        size = parse_quantity(resource.removeprefix(_HUGE_PAGES)).value()
    except MalformedQuantity:
        return []
    text = quantities.text(amount)
    given = quantities.read(amount).value()
    if size > 0 and given % size == 0:
        return []
    return [field_errors.invalid(path, text, f"{text} is not positive integer multiple of {resource}")]


def requirements_errors(resources: Json, path: str, *, claims: Collection[str]) -> list[FieldError]:
    """Errors of a ResourceRequirements; `claims` are the names of the pod's resource claims."""
    limits, requests = part(resources, "limits"), part(resources, "requests")
    found: list[FieldError] = []
    for name in sorted(limits):
        place = f"{path}.limits[{name}]"
        found += name_errors(name, place)
        found += amount_errors(name, limits[name], place)
    for name in sorted(requests):
        place = f"{path}.requests[{name}]"
        found += name_errors(name, place)
        found += amount_errors(name, requests[name], place)
        found += _against_limit(name, requests[name], limits, path)
    named = {*limits, *requests}
    if any(name.startswith(_HUGE_PAGES) for name in named) and not named & {"cpu", "memory"}:
        found.append(field_errors.forbidden(path, "HugePages require cpu or memory"))
    return found + _claims_errors(resources, f"{path}.claims", claims)


def _against_limit(name: str, amount: Any, limits: Mapping[str, Any], path: str) -> list[FieldError]:
    if name not in limits:
        if _overcommits(name):
            return []
        return [field_errors.required(f"{path}.limits", "Limit must be set for non overcommitable resources")]
    order, place = quantities.compare(amount, limits[name]), f"{path}.requests"
    limit, shown = quantities.text(limits[name]), quantities.text(amount)
    if order != 0 and not _overcommits(name):
        return [field_errors.invalid(place, shown, f"must be equal to {name} limit of {limit}")]
    if order > 0:
        return [field_errors.invalid(place, shown, f"must be less than or equal to {name} limit of {limit}")]
    return []


def _claims_errors(resources: Json, path: str, claims: Collection[str]) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, claim in enumerate(listed(resources, "claims")):
        place, name = f"{path}[{index}]", claim.get("name", "")
        if not name:
            found.append(field_errors.required(place))
        else:
            request = claim.get("request", "")
            key = f"{name}/{request}" if request else name
            found += (
                field_errors.invalid_each(f"{place}.request", request, name_rules.dns_label(request)) if request else []
            )
            if key in seen or name in seen:
                found.append(field_errors.duplicate(place, key))
            elif name not in claims:
                found.append(field_errors.missing(place, name, _claims_reported(claims)))
            seen.add(key)
    return found


def _claims_reported(claims: Collection[str]) -> str:
    names = ", ".join(sorted(name for name in claims if name))
    known = f": {names}" if names else " which is empty"
    return f"must be one of the names in pod.spec.resourceClaims{known}"


def service_class(spec: Json) -> str:
    """The QoS class, Guaranteed, Burstable or BestEffort, from CPU and memory: pod-level resources where they are set,
    else those of the containers."""
    own = part(spec, "resources")
    if own.get("limits") or own.get("requests"):
        return _class_of([own])
    return _class_of([part(container, "resources") for container in containers(spec, ephemeral=False)])


def _class_of(of: Sequence[Json]) -> str:
    requests: dict[str, bool] = {}
    limits: dict[str, bool] = {}
    totals: dict[str, list[Any]] = {}
    guaranteed = True
    for resources in of:
        named = {
            kind: {name: amount for name, amount in part(resources, kind).items() if _counts(name, amount)}
            for kind in ("requests", "limits")
        }
        for name in named["requests"]:
            requests[name] = True
        for name in named["limits"]:
            limits[name] = True
        guaranteed = guaranteed and set(named["limits"]) >= set(_COUNTED_IN_CLASS)
        for name in _COUNTED_IN_CLASS:
            pair = (named["requests"].get(name, "0"), named["limits"].get(name, "0"))
            totals.setdefault(name, []).append(quantities.compare(*pair) == 0)
    if not requests and not limits:
        return "BestEffort"
    if guaranteed and all(all(equal) for equal in totals.values()) and len(requests) == len(limits):
        return "Guaranteed"
    return "Burstable"


def _counts(name: str, amount: Any) -> bool:
    return name in _COUNTED_IN_CLASS and quantities.compare(amount, "0") > 0
