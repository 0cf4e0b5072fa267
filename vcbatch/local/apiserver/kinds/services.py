"""Services and Endpoints. Addresses are handed out so that clients find what they expect; local mode has no proxy that
would serve them, and names of pods resolve without one.

Source: kubernetes `pkg/apis/core/v1/defaults.go`, `pkg/registry/core/service`, `pkg/apis/core/validation`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from vcbatch.api import faults, name_rules, selectors
from vcbatch.api.podspec import values
from vcbatch.api.resources import SERVICES, Resource
from vcbatch.local.apiserver.errors import FieldError
from vcbatch.local.apiserver.kinds.define import STATUS, label_name
from vcbatch.local.apiserver.kinds.pods.warnings import address_warnings
from vcbatch.local.apiserver.kinds.strategy import BuiltIn
from vcbatch.local.apiserver.registry import Json, RequestContext, Served
from vcbatch.local.apiserver.tables import AGE, NAME, NONE, column, dig, labels_text

ENDPOINTS = Resource(group="", version="v1", plural="endpoints", kind="Endpoints")

CLUSTER_NETWORK = ipaddress.IPv4Network("10.96.0.0/16")
NODE_PORTS = range(30000, 32768)
_HEADLESS = "None"
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_SERVED_TYPES = ("ClusterIP", "LoadBalancer", "NodePort")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_AFFINITY_SECONDS = 10800
_LONGEST_AFFINITY = 86400


def _defaults(obj: Json, _old: Json | None, _ctx: RequestContext) -> None:
    spec = obj.setdefault("spec", {})
    for key, value in (("sessionAffinity", "None"), ("type", "ClusterIP")):
        if not spec.get(key):
            spec[key] = value
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        config = spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {})
        config.setdefault("timeoutSeconds", _AFFINITY_SECONDS)
    for port in spec.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port", 0)
    if spec["type"] in ("NodePort", "LoadBalancer") and not spec.get("externalTrafficPolicy"):
        spec["externalTrafficPolicy"] = "Cluster"
    if spec["type"] in _SERVED_TYPES and not spec.get("internalTrafficPolicy"):
        spec["internalTrafficPolicy"] = "Cluster"
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    obj.setdefault("status", {}).setdefault("loadBalancer", {})


def _prepare(obj: Json, old: Json | None, ctx: RequestContext) -> None:
    spec = obj["spec"]
    if old is not None:
        _keep_allocated(spec, old.get("spec") or {})
    if spec["type"] == "ExternalName":
        return
    if spec.get("clusterIPs") and not spec.get("clusterIP"):
        spec["clusterIP"] = spec["clusterIPs"][0]
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    _families(spec)
    if not spec.get("clusterIP"):
        spec["clusterIP"] = _free_address(obj, ctx)
        spec["clusterIPs"] = [spec["clusterIP"]]
    if spec["type"] in ("NodePort", "LoadBalancer") and spec.get("allocateLoadBalancerNodePorts", True):
        _node_ports(obj, ctx)
    if spec["type"] == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local":
        _health_port(obj, old, ctx)


def _health_port(obj: Json, old: Json | None, ctx: RequestContext) -> None:
    """The port where a load balancer asks nodes whether they have pods of the service."""
    spec = obj["spec"]
    if spec.get("healthCheckNodePort"):
        return
    kept = dig(old, "spec", "healthCheckNodePort")
    taken = {port.get("nodePort") for item in [*_others(obj, ctx), obj] for port in dig(item, "spec", "ports") or ()}
    taken |= {dig(item, "spec", "healthCheckNodePort") for item in _others(obj, ctx)}
    spec["healthCheckNodePort"] = kept or next((number for number in NODE_PORTS if number not in taken), 0)


def _keep_allocated(spec: Json, before: Json) -> None:
    """An update that names no address or node port keeps what was handed out; one that changes the type drops it."""
    if spec["type"] == "ExternalName":
        if before.get("type") != "ExternalName":
            for key in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"):
                if spec.get(key) == before.get(key):
                    spec.pop(key, None)
        return
    given, was = spec.get("clusterIP"), before.get("clusterIP")
    if given and given != was and spec.get("clusterIPs") == before.get("clusterIPs"):
        spec["clusterIPs"] = [given]
    if was and not given and not spec.get("clusterIPs") and before.get("type") != "ExternalName":
        spec["clusterIP"], spec["clusterIPs"] = was, list(before.get("clusterIPs") or [was])
    if spec["type"] in ("NodePort", "LoadBalancer"):
        ports = {(port.get("protocol"), port.get("port")): port.get("nodePort") for port in before.get("ports") or ()}
        for port in spec.get("ports") or ():
            kept = ports.get((port.get("protocol"), port.get("port")))
            if kept and not port.get("nodePort"):
                port["nodePort"] = kept
    elif before.get("type") in ("NodePort", "LoadBalancer"):
        ports_before = {port.get("nodePort") for port in before.get("ports") or ()}
        for port in spec.get("ports") or ():
            if port.get("nodePort") in ports_before:
                port.pop("nodePort", None)
        for key in ("externalTrafficPolicy", "allocateLoadBalancerNodePorts"):
            spec.pop(key, None)


def _families(spec: Json) -> None:
    """One family, IPv4, but for a headless service without a selector, whose endpoints may be of both."""
    open_ended = spec.get("clusterIP") == _HEADLESS and not spec.get("selector")
    if not spec.get("ipFamilyPolicy"):
        spec["ipFamilyPolicy"] = "RequireDualStack" if open_ended and not spec.get("ipFamilies") else "SingleStack"
    if not spec.get("ipFamilies"):
        dual = spec["ipFamilyPolicy"] == "RequireDualStack" and open_ended
        spec["ipFamilies"] = ["IPv4", "IPv6"] if dual else ["IPv4"]


def _others(obj: Json, ctx: RequestContext) -> list[Json]:
    metadata = obj.get("metadata") or {}
    own = (metadata.get("namespace") or ctx.namespace, metadata.get("name"))
    stored = ctx.listed(SERVICES, None)
    return [item for item in stored if (item["metadata"].get("namespace"), item["metadata"].get("name")) != own]


def _taken_addresses(obj: Json, ctx: RequestContext) -> set[str]:
    return {address for item in _others(obj, ctx) for address in dig(item, "spec", "clusterIPs") or ()}


def _free_address(obj: Json, ctx: RequestContext) -> str:
    """The lowest free address. The first one is the API server's own."""
    taken = _taken_addresses(obj, ctx)
    for number in range(2, CLUSTER_NETWORK.num_addresses - 1):
        address = str(CLUSTER_NETWORK[number])
        if address not in taken:
            return address
    return ""


