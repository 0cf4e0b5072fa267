"""Warnings for accepted Services.

Source: kubernetes `pkg/api/service/warnings.go`.
"""

from __future__ import annotations

from collections.abc import Iterator

from vcbatch.local.apiserver.kinds.pods.warnings import address_warnings
from vcbatch.local.apiserver.kinds.services.allocation import HEADLESS
from vcbatch.local.apiserver.registry import Json


def warnings(obj: Json) -> Iterator[str]:
    """Warnings for fields that have no effect, or will have none."""
    spec = obj.get("spec") or {}
    kind, headless = spec.get("type"), spec.get("clusterIP") == HEADLESS and spec.get("type") == "ClusterIP"
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
