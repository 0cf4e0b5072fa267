"""The resource entry of Services: their defaults and printing.

Source: kubernetes `pkg/apis/core/v1/defaults.go`.
"""

from __future__ import annotations

from datetime import datetime

from vcbatch.api.resources import SERVICES
from vcbatch.local.apiserver.kinds.define import STATUS, label_name
from vcbatch.local.apiserver.kinds.services.allocation import prepare
from vcbatch.local.apiserver.kinds.services.validation import change_errors, service_errors
from vcbatch.local.apiserver.kinds.services.warnings import warnings
from vcbatch.local.apiserver.kinds.strategy import BuiltIn
from vcbatch.local.apiserver.registry import Json, RequestContext, Served
from vcbatch.local.apiserver.tables import AGE, NAME, NONE, column, dig, labels_text

_SERVED_TYPES = ("ClusterIP", "LoadBalancer", "NodePort")
_AFFINITY_SECONDS = 10800


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
                prepare=prepare,
                check=service_errors,
                check_update=change_errors,
                warn=warnings,
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
    ]
