"""networking.k8s.io and discovery.k8s.io: stored and printed; local mode has no proxy and filters no traffic."""

from __future__ import annotations

import ipaddress
from datetime import datetime

from vcbatch.api import field_errors, selectors
from vcbatch.api.podspec.values import ip_errors, label_errors, subdomain_errors
from vcbatch.api.resources import NETWORKPOLICIES, Resource
from vcbatch.local.apiserver.apierrors import FieldError
from vcbatch.local.apiserver.kinds.define import STATUS
from vcbatch.local.apiserver.kinds.strategy import BuiltIn
from vcbatch.local.apiserver.registry import Json, RequestContext, Served
from vcbatch.local.apiserver.tables import AGE, NAME, NONE, UNSET, at, column, dig, selector_text

INGRESSES = Resource(group="networking.k8s.io", version="v1", plural="ingresses", kind="Ingress")
INGRESS_CLASSES = Resource(
    group="networking.k8s.io", version="v1", plural="ingressclasses", kind="IngressClass", namespaced=False
)
ENDPOINT_SLICES = Resource(group="discovery.k8s.io", version="v1", plural="endpointslices", kind="EndpointSlice")


_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")


def _policy_defaults(obj: Json, _old: Json | None, _ctx: RequestContext) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("podSelector", {})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress"] + (["Egress"] if spec.get("egress") else [])
    for rule in [*(spec.get("ingress") or ()), *(spec.get("egress") or ())]:
        for port in rule.get("ports") or ():
            port.setdefault("protocol", "TCP")


def _policy_errors(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    spec = obj.get("spec") or {}
    found = selectors.selector_errors(spec.get("podSelector") or {}, "spec.podSelector")
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or ()):
            path = f"spec.{direction}[{index}]"
            for at_port, port in enumerate(rule.get("ports") or ()):
                found += _port_errors(port, f"{path}.ports[{at_port}]")
            for at_peer, peer in enumerate(rule.get(peers) or ()):
                found += _peer_errors(peer, f"{path}.{peers}[{at_peer}]")
    types = spec.get("policyTypes") or []
    if len(types) > 2:
        found.append(field_errors.invalid("spec.policyTypes", types, "may not specify more than two policyTypes"))
        return found
    for index, kind in enumerate(types):
        if kind not in ("Ingress", "Egress"):
            found.append(field_errors.unsupported(f"spec.policyTypes[{index}]", kind, ["Egress", "Ingress"]))
    return found


