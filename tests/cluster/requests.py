"""What the API server counted: requests by verb, resource and answer, from its own metrics."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from tests.cluster.controlplane import ControlPlane

_LINE = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$")
_LABEL = re.compile(r'(\w+)="([^"]*)"')

WRITES = frozenset({"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"})
READS = frozenset({"GET", "LIST"})


class Request(NamedTuple):
    """A kind of request. `resource` carries its subresource, as in RBAC (`pods/binding`)."""

    verb: str
    resource: str
    code: str


def counted(plane: ControlPlane) -> Counter[Request]:
    """All requests that have been answered so far. A watch counts once it has ended."""
    counts: Counter[Request] = Counter()
    for line in plane.metrics().splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        labels = dict(_LABEL.findall(match[1]))
        resource = "/".join(part for part in (labels.get("resource"), labels.get("subresource")) if part)
        counts[Request(labels["verb"], resource, labels["code"])] += int(float(match[2]))
    return counts


def open_watches(plane: ControlPlane) -> Counter[str]:
    """Watches that are open now, by resource."""
    counts: Counter[str] = Counter()
    for line in plane.metrics().splitlines():
        if line.startswith("apiserver_longrunning_requests{"):
            labels = dict(_LABEL.findall(line))
            if labels.get("verb") == "WATCH":
                counts[labels["resource"]] += int(float(line.rsplit(" ", 1)[1]))
    return counts


def writes(requests: Counter[Request], *, without: Iterable[str] = ("leases",)) -> Counter[str]:
    """Writes as `VERB resource`, whatever the server answered to them."""
    left_out = set(without)
    counts: Counter[str] = Counter()
    for request, number in requests.items():
        if request.verb in WRITES and request.resource not in left_out and number:
            counts[f"{request.verb} {request.resource}"] += number
    return counts