def _node_ports(obj: Json, ctx: RequestContext) -> None:
    missing = [port for port in obj["spec"].get("ports") or () if not port.get("nodePort")]
    if not missing:
        return
    taken = {port.get("nodePort") for item in [*_others(obj, ctx), obj] for port in dig(item, "spec", "ports") or ()}
    free = (number for number in NODE_PORTS if number not in taken)
    for port in missing:
        port["nodePort"] = next(free, 0)


def _node_port_faults(obj: Json, old: Json | None, ctx: RequestContext) -> list[FieldError]:
    """Node ports that were asked for and can't be had; a dry run asks for none."""
    if ctx.dry_run:
        return []
    before = {port.get("nodePort") for port in dig(old, "spec", "ports") or ()}
    taken = {port.get("nodePort") for item in _others(obj, ctx) for port in dig(item, "spec", "ports") or ()}
    found: list[FieldError] = []
    for index, port in enumerate(dig(obj, "spec", "ports") or ()):
        number, path = port.get("nodePort"), f"spec.ports[{index}].nodePort"
        if not number or number in before:
            continue
        if number not in NODE_PORTS:
            span = f"{NODE_PORTS[0]}-{NODE_PORTS[-1]}"
            detail = f"provided port is not in the valid range. The range of valid ports is {span}"
            found.append(faults.invalid(path, number, detail))
        elif number in taken:
            found.append(faults.invalid(path, number, "provided port is already allocated"))
    return found


