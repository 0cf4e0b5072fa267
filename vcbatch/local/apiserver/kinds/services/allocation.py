"""The values allocated to a Service when it is written: cluster addresses, node ports, IP families; and which of them
an update keeps.

Source: kubernetes `pkg/registry/core/service`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from vcbatch.api import field_errors
from vcbatch.api.resources import SERVICES
from vcbatch.local.apiserver.apierrors import FieldError
from vcbatch.local.apiserver.registry import Json, RequestContext
from vcbatch.local.apiserver.tables import dig

HEADLESS = "None"
"""The address of a Service without a cluster IP."""

CLUSTER_NETWORK = ipaddress.IPv4Network("10.96.0.0/16")
NODE_PORTS = range(30000, 32768)


def prepare(obj: Json, old: Json | None, ctx: RequestContext) -> None:
    """Allocate the values that `obj` lacks; an update keeps those of `old`."""
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
    """Allocate the port where a load balancer checks which nodes have pods of the service."""
    spec = obj["spec"]
    if spec.get("healthCheckNodePort"):
        return
    kept = dig(old, "spec", "healthCheckNodePort")
    taken = {port.get("nodePort") for item in [*_others(obj, ctx), obj] for port in dig(item, "spec", "ports") or ()}
    taken |= {dig(item, "spec", "healthCheckNodePort") for item in _others(obj, ctx)}
    spec["healthCheckNodePort"] = kept or next((number for number in NODE_PORTS if number not in taken), 0)


def _keep_allocated(spec: Json, before: Json) -> None:
    """Keep the allocated address and node ports where an update names none; a change of the type drops them."""
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
    """Set the IP families: IPv4 only, except for a headless service without a selector, whose endpoints may have
    both."""
    open_ended = spec.get("clusterIP") == HEADLESS and not spec.get("selector")
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


def node_port_errors(obj: Json, old: Json | None, ctx: RequestContext) -> list[FieldError]:
    """Errors of requested node ports that aren't available; none in a dry run."""
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
            found.append(field_errors.invalid(path, number, detail))
        elif number in taken:
            found.append(field_errors.invalid(path, number, "provided port is already allocated"))
    return found


def allocation_errors(obj: Json, addresses: Sequence[str], ctx: RequestContext) -> list[FieldError]:
    """Errors of requested addresses that aren't available."""
    address = ipaddress.ip_address(addresses[0])
    path = "spec.clusterIPs"
    head = f"failed to allocate IP {address}: "
    if address not in CLUSTER_NETWORK:
        detail = (
            f"{head}the provided IP ({address}) is not in the valid range. The range of valid IPs is {CLUSTER_NETWORK}"
        )
        return [field_errors.invalid(path, list(addresses), detail)]
    if str(address) in _taken_addresses(obj, ctx):
        return [field_errors.invalid(path, list(addresses), f"{head}provided IP is already allocated")]
    return []
