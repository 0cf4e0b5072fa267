"""Nodes as the scheduler reads them."""

from __future__ import annotations

import msgspec

from vcbatch.api.meta import ObjectMeta, Wire


class Taint(Wire):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Wire):
    unschedulable: bool = False
    taints: list[Taint] | None = None


class NodeCondition(Wire):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class ContainerImage(Wire):
    names: list[str] | None = None
    size_bytes: int = 0


class NodeStatus(Wire):
    allocatable: dict[str, str | int | float] | None = None
    capacity: dict[str, str | int | float] | None = None
    conditions: list[NodeCondition] | None = None
    images: list[ContainerImage] | None = None


class Node(Wire):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)
