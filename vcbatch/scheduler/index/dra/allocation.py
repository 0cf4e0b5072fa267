"""The allocation in a claim's status (`status.allocation`, resource.k8s.io/v1)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from vcbatch.api.dra import DeviceClass, ResourceClaim
from vcbatch.scheduler.index.dra.capacity import written
from vcbatch.scheduler.index.dra.search import Picked, ways_of

_SHARES: Final = uuid.UUID("f0a1b6f6-5b53-5b0c-9c55-5d8b5e7d1d0a")


def allocation_of(
    claim: ResourceClaim, picks: Sequence[Picked], node: str, classes: Mapping[str, DeviceClass]
) -> dict[str, Any]:
    """The allocation of a claim for a pod on this node. It is the same for the same claim and devices."""
    devices: dict[str, Any] = {"results": [_result(claim, at, pick) for at, pick in enumerate(picks)]}
    config = [*_of_classes(claim, picks, classes), *_of_claim(claim, picks)]
    if config:
        devices["config"] = config
    selector = _node_selector(picks, node)
    return {"devices": devices, "nodeSelector": selector} if selector else {"devices": devices}


def _result(claim: ResourceClaim, at: int, pick: Picked) -> dict[str, Any]:
    device = pick.device
    out: dict[str, Any] = {
        "request": pick.request,
        "driver": device.id.driver,
        "pool": device.id.pool,
        "device": device.id.name,
    }
    if pick.admin:
        out["adminAccess"] = True
    if pick.wanted.tolerations:
        out["tolerations"] = pick.wanted.tolerations
    if device.conditions:
        out["bindingConditions"] = [*device.conditions]
        out["bindingFailureConditions"] = [*device.failures]
    if pick.share is not None:
        out["shareID"] = str(uuid.uuid5(_SHARES, f"{claim.metadata.uid}/{at}"))
        if pick.share and not pick.admin:
            out["consumedCapacity"] = written(device.capacity, pick.share)
    return out


def _of_classes(
    claim: ResourceClaim, picks: Sequence[Picked], classes: Mapping[str, DeviceClass]
) -> Iterator[dict[str, Any]]:
    """The driver configuration of the device classes, once per class."""
    chosen = {pick.request for pick in picks}
    requests: dict[str, list[str]] = {}
    for name, way in ways_of(claim):
        if name in chosen:
            requests.setdefault(way.device_class_name, []).append(name)
    for name, users in requests.items():
        made = classes.get(name)
        for entry in (made.spec.config or ()) if made is not None else ():
            yield {"source": "FromClass", "requests": users, **entry}


def _of_claim(claim: ResourceClaim, picks: Sequence[Picked]) -> Iterator[dict[str, Any]]:
    """The driver configuration of the claim, without that of alternatives that weren't chosen."""
    chosen = {name for pick in picks for name in (pick.request, pick.request.partition("/")[0])}
    for entry in claim.spec.devices.config or ():
        requests = entry.get("requests")
        if not requests or not chosen.isdisjoint(requests):
            yield {"source": "FromClaim", **entry}


def _node_selector(picks: Sequence[Picked], node: str) -> dict[str, Any] | None:
    """The selector of the nodes that reach all of the devices; None if all nodes do."""
    if any(pick.device.local or pick.device.stays for pick in picks):
        only = {"key": "metadata.name", "operator": "In", "values": [node]}
        return {"nodeSelectorTerms": [{"matchFields": [only]}]}
    terms = [
        term
        for pick in picks
        if pick.device.selector is not None
        for term in (pick.device.selector.get("nodeSelectorTerms") or ())[:1]
    ]
    if not terms:
        return None
    merged: dict[str, list[Any]] = {}
    for term in terms:
        for kind in ("matchExpressions", "matchFields"):
            merged.setdefault(kind, []).extend(r for r in term.get(kind) or () if r not in merged.get(kind, ()))
    return {"nodeSelectorTerms": [{kind: found for kind, found in merged.items() if found}]}
