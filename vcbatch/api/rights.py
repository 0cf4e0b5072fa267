"""Permissions that a user lacks, parsed from the message of an API server's 403 response.

The sentence is Kubernetes' own (`staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go`);
rejections by admission, a quota or a terminating namespace have others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_REFUSAL: Final = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\S+) resource "(?P<plural>[^"/]+)(?:/(?P<subresource>[^"]+))?" '
    r'in API group "(?P<group>[^"]*)" (?:in the namespace "(?P<namespace>[^"]*)"|at the cluster scope)'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingRight:
    """The missing permission. `namespace` is empty for all of them, and for cluster-scoped kinds."""

    user: str
    verb: str
    plural: str
    subresource: str = ""
    group: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        """`jane cannot list jobs.batch.volcano.sh in namespace research`."""
        return f"{self.user or 'this user'} cannot {self.what}"

    @property
    def what(self) -> str:
        """`list jobs.batch.volcano.sh in namespace research`."""
        where = f"in namespace {self.namespace}" if self.namespace else "at the cluster scope"
        return f"{self.verb} {self._kind} {where}"

    @property
    def rule(self) -> str:
        """The RBAC rule that grants it, as YAML in one line."""
        resource = f"{self.plural}/{self.subresource}" if self.subresource else self.plural
        group = self.group or '""'
        return f"{{apiGroups: [{group}], resources: [{resource}], verbs: [{self.verb}]}}"

    @property
    def remedy(self) -> str:
        """Which user can grant it, and how."""
        role = f"a Role in namespace {self.namespace}" if self.namespace else "a ClusterRole"
        return f"Ask your cluster administrator for {role} with this rule:\n    {self.rule}"

    @property
    def _kind(self) -> str:
        resource = f"{self.plural}/{self.subresource}" if self.subresource else self.plural
        return f"{resource}.{self.group}" if self.group and not self.subresource else resource


def missing_right(refusal: str) -> MissingRight | None:
    """The permission that the sentence names; None for any other message."""
    found = _REFUSAL.search(refusal)
    if found is None:
        return None
    return MissingRight(**{name: value or "" for name, value in found.groupdict().items()})
