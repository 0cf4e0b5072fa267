"""The API server's audit log: who asked for what, and with which answer.

`options` makes a control plane keep one; `AuditLog` reads it. Unless other rules are given the level is Metadata, which
names the user, the user agent, the verb, the object and the code.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.cluster.controlplane import APISERVER, Options

OWN_REVIEWS = frozenset({"selfsubjectrulesreviews", "selfsubjectaccessreviews"})
"""What an account asks about its own rights."""

Rule = Mapping[str, Any]
"""One rule of an audit policy."""
_ALL: Rule = {"level": "Metadata"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One answered request. `at` is when it came, `done` when it was answered (RFC 3339, microseconds)."""

    user: str
    agent: str
    verb: str
    group: str
    resource: str
    """With its subresource, as a role names it: `pods/binding`."""
    namespace: str
    name: str
    code: int
    at: str
    done: str
    uri: str
    body: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """What was sent; empty unless the policy's level is Request."""

    @property
    def writes(self) -> bool:
        """A question of the account about its own rights is sent as a creation, and changes nothing."""
        changes = self.verb in ("create", "update", "patch", "delete", "deletecollection")
        return changes and self.resource not in OWN_REVIEWS

    @property
    def right(self) -> tuple[str, str, str]:
        """Group, resource and verb, as a role grants them."""
        return self.group, self.resource, self.verb


def options(
    folder: Path, base: Options | None = None, *, flags: Sequence[str] = (), rules: Sequence[Rule] = (_ALL,)
) -> Options:
    """`base` with an audit log in that folder, which has to exist, and more flags for the API server."""
    policy = folder / "audit-policy.yaml"
    written = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [*rules]}
    policy.write_text(json.dumps(written), encoding="utf-8")
    base = base or Options()
    audit = (
        f"--audit-policy-file={policy}",
        f"--audit-log-path={folder / 'audit.log'}",
        "--audit-log-mode=blocking",
        "--audit-log-maxsize=2000",
    )
    before = base.flags.get(APISERVER, ())
    return replace(base, flags={**base.flags, APISERVER: (*before, *audit, *flags)})


class AuditLog:
    """What was answered so far, in the order of the answers."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "audit.log"

    def entries(self, *, user: str | None = None, since: str = "") -> Iterator[Entry]:
        """The requests of that user, or of everybody, that were answered after `since`."""
        with self._path.open(encoding="utf-8") as lines:
            for line in lines:
                if not line.endswith("\n"):
                    return  # being written
                entry = _entry(line)
                if (user is None or entry.user == user) and entry.done > since:
                    yield entry


def _entry(line: str) -> Entry:
    found = json.loads(line)
    thing = found.get("objectRef") or {}
    resource, sub = thing.get("resource", ""), thing.get("subresource", "")
    return Entry(
        user=found["user"].get("username", ""),
        agent=found.get("userAgent", ""),
        verb=found["verb"],
        group=thing.get("apiGroup", ""),
        resource=f"{resource}/{sub}" if sub else resource,
        namespace=thing.get("namespace", ""),
        name=thing.get("name", ""),
        code=(found.get("responseStatus") or {}).get("code", 0),
        at=found["requestReceivedTimestamp"],
        done=found["stageTimestamp"],
        uri=found["requestURI"],
        body=found.get("requestObject") or {},
    )