def _check(obj: Json, old: Json | None, ctx: RequestContext) -> list[FieldError]:
    spec = obj.get("spec") or {}
    headless = spec.get("clusterIP") == _HEADLESS
    ports = spec.get("ports") or []
    found: list[FieldError] = []
    if not ports and not headless and spec.get("type") != "ExternalName":
        found.append(faults.required("spec.ports"))
    found += _type_faults(spec, headless)
    seen: set[str] = set()
    for index, port in enumerate(ports):
        found += _port_faults(port, seen, f"spec.ports[{index}]", many=len(ports) > 1)
    found += selectors.label_faults(spec.get("selector"), "spec.selector")
    found += _affinity_faults(spec)
    found += _address_faults(obj, old, ctx)
    for index, address in enumerate(spec.get("externalIPs") or ()):
        found += values.ip_faults(f"spec.externalIPs[{index}]", address)
    kind = spec.get("type", "")
    if kind not in _TYPES:
        found.append(faults.unsupported("spec.type", kind, _TYPES))
    if kind == "ClusterIP":
        for index, port in enumerate(ports):
            if port.get("nodePort"):
                detail = "may not be used when `type` is 'ClusterIP'"
                found.append(faults.forbidden(f"spec.ports[{index}].nodePort", detail))
    found += _repeated_faults(ports)
    found += _policy_faults(spec)
    # What can't be handed out is told only of a service that has no other fault.
    return found or _node_port_faults(obj, old, ctx)


def _type_faults(spec: Json, headless: bool) -> list[FieldError]:
    kind = spec.get("type")
    if kind in ("LoadBalancer", "NodePort") and headless:
        detail = f"may not be set to 'None' for {kind} services"
        return [faults.invalid("spec.clusterIPs[0]", _HEADLESS, detail)]
    if kind != "ExternalName":
        return []
    found = [
        faults.forbidden(f"spec.{key}", "may not be set for ExternalName services")
        for key in ("clusterIPs", "ipFamilies", "ipFamilyPolicy")
        if spec.get(key)
    ]
    target = (spec.get("externalName") or "").removesuffix(".")
    if not target:
        return [*found, faults.required("spec.externalName")]
    return found + values.subdomain_faults("spec.externalName", target)


def _port_faults(port: Json, seen: set[str], path: str, *, many: bool) -> list[FieldError]:
    found: list[FieldError] = []
    name, number = port.get("name", ""), port.get("port", 0)
    if many and not name:
        found.append(faults.required(f"{path}.name"))
    elif name:
        found += values.label_faults(f"{path}.name", name)
        if name in seen:
            found.append(faults.duplicate(f"{path}.name", name))
        seen.add(name)
    found += values.port_number_faults(f"{path}.port", number)
    protocol = port.get("protocol", "")
    if not protocol:
        found.append(faults.required(f"{path}.protocol"))
    elif protocol not in _PROTOCOLS:
        found.append(faults.unsupported(f"{path}.protocol", protocol, _PROTOCOLS))
    found += values.port_faults(f"{path}.targetPort", port.get("targetPort", 0))
    if port.get("appProtocol") is not None:
        found += faults.invalid_each(
            f"{path}.appProtocol", port["appProtocol"], name_rules.qualified_name(port["appProtocol"])
        )
    return found


def _affinity_faults(spec: Json) -> list[FieldError]:
    affinity = spec.get("sessionAffinity", "")
    if not affinity:
        return [faults.required("spec.sessionAffinity")]
    if affinity not in ("ClientIP", "None"):
        return [faults.unsupported("spec.sessionAffinity", affinity, ["ClientIP", "None"])]
    if affinity == "None":
        return []
    seconds = dig(spec, "sessionAffinityConfig", "clientIP", "timeoutSeconds")
    path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
    if seconds is None or 0 < seconds <= _LONGEST_AFFINITY:
        return []
    return [faults.invalid(path, seconds, f"must be greater than 0 and less than {_LONGEST_AFFINITY}")]


