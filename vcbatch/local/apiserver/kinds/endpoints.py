"""Endpoints, which clients write; no controller of this server does.

Source: kubernetes `pkg/apis/core/validation`.
"""

from __future__ import annotations

from datetime import datetime

from vcbatch.api import field_errors, name_rules
from vcbatch.api.podspec import values
from vcbatch.api.resources import Resource
from vcbatch.local.apiserver.apierrors import FieldError
from vcbatch.local.apiserver.kinds.strategy import BuiltIn
from vcbatch.local.apiserver.registry import Json, RequestContext, Served
from vcbatch.local.apiserver.tables import AGE, NAME, NONE, column

ENDPOINTS = Resource(group="", version="v1", plural="endpoints", kind="Endpoints")
_PROTOCOLS = ("SCTP", "TCP", "UDP")


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


def _endpoint_address_errors(address: Json, path: str) -> list[FieldError]:
    found = values.ip_errors(f"{path}.ip", address.get("ip", ""))
    if found:
        found.append(field_errors.invalid(f"{path}.ip", address.get("ip", ""), "must be a valid IP address"))
    if address.get("hostname"):
        found += values.label_errors(f"{path}.hostname", address["hostname"])
    if address.get("nodeName") is not None:
        found += values.subdomain_errors(f"{path}.nodeName", address["nodeName"])
    return found


def _endpoints_errors(obj: Json, _old: Json | None, _ctx: RequestContext) -> list[FieldError]:
    found: list[FieldError] = []
    for index, subset in enumerate(obj.get("subsets") or ()):
        path = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            found.append(field_errors.required(path, "must specify `addresses` or `notReadyAddresses`"))
        for key in ("addresses", "notReadyAddresses"):
            for at, address in enumerate(subset.get(key) or ()):
                found += _endpoint_address_errors(address, f"{path}.{key}[{at}]")
        for at, port in enumerate(subset.get("ports") or ()):
            place, name = f"{path}.ports[{at}]", port.get("name")
            if len(subset["ports"]) > 1 and not name:
                found.append(field_errors.required(f"{place}.name"))
            elif name:
                found += values.label_errors(f"{place}.name", name)
            if port.get("appProtocol") is not None:
                detail = name_rules.qualified_name(port["appProtocol"])
                found += field_errors.invalid_each(f"{place}.appProtocol", port["appProtocol"], detail)
            found += values.port_number_errors(f"{place}.port", port.get("port", 0))
            if port.get("protocol") not in _PROTOCOLS:
                found.append(field_errors.unsupported(f"{place}.protocol", port.get("protocol", ""), _PROTOCOLS))
    return found


def served() -> list[Served]:
    return [
        Served(
            resource=ENDPOINTS,
            singular="endpoints",
            short_names=("ep",),
            deprecation="v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
            strategy=BuiltIn(type_name="Endpoints", defaults=_endpoints_defaults, check=_endpoints_errors),
            columns=(NAME, column("Endpoints", _endpoints_cell), AGE),
        ),
    ]
