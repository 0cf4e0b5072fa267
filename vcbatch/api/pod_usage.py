"""The quota usage of a pod: the keys and sums of Kubernetes' own pod quota evaluator, with which `minResources` of a
PodGroup is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import msgspec

from vcbatch.api.quantity import MalformedQuantity, Quantity, of_value, parse_quantity

Json = Mapping[str, Any]
Amounts = dict[str, Quantity]

_NATIVE: Final = ("cpu", "memory", "ephemeral-storage")
_HUGEPAGES: Final = "hugepages-"
_REQUESTS: Final = "requests."
_LIMITS: Final = "limits."


def pod_usage(pod_spec: Json) -> Amounts:
    """The usage of one pod of this spec, by quota key. A malformed quantity counts as absent: the API server rejects
    the pod itself, and names the field."""
    requests = _effective(pod_spec, "requests")
    limits = _effective(pod_spec, "limits")
    usage: Amounts = {"count/pods": of_value(1), "pods": of_value(1)}
    for resource, amount in requests.items():
        if resource in _NATIVE or resource.startswith(_HUGEPAGES) or _extended(resource):
            usage[resource] = amount
            usage[_REQUESTS + resource] = amount
    for resource, amount in limits.items():
        if resource in _NATIVE:
            usage[_LIMITS + resource] = amount
    return usage


def read_of_spec(pod_spec: Json) -> bytes:
    """The part of a spec that `pod_usage` reads, as the bytes of a spec: where it is equal, so is the usage."""
    part: Json = {"overhead": pod_spec.get("overhead")}
    for key in ("containers", "initContainers"):
        part[key] = [
            {"resources": container.get("resources"), "restartPolicy": container.get("restartPolicy")}
            for container in _containers(pod_spec, key)
        ]
    return msgspec.json.encode(part)


def add(total: Amounts, usage: Mapping[str, Quantity], *, times: int) -> None:
    """Add `times` the usage to the total, in place."""
    if times <= 0:
        return
    for key, amount in usage.items():
        more = amount * times
        total[key] = total[key] + more if key in total else more


def wire(amounts: Amounts) -> dict[str, str]:
    """A ResourceList, with sorted keys, so that equal quantities give equal text."""
    return {key: amounts[key].format() for key in sorted(amounts)}


def _extended(resource: str) -> bool:
    """Whether quota counts this as an extended resource: its domain isn't kubernetes.io."""
    domain, slash, _ = resource.partition("/")
    return bool(slash) and not domain.endswith("kubernetes.io") and not resource.startswith(_REQUESTS)


def _effective(pod_spec: Json, which: str) -> Amounts:
    """The larger of the sum of the regular containers and the maximum of the init containers, each with the restartable
    init containers (KEP-753) that run at the same time, plus the pod's overhead."""
    running: Amounts = {}
    for container in _containers(pod_spec, "containers"):
        _sum(running, _amounts(container, which))
    beside: Amounts = {}
    peak: Amounts = {}
    for container in _containers(pod_spec, "initContainers"):
        own = _amounts(container, which)
        if container.get("restartPolicy") == "Always":
            _sum(running, own)
            _sum(beside, own)
            _raise(peak, beside)
        else:
            together = dict(own)
            _sum(together, beside)
            _raise(peak, together)
    _raise(running, peak)
    overhead = _quantities(pod_spec.get("overhead"))
    if which == "limits":  # overhead is added to existing limits only
        overhead = {key: amount for key, amount in overhead.items() if key in running}
    _sum(running, overhead)
    return running


def _containers(pod_spec: Json, key: str) -> Iterable[Json]:
    return pod_spec.get(key) or ()


def _amounts(container: Json, which: str) -> Amounts:
    resources = cast(Json, container.get("resources") or {})
    return _quantities(resources.get(which))


def _quantities(given: Any) -> Amounts:
    amounts: Amounts = {}
    for key, value in cast(Json, given or {}).items():
        try:
            amounts[key] = parse_quantity(value)
        except MalformedQuantity:
            continue
    return amounts


def _sum(total: Amounts, more: Amounts) -> None:
    for key, amount in more.items():
        total[key] = total[key] + amount if key in total else amount


def _raise(total: Amounts, other: Amounts) -> None:
    for key, amount in other.items():
        if key not in total or total[key] < amount:
            total[key] = amount
