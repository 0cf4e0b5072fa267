"""What the API server counted: requests by verb, resource and answer, from its own metrics."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import yaml

from tests.cluster.audit import OWN_REVIEWS
from tests.cluster.components import CONTROLLERS, NAMESPACE, SCHEDULER, WEBHOOKS
from tests.cluster.controlplane import APISERVER, ControlPlane, Options

_LINE = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$")
_LABEL = re.compile(r'(\w+)="([^"]*)"')

WRITES = frozenset({"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"})
_READS = ("get", "list")
_WRITES = ("create", "update", "patch", "delete", "deletecollection")


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


def writes(requests: Counter[Request], *, without: Iterable[str] = ("leases", *OWN_REVIEWS)) -> Counter[str]:
    """Writes as `VERB resource`, whatever the server answered to them. Leases are left out, and what programs ask about
    their own rights every few seconds, which changes nothing."""
    left_out = set(without)
    counts: Counter[str] = Counter()
    for request, number in requests.items():
        if request.verb in WRITES and request.resource not in left_out and number:
            counts[f"{request.verb} {request.resource}"] += number
    return counts


class Audit:
    """The API server's log of what vcbatch's service accounts asked for; its metrics don't say who asked. Watches,
    Leases and questions about one's own rights are left out."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "audit.log"
        self._policy = folder / "audit-policy.yaml"
        users = [f"system:serviceaccount:{NAMESPACE}:vcbatch-{part}" for part in (CONTROLLERS, SCHEDULER, WEBHOOKS)]
        left_out = [
            {"group": "coordination.k8s.io"},
            {"group": "authorization.k8s.io", "resources": sorted(OWN_REVIEWS)},
        ]
        rules = [
            {"level": "None", "resources": left_out},
            {"level": "Metadata", "users": users, "verbs": [*_READS, *_WRITES]},
            {"level": "None"},
        ]
        policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": rules}
        self._policy.write_text(yaml.safe_dump(policy), encoding="utf-8")

    @property
    def options(self) -> Options:
        flags = [f"--audit-policy-file={self._policy}", f"--audit-log-path={self._log}", "--audit-log-mode=blocking"]
        return Options(flags={APISERVER: flags})

    def asked(self) -> Counter[str]:
        """Requests so far as `verb resource`, or `verb /path` of what is no resource."""
        counts: Counter[str] = Counter()
        for line in self._log.read_text(encoding="utf-8").splitlines(keepends=True):
            if not line.endswith("\n"):
                break  # being written
            event = json.loads(line)
            what = event.get("objectRef") or {"resource": event["requestURI"]}
            resource = "/".join(part for part in (what["resource"], what.get("subresource")) if part)
            counts[f"{event['verb']} {resource}"] += 1
        return counts

    def written(self) -> Counter[str]:
        """Those that write."""
        return Counter({kind: number for kind, number in self.asked().items() if kind.partition(" ")[0] in _WRITES})