def _port_errors(port: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    if port.get("protocol") not in ("TCP", "UDP", "SCTP"):
        found.append(field_errors.unsupported(f"{path}.protocol", port.get("protocol"), ["SCTP", "TCP", "UDP"]))
    number = port.get("port")
    if isinstance(number, int) and not 1 <= number <= 65535:
        found.append(field_errors.invalid(f"{path}.port", number, field_errors.between(1, 65535)))
    return found


def _peer_errors(peer: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for key in ("podSelector", "namespaceSelector"):
        if peer.get(key) is not None:
            found += selectors.selector_errors(peer[key], f"{path}.{key}")
    block = peer.get("ipBlock")
    if block is not None:
        found += _block_errors(block, f"{path}.ipBlock")
    kinds = sum(1 for key in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(key) is not None)
    if not kinds:
        found.append(field_errors.required(path, "must specify a peer"))
    elif kinds > 1 and block is not None:
        found.append(field_errors.forbidden(path, "may not specify both ipBlock and another peer"))
    return found


def _block_errors(block: Json, path: str) -> list[FieldError]:
    cidr = block.get("cidr", "")
    if not cidr:
        return [field_errors.required(f"{path}.cidr")]
    found: list[FieldError] = []
    for place, text in ((f"{path}.cidr", cidr), *((f"{path}.except", item) for item in block.get("except") or ())):
        try:
            ipaddress.ip_network(text, strict=False)
        except ValueError:
            detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
            found.append(field_errors.invalid(place, text, detail))
    return found


def _ingress_hosts(obj: Json, _now: datetime) -> str:
    hosts = [rule["host"] for rule in dig(obj, "spec", "rules") or () if rule.get("host")]
    return ",".join(hosts) or "*"


def _ingress_address(obj: Json, _now: datetime) -> str:
    entries = dig(obj, "status", "loadBalancer", "ingress") or ()
    return ",".join(entry.get("ip") or entry.get("hostname") or "" for entry in entries)


def _ingress_ports(obj: Json, _now: datetime) -> str:
    return "80, 443" if dig(obj, "spec", "tls") else "80"


def _ingress_defaults(obj: Json, _old: Json | None, _ctx: RequestContext) -> None:
    status = obj.setdefault("status", {})
    status.setdefault("loadBalancer", {})


def _slice_defaults(obj: Json, _old: Json | None, _ctx: RequestContext) -> None:
    for port in obj.get("ports") or ():
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")


def _slice_errors(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    """Source: kubernetes `pkg/apis/discovery/validation`."""
    kind = obj.get("addressType", "")
    found: list[FieldError] = []
    if not kind:
        found.append(field_errors.required("addressType"))
    elif kind not in _ADDRESS_TYPES:
        found.append(field_errors.unsupported("addressType", kind, _ADDRESS_TYPES))
    for index, endpoint in enumerate(obj.get("endpoints") or ()):
        path = f"endpoints[{index}].addresses"
        addresses = endpoint.get("addresses") or []
        if not addresses:
            found.append(field_errors.required(path, "must contain at least 1 address"))
        for at_address, address in enumerate(addresses):
            place = f"{path}[{at_address}]"
            found += subdomain_errors(place, address) if kind == "FQDN" else ip_errors(place, address)
    for index, port in enumerate(obj.get("ports") or ()):
        if port.get("name"):
            found += label_errors(f"ports[{index}].name", port["name"])
        if port.get("protocol") not in ("TCP", "UDP", "SCTP"):
            allowed = ["SCTP", "TCP", "UDP"]
            found.append(field_errors.unsupported(f"ports[{index}].protocol", port.get("protocol", ""), allowed))
    return found


def _slice_change(obj: Json, old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    return field_errors.immutable("addressType", obj.get("addressType"), (old or {}).get("addressType"))


def _slice_ports(obj: Json, _now: datetime) -> str:
    return ",".join(str(port.get("port", "*")) for port in obj.get("ports") or ()) or UNSET


def _slice_endpoints(obj: Json, _now: datetime) -> str:
    addresses = [address for endpoint in obj.get("endpoints") or () for address in endpoint.get("addresses") or ()]
    if not addresses:
        return UNSET
    more = f" + {len(addresses) - 3} more..." if len(addresses) > 3 else ""
    return ",".join(addresses[:3]) + more


def _class_parameters(obj: Json, _now: datetime) -> str:
    reference = dig(obj, "spec", "parameters")
    if not reference:
        return NONE
    group = f".{reference['apiGroup']}" if reference.get("apiGroup") else ""
    return f"{reference.get('kind', '')}{group}/{reference.get('name', '')}"


def served() -> list[Served]:
    return [
        Served(
            resource=NETWORKPOLICIES,
            singular="networkpolicy",
            short_names=("netpol",),
            strategy=BuiltIn(
                type_name="NetworkPolicy", defaults=_policy_defaults, check=_policy_errors, generation=True
            ),
            columns=(
                NAME,
                column("Pod-Selector", lambda obj, _now: selector_text(dig(obj, "spec", "podSelector"))),
                AGE,
            ),
        ),
        Served(
            resource=INGRESSES,
            singular="ingress",
            short_names=("ing",),
            strategy=BuiltIn(
                type_name="Ingress",
                defaults=_ingress_defaults,
                has_status=True,
                initial_status=lambda: {"loadBalancer": {}},
                generation=True,
            ),
            columns=(
                NAME,
                column("Class", at("spec", "ingressClassName", default=NONE)),
                column("Hosts", _ingress_hosts),
                column("Address", _ingress_address),
                column("Ports", _ingress_ports),
                AGE,
            ),
            subresources=STATUS,
        ),
        Served(
            resource=INGRESS_CLASSES,
            singular="ingressclass",
            strategy=BuiltIn(type_name="IngressClass", generation=True),
            columns=(
                NAME,
                column("Controller", at("spec", "controller")),
                column("Parameters", _class_parameters),
                AGE,
            ),
        ),
        Served(
            resource=ENDPOINT_SLICES,
            singular="endpointslice",
            strategy=BuiltIn(
                type_name="EndpointSlice",
                defaults=_slice_defaults,
                check=_slice_errors,
                check_update=_slice_change,
                generation=True,
            ),
            columns=(
                NAME,
                column("AddressType", at("addressType")),
                column("Ports", _slice_ports),
                column("Endpoints", _slice_endpoints),
                AGE,
            ),
        ),
    ]