def _address_faults(obj: Json, old: Json | None, ctx: RequestContext) -> list[FieldError]:
    spec = obj.get("spec") or {}
    addresses: Sequence[str] = spec.get("clusterIPs") or ()
    found: list[FieldError] = []
    policies = ("PreferDualStack", "RequireDualStack", "SingleStack")
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in policies:
        found.append(faults.unsupported("spec.ipFamilyPolicy", policy, policies))
    families: list[str] = spec.get("ipFamilies") or []
    for index, family in enumerate(families):
        if family in families[:index]:
            found.append(faults.duplicate(f"spec.ipFamilies[{index}]", family))
        if family not in ("IPv4", "IPv6"):
            found.append(faults.unsupported(f"spec.ipFamilies[{index}]", family, ["IPv4", "IPv6"]))
    if spec.get("type") == "ExternalName" or not addresses or addresses[0] == _HEADLESS:
        return found
    if addresses[0] != spec.get("clusterIP"):
        found.append(faults.invalid("spec.clusterIPs", list(addresses), "first value must match `clusterIP`"))
    for index, address in enumerate(addresses):
        found += values.ip_faults(f"spec.clusterIPs[{index}]", address)
    if not found and list(addresses) != (dig(old, "spec", "clusterIPs") or []) and old is None:
        found += _allocation_faults(obj, addresses, ctx)
    return found


def _allocation_faults(obj: Json, addresses: Sequence[str], ctx: RequestContext) -> list[FieldError]:
    address = ipaddress.ip_address(addresses[0])
    path = "spec.clusterIPs"
    head = f"failed to allocate IP {address}: "
    if address not in CLUSTER_NETWORK:
        detail = (
            f"{head}the provided IP ({address}) is not in the valid range. The range of valid IPs is {CLUSTER_NETWORK}"
        )
        return [faults.invalid(path, list(addresses), detail)]
    if str(address) in _taken_addresses(obj, ctx):
        return [faults.invalid(path, list(addresses), f"{head}provided IP is already allocated")]
    return []


def _repeated_faults(ports: Sequence[Json]) -> list[FieldError]:
    found: list[FieldError] = []
    nodes: set[Any] = set()
    used: set[Any] = set()
    for index, port in enumerate(ports):
        key = (port.get("protocol"), port.get("nodePort"))
        if key[1] and key in nodes:
            found.append(faults.duplicate(f"spec.ports[{index}].nodePort", key[1]))
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
                    message=f"Duplicate value: {faults.ordered(shown)}",
                )
            )
        used.add(key)
    return found


def _policy_faults(spec: Json) -> list[FieldError]:
    found: list[FieldError] = []
    external, internal = spec.get("externalTrafficPolicy"), spec.get("internalTrafficPolicy")
    exposed = spec.get("type") in ("NodePort", "LoadBalancer") or bool(spec.get("externalIPs"))
    if external and not exposed:
        detail = "may only be set for externally-accessible services"
        found.append(faults.invalid("spec.externalTrafficPolicy", external, detail))
    elif external and external not in ("Cluster", "Local"):
        found.append(faults.unsupported("spec.externalTrafficPolicy", external, ["Cluster", "Local"]))
    if internal is not None and internal not in ("Cluster", "Local"):
        found.append(faults.unsupported("spec.internalTrafficPolicy", internal, ["Cluster", "Local"]))
    spread = spec.get("trafficDistribution")
    if spread is not None and spread not in _DISTRIBUTIONS:
        found.append(faults.unsupported("spec.trafficDistribution", spread, _DISTRIBUTIONS))
    return found + _balancer_faults(spec)


