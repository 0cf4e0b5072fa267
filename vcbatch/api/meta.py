"""Object metadata as the hot paths read it: only the fields that a decision needs.

Structs decode directly from the bytes of a list or a watch (a 6.6 KB pod in about 5 µs) and are exempt from cyclic
garbage collection, which otherwise determines the tail latency of every process that has many objects.
"""

from __future__ import annotations

import msgspec


class Wire(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    """Base of reduced wire structs: camelCase names, unknown fields ignored."""


class OwnerReference(Wire):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Wire):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None
    finalizers: list[str] | None = None

    @property
    def key(self) -> str:
        """`namespace/name`, or the bare name of a cluster-scoped object."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def controller_owner(self) -> OwnerReference | None:
        """The owner reference with `controller: true`, of which Kubernetes allows at most one."""
        for owner in self.owner_references or ():
            if owner.controller:
                return owner
        return None
