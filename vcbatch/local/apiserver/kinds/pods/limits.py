"""LimitRanges: default resources of new pods, and their limits.

Source of the rules and texts: kubernetes `plugin/pkg/admission/limitranger`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vcbatch.api import quantities
from vcbatch.api.quantity import NANO, Quantity
from vcbatch.api.resources import Resource
from vcbatch.local.apiserver.apierrors import forbidden
from vcbatch.local.apiserver.kinds.pods.quota import effective
from vcbatch.local.apiserver.registry import Json, RequestContext

LIMIT_RANGES = Resource(group="", version="v1", plural="limitranges", kind="LimitRange")
_ANNOTATION = "kubernetes.io/limit-ranger"

Amounts = Mapping[str, Any]


def _items(ctx: RequestContext) -> Iterator[Json]:
    for limit_range in ctx.listed(LIMIT_RANGES, ctx.namespace):
        yield from (limit_range.get("spec") or {}).get("limits") or ()


def default_amounts(pod: Json, ctx: RequestContext) -> None:
    """Set the namespace's default requests and limits of containers, and list them in an annotation."""
    limits: Json = {}
    requests: Json = {}
    for item in _items(ctx):
        if item.get("type") == "Container":
            limits.update(item.get("default") or {})
            requests.update(item.get("defaultRequest") or {})
    if not limits and not requests:
        return
    notes: list[str] = []
    for kind, word in (("containers", "container"), ("initContainers", "init container")):
        for container in pod["spec"].get(kind) or ():
            resources = container.setdefault("resources", {})
            for key, given in (("requests", requests), ("limits", limits)):
                added = _fill(resources, key, given)
                if added:
                    notes.append(f"{', '.join(added)} {key[:-1]} for {word} {container.get('name', '')}")
    if notes:
        metadata = pod.setdefault("metadata", {})
        said = f"LimitRanger plugin set: {'; '.join(notes)}"
        metadata["annotations"] = {**(metadata.get("annotations") or {}), _ANNOTATION: said}


def _fill(resources: Json, key: str, given: Amounts) -> list[str]:
    have = resources.get(key) or {}
    added = sorted(name for name in given if name not in have)
    if added:
        resources[key] = {**have, **{name: given[name] for name in added}}
    return added


def refuse_out_of_limits(pod: Json, ctx: RequestContext) -> None:
    """Raises 403 with all resources below a minimum or above a maximum."""
    spec = pod.get("spec") or {}
    found: list[str] = []
    for item in _items(ctx):
        match item.get("type"):
            case "Container":
                for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
                    resources = container.get("resources") or {}
                    amounts = [
                        {name: quantities.read(amount) for name, amount in (resources.get(key) or {}).items()}
                        for key in ("requests", "limits")
                    ]
                    found += _bounds(item, "Container", *amounts)
            case "Pod":
                found += _bounds(item, "Pod", effective(spec, "requests"), effective(spec, "limits"))
            case _:
                pass
    if found:
        text = found[0] if len(found) == 1 else f"[{', '.join(found)}]"
        name = (pod.get("metadata") or {}).get("name") or ""
        raise forbidden(group="", plural="pods", name=name, message=text)


def _bounds(item: Json, kind: str, requests: Mapping[str, Quantity], limits: Mapping[str, Quantity]) -> Iterator[str]:
    for name, amount in sorted((item.get("min") or {}).items()):
        yield from _below(name, kind, quantities.read(amount), requests.get(name), limits.get(name))
    for name, amount in sorted((item.get("max") or {}).items()):
        yield from _above(name, kind, quantities.read(amount), requests.get(name), limits.get(name))
    for name, amount in sorted((item.get("maxLimitRequestRatio") or {}).items()):
        yield from _apart(name, kind, quantities.read(amount), requests.get(name), limits.get(name))


def _below(name: str, kind: str, least: Quantity, request: Quantity | None, limit: Quantity | None) -> Iterator[str]:
    head = f"minimum {name} usage per {kind} is {least}"
    if request is None:
        yield f"{head}.  No request is specified"
    elif limit is not None and limit < least:
        yield f"{head}, but limit is {limit}"
    elif request < least:
        yield f"{head}, but request is {request}"


def _above(name: str, kind: str, most: Quantity, request: Quantity | None, limit: Quantity | None) -> Iterator[str]:
    head = f"maximum {name} usage per {kind} is {most}"
    if limit is None:
        yield f"{head}.  No limit is specified"
    elif limit > most:
        yield f"{head}, but limit is {limit}"
    elif request is not None and request > most:
        yield f"{head}, but request is {request}"


def _apart(name: str, kind: str, ratio: Quantity, request: Quantity | None, limit: Quantity | None) -> Iterator[str]:
    head = f"{name} max limit to request ratio per {kind} is {ratio}"
    if not request:
        yield f"{head}, but no request is specified or request is 0"
    elif not limit:
        yield f"{head}, but no limit is specified or limit is 0"
    elif limit.nano * NANO > ratio.nano * request.nano:
        yield f"{head}, but provided ratio is {limit.nano / request.nano:f}"
