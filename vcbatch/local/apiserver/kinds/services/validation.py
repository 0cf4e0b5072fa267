"""Validation of Services, on creates and updates.

Source: kubernetes `pkg/apis/core/validation`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Any

from vcbatch.api import field_errors, name_rules, selectors
from vcbatch.api.podspec import values
from vcbatch.local.apiserver.apierrors import FieldError
from vcbatch.local.apiserver.kinds.services.allocation import HEADLESS, allocation_errors, node_port_errors
from vcbatch.local.apiserver.registry import Json, RequestContext
from vcbatch.local.apiserver.tables import dig

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_LONGEST_AFFINITY = 86400
_HEALTH_PORT = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_PROTOCOLS = ("SCTP", "TCP", "UDP")


def service_errors(obj: Json, old: Json | None, ctx: RequestContext) -> list[FieldError]:
    """All errors of a new or updated Service."""
    spec = obj.get("spec") or {}
    headless = spec.get("clusterIP") == HEADLESS
    ports = spec.get("ports") or []
    found: list[FieldError] = []
    if not ports and not headless and spec.get("type") != "ExternalName":
        found.append(field_errors.required("spec.ports"))
    found += _type_errors(spec, headless)
    seen: set[str] = set()
    for index, port in enumerate(ports):
        found += _port_errors(port, seen, f"spec.ports[{index}]", many=len(ports) > 1)
    found += selectors.label_errors(spec.get("selector"), "spec.selector")
    found += _affinity_errors(spec)
    found += _address_errors(obj, old, ctx)
    for index, address in enumerate(spec.get("externalIPs") or ()):
        found += values.ip_errors(f"spec.externalIPs[{index}]", address)
    kind = spec.get("type", "")
    if kind not in _TYPES:
        found.append(field_errors.unsupported("spec.type", kind, _TYPES))
    if kind == "ClusterIP":
        for index, port in enumerate(ports):
            if port.get("nodePort"):
                detail = "may not be used when `type` is 'ClusterIP'"
                found.append(field_errors.forbidden(f"spec.ports[{index}].nodePort", detail))
    found += _repeated_errors(ports)
    found += _policy_errors(spec)
    # Errors of the allocation are reported only for a service without other errors.
    return found or node_port_errors(obj, old, ctx)


def _type_errors(spec: Json, headless: bool) -> list[FieldError]:
    kind = spec.get("type")
    if kind in ("LoadBalancer", "NodePort") and headless:
        detail = f"may not be set to 'None' for {kind} services"
        return [field_errors.invalid("spec.clusterIPs[0]", HEADLESS, detail)]
    if kind != "ExternalName":
        return []
    found = [
        field_errors.forbidden(f"spec.{key}", "may not be set for ExternalName services")
        for key in ("clusterIPs", "ipFamilies", "ipFamilyPolicy")
        if spec.get(key)
    ]
    target = (spec.get("externalName") or "").removesuffix(".")
    if not target:
        return [*found, field_errors.required("spec.externalName")]
    return found + values.subdomain_errors("spec.externalName", target)


def _port_errors(port: Json, seen: set[str], path: str, *, many: bool) -> list[FieldError]:
    found: list[FieldError] = []
    name, number = port.get("name", ""), port.get("port", 0)
    if many and not name:
        found.append(field_errors.required(f"{path}.name"))
    elif name:
        found += values.label_errors(f"{path}.name", name)
        if name in seen:
            found.append(field_errors.duplicate(f"{path}.name", name))
        seen.add(name)
    found += values.port_number_errors(f"{path}.port", number)
    protocol = port.get("protocol", "")
    if not protocol:
        found.append(field_errors.required(f"{path}.protocol"))
    elif protocol not in _PROTOCOLS:
        found.append(field_errors.unsupported(f"{path}.protocol", protocol, _PROTOCOLS))
    found += values.port_errors(f"{path}.targetPort", port.get("targetPort", 0))
    if port.get("appProtocol") is not None:
        found += field_errors.invalid_each(
            f"{path}.appProtocol", port["appProtocol"], name_rules.qualified_name(port["appProtocol"])
        )
    return found


def _affinity_errors(spec: Json) -> list[FieldError]:
    affinity = spec.get("sessionAffinity", "")
    if not affinity:
        return [field_errors.required("spec.sessionAffinity")]
    if affinity not in ("ClientIP", "None"):
        return [field_errors.unsupported("spec.sessionAffinity", affinity, ["ClientIP", "None"])]
    if affinity == "None":
        return []
    seconds = dig(spec, "sessionAffinityConfig", "clientIP", "timeoutSeconds")
    path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
    if seconds is None or 0 < seconds <= _LONGEST_AFFINITY:
        return []
    return [field_errors.invalid(path, seconds, f"must be greater than 0 and less than {_LONGEST_AFFINITY}")]


def _address_errors(obj: Json, old: Json | None, ctx: RequestContext) -> list[FieldError]:
    spec = obj.get("spec") or {}
    addresses: Sequence[str] = spec.get("clusterIPs") or ()
    found: list[FieldError] = []
    policies = ("PreferDualStack", "RequireDualStack", "SingleStack")
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in policies:
        found.append(field_errors.unsupported("spec.ipFamilyPolicy", policy, policies))
    families: list[str] = spec.get("ipFamilies") or []
    for index, family in enumerate(families):
        if family in families[:index]:
            found.append(field_errors.duplicate(f"spec.ipFamilies[{index}]", family))
        if family not in ("IPv4", "IPv6"):
            found.append(field_errors.unsupported(f"spec.ipFamilies[{index}]", family, ["IPv4", "IPv6"]))
    if spec.get("type") == "ExternalName" or not addresses or addresses[0] == HEADLESS:
        return found
    if addresses[0] != spec.get("clusterIP"):
        found.append(field_errors.invalid("spec.clusterIPs", list(addresses), "first value must match `clusterIP`"))
    for index, address in enumerate(addresses):
        found += values.ip_errors(f"spec.clusterIPs[{index}]", address)
    if not found and list(addresses) != (dig(old, "spec", "clusterIPs") or []) and old is None:
        found += allocation_errors(obj, addresses, ctx)
    return found


def _repeated_errors(ports: Sequence[Json]) -> list[FieldError]:
    found: list[FieldError] = []
    nodes: set[Any] = set()
    used: set[Any] = set()
    for index, port in enumerate(ports):
        key = (port.get("protocol"), port.get("nodePort"))
        if key[1] and key in nodes:
            found.append(field_errors.duplicate(f"spec.ports[{index}].nodePort", key[1]))
        nodes.add(key)
    for index, port in enumerate(ports):
        key = (port.get("protocol"), port.get("port"))
        if key in used:
            shown = {
                "Name": "",
                "Protocol": key[0],
                "AppProtocol": None,
                "Port": key[1],
                "TargetPort": 0,
                "NodePort": 0,
            }
            found.append(
                FieldError(
                    reason="FieldValueDuplicate",
                    field=f"spec.ports[{index}]",
                    message=f"Duplicate value: {field_errors.ordered(shown)}",
                )
            )
        used.add(key)
    return found


def _policy_errors(spec: Json) -> list[FieldError]:
    found: list[FieldError] = []
    external, internal = spec.get("externalTrafficPolicy"), spec.get("internalTrafficPolicy")
    exposed = spec.get("type") in ("NodePort", "LoadBalancer") or bool(spec.get("externalIPs"))
    if external and not exposed:
        detail = "may only be set for externally-accessible services"
        found.append(field_errors.invalid("spec.externalTrafficPolicy", external, detail))
    elif external and external not in ("Cluster", "Local"):
        found.append(field_errors.unsupported("spec.externalTrafficPolicy", external, ["Cluster", "Local"]))
    if internal is not None and internal not in ("Cluster", "Local"):
        found.append(field_errors.unsupported("spec.internalTrafficPolicy", internal, ["Cluster", "Local"]))
    spread = spec.get("trafficDistribution")
    if spread is not None and spread not in _DISTRIBUTIONS:
        found.append(field_errors.unsupported("spec.trafficDistribution", spread, _DISTRIBUTIONS))
    return found + _balancer_errors(spec)


def _balancer_errors(spec: Json) -> list[FieldError]:
    """Errors of the fields that only a load balancer has."""
    found: list[FieldError] = []
    balanced, port = spec.get("type") == "LoadBalancer", spec.get("healthCheckNodePort", 0)
    if port and not (balanced and spec.get("externalTrafficPolicy") == "Local"):
        found.append(field_errors.invalid("spec.healthCheckNodePort", port, _HEALTH_PORT))
    elif port:
        found += values.port_number_errors("spec.healthCheckNodePort", port)
    ranges = spec.get("loadBalancerSourceRanges") or []
    if not balanced:
        only = "may only be used when `type` is 'LoadBalancer'"
        found += [
            field_errors.forbidden(f"spec.{key}", only)
            for key in ("allocateLoadBalancerNodePorts", "loadBalancerClass", "loadBalancerSourceRanges")
            if spec.get(key) not in (None, [])
        ]
        return found
    for index, text in enumerate(ranges):
        found += _range_errors(text, f"spec.loadBalancerSourceRanges[{index}]")
    if spec.get("loadBalancerClass") is not None:
        name = spec["loadBalancerClass"]
        found += field_errors.invalid_each("spec.loadBalancerClass", name, name_rules.qualified_name(name))
    return found


def _range_errors(text: str, path: str) -> list[FieldError]:
    try:
        ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        return [field_errors.invalid(path, text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")]
    return []


def change_errors(obj: Json, old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    """Errors of fields whose values in `old` may not be changed."""
    before, after = dig(old, "spec") or {}, obj.get("spec") or {}
    if before.get("type") == "ExternalName" or after.get("type") == "ExternalName":
        return []
    found: list[FieldError] = []
    for key in ("clusterIPs", "ipFamilies"):
        was, now = before.get(key) or [], after.get(key) or []
        if was and (not now or now[0] != was[0]):
            found.append(field_errors.invalid(f"spec.{key}[0]", now, "may not change once set"))
    if before.get("type") == after.get("type") == "LoadBalancer":
        was, now = before.get("loadBalancerClass"), after.get("loadBalancerClass")
        if was != now:
            found.append(field_errors.invalid("spec.loadBalancerClass", now, "may not change once set"))
        port = before.get("healthCheckNodePort")
        if port and after.get("healthCheckNodePort") != port and after.get("externalTrafficPolicy") == "Local":
            found.append(field_errors.forbidden("spec.healthCheckNodePort", field_errors.IMMUTABLE))
    return found