def _balancer_faults(spec: Json) -> list[FieldError]:
    """Faults of what only a load balancer has."""
    found: list[FieldError] = []
    balanced, port = spec.get("type") == "LoadBalancer", spec.get("healthCheckNodePort", 0)
    if port and not (balanced and spec.get("externalTrafficPolicy") == "Local"):
        found.append(faults.invalid("spec.healthCheckNodePort", port, _HEALTH_PORT))
    elif port:
        found += values.port_number_faults("spec.healthCheckNodePort", port)
    ranges = spec.get("loadBalancerSourceRanges") or []
    if not balanced:
        only = "may only be used when `type` is 'LoadBalancer'"
        found += [
            faults.forbidden(f"spec.{key}", only)
            for key in ("allocateLoadBalancerNodePorts", "loadBalancerClass", "loadBalancerSourceRanges")
            if spec.get(key) not in (None, [])
        ]
        return found
    for index, text in enumerate(ranges):
        found += _range_faults(text, f"spec.loadBalancerSourceRanges[{index}]")
    if spec.get("loadBalancerClass") is not None:
        name = spec["loadBalancerClass"]
        found += faults.invalid_each("spec.loadBalancerClass", name, name_rules.qualified_name(name))
    return found


_HEALTH_PORT = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")


def _range_faults(text: str, path: str) -> list[FieldError]:
    try:
        ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        return [faults.invalid(path, text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")]
    return []


def _warnings(obj: Json) -> Iterator[str]:
    """Source: kubernetes `pkg/api/service/warnings.go`."""
    spec = obj.get("spec") or {}
    kind, headless = spec.get("type"), spec.get("clusterIP") == _HEADLESS and spec.get("type") == "ClusterIP"
    if headless:
        if spec.get("loadBalancerIP"):
            yield "spec.loadBalancerIP is ignored for headless services"
        if spec.get("externalIPs"):
            yield "spec.externalIPs is ignored for headless services"
        if spec.get("sessionAffinity") != "None":
            yield "spec.SessionAffinity is ignored for headless services"
    for index, address in enumerate(spec.get("externalIPs") or ()):
        yield from address_warnings(f"spec.externalIPs[{index}]", address)
    if spec.get("externalIPs") and not headless and kind != "ExternalName":
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
    if spec.get("loadBalancerIP"):
        yield from address_warnings("spec.loadBalancerIP", spec["loadBalancerIP"])
    if kind == "ExternalName" and spec.get("externalIPs"):
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    if kind != "ExternalName" and spec.get("externalName"):
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
    if spec.get("trafficDistribution") == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'


def _change(obj: Json, old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    before, after = dig(old, "spec") or {}, obj.get("spec") or {}
    if before.get("type") == "ExternalName" or after.get("type") == "ExternalName":
        return []
    found: list[FieldError] = []
    for key in ("clusterIPs", "ipFamilies"):
        was, now = before.get(key) or [], after.get(key) or []
        if was and (not now or now[0] != was[0]):
            found.append(faults.invalid(f"spec.{key}[0]", now, "may not change once set"))
    if before.get("type") == after.get("type") == "LoadBalancer":
        was, now = before.get("loadBalancerClass"), after.get("loadBalancerClass")
        if was != now:
            found.append(faults.invalid("spec.loadBalancerClass", now, "may not change once set"))
        port = before.get("healthCheckNodePort")
        if port and after.get("healthCheckNodePort") != port and after.get("externalTrafficPolicy") == "Local":
            found.append(faults.forbidden("spec.healthCheckNodePort", faults.IMMUTABLE))
    return found


def _external_cell(obj: Json, _now: datetime) -> str:
    spec = obj.get("spec") or {}
    extra = list(spec.get("externalIPs") or ())
    if spec.get("type") == "ExternalName":
        return spec.get("externalName") or NONE
    if spec.get("type") == "LoadBalancer":
        entries = dig(obj, "status", "loadBalancer", "ingress") or ()
        shown = [entry.get("ip") or entry.get("hostname") or "" for entry in entries] + extra
        return ",".join(shown) or "<pending>"
    return ",".join(extra) or NONE


def _ports_cell(obj: Json, _now: datetime) -> str:
    shown: list[str] = []
    for port in dig(obj, "spec", "ports") or ():
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        shown.append(f"{port.get('port')}{node}/{port.get('protocol')}")
    return ",".join(shown) or NONE


def _address_cell(obj: Json, _now: datetime) -> str:
    addresses = dig(obj, "spec", "clusterIPs") or ()
    return (addresses[0] if addresses else dig(obj, "spec", "clusterIP")) or NONE


def _endpoints_cell(obj: Json, _now: datetime) -> str:
    shown: list[str] = []
    for subset in obj.get("subsets") or ():
        addresses = [address.get("ip", "") for address in subset.get("addresses") or ()]
        ports = subset.get("ports") or ()
        if not ports:
            shown += addresses
        shown += [f"{address}:{port.get('port')}" for port in ports for address in addresses]
    if not shown:
        return NONE
    more = f" + {len(shown) - 3} more..." if len(shown) > 3 else ""
    return ",".join(shown[:3]) + more


def _endpoints_defaults(obj: Json, _old: Json | None, _ctx: RequestContext) -> None:
    for subset in obj.get("subsets") or ():
        for port in subset.get("ports") or ():
            if not port.get("protocol"):
                port["protocol"] = "TCP"


def _endpoint_address_faults(address: Json, path: str) -> list[FieldError]:
    found = values.ip_faults(f"{path}.ip", address.get("ip", ""))
    if found:
        found.append(faults.invalid(f"{path}.ip", address.get("ip", ""), "must be a valid IP address"))
    if address.get("hostname"):
        found += values.label_faults(f"{path}.hostname", address["hostname"])
    if address.get("nodeName") is not None:
        found += values.subdomain_faults(f"{path}.nodeName", address["nodeName"])
    return found


def _endpoints_faults(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    found: list[FieldError] = []
    for index, subset in enumerate(obj.get("subsets") or ()):
        path = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            found.append(faults.required(path, "must specify `addresses` or `notReadyAddresses`"))
        for key in ("addresses", "notReadyAddresses"):
            for at, address in enumerate(subset.get(key) or ()):
                found += _endpoint_address_faults(address, f"{path}.{key}[{at}]")
        for at, port in enumerate(subset.get("ports") or ()):
            place, name = f"{path}.ports[{at}]", port.get("name")
            if len(subset["ports"]) > 1 and not name:
                found.append(faults.required(f"{place}.name"))
            elif name:
                found += values.label_faults(f"{place}.name", name)
            if port.get("appProtocol") is not None:
                detail = name_rules.qualified_name(port["appProtocol"])
                found += faults.invalid_each(f"{place}.appProtocol", port["appProtocol"], detail)
            found += values.port_number_faults(f"{place}.port", port.get("port", 0))
            if port.get("protocol") not in _PROTOCOLS:
                found.append(faults.unsupported(f"{place}.protocol", port.get("protocol", ""), _PROTOCOLS))
    return found


def served() -> list[Served]:
    return [
        Served(
            resource=SERVICES,
            singular="service",
            short_names=("svc",),
            categories=("all",),
            strategy=BuiltIn(
                type_name="core/v1.Service",
                defaults=_defaults,
                prepare=_prepare,
                check=_check,
                check_update=_change,
                warn=_warnings,
                has_status=True,
                initial_status=lambda: {"loadBalancer": {}},
            ),
            columns=(
                NAME,
                column("Type", lambda obj, _now: dig(obj, "spec", "type") or ""),
                column("Cluster-IP", _address_cell),
                column("External-IP", _external_cell),
                column("Port(s)", _ports_cell),
                AGE,
                column("Selector", lambda obj, _now: labels_text(dig(obj, "spec", "selector")), wide=True),
            ),
            subresources=STATUS,
            selectable_fields=("spec.clusterIP", "spec.type"),
            name_rule=label_name,
            returns_deleted=True,
        ),
        Served(
            resource=ENDPOINTS,
            singular="endpoints",
            short_names=("ep",),
            deprecation="v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
            strategy=BuiltIn(type_name="Endpoints", defaults=_endpoints_defaults, check=_endpoints_faults),
            columns=(NAME, column("Endpoints", _endpoints_cell), AGE),
        ),
    ]
