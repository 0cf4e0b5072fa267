"""Queues: shares and limits of the cluster's resources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypedDict

from vcbatch.api.loose import part
from vcbatch.api.resources import QUEUES
from vcbatch.sdk.models.codecs import COUNT, FLAG, LABELS, QUANTITIES, TEXT
from vcbatch.sdk.models.status import QueueStatus
from vcbatch.sdk.models.wire import Quantity, Wire, at


class QueueChanges(TypedDict, total=False):
    """The fields of a queue to change."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    parent: str | None
    weight: int | None
    priority: int | None
    reclaimable: bool | None
    capability: Mapping[str, Quantity]
    deserved: Mapping[str, Quantity]
    guarantee: Mapping[str, Quantity]
    dequeue_strategy: str | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Queue(Wire):
    """A queue with quantities by resource: `guarantee` is reserved for it, `deserved` is its share, which other queues
    may borrow, and `capability` is its limit."""

    api_version: str = field(default=QUEUES.api_version, repr=False, metadata=at("apiVersion", codec=TEXT, absent=""))
    kind: str = field(default=QUEUES.kind, repr=False, metadata=at("kind", codec=TEXT, absent=""))
    name: str = field(default="", metadata=at("metadata", "name", codec=TEXT, absent=""))
    labels: Mapping[str, str] = field(
        default_factory=dict[str, str], metadata=at("metadata", "labels", codec=LABELS, absent={})
    )
    annotations: Mapping[str, str] = field(
        default_factory=dict[str, str], metadata=at("metadata", "annotations", codec=LABELS, absent={})
    )
    parent: str | None = field(default=None, metadata=at("spec", "parent", codec=TEXT))
    weight: int | None = field(default=None, metadata=at("spec", "weight", codec=COUNT))
    priority: int | None = field(default=None, metadata=at("spec", "priority", codec=COUNT))
    reclaimable: bool | None = field(default=None, metadata=at("spec", "reclaimable", codec=FLAG))
    capability: Mapping[str, Quantity] = field(
        default_factory=dict[str, Quantity], metadata=at("spec", "capability", codec=QUANTITIES, absent={})
    )
    deserved: Mapping[str, Quantity] = field(
        default_factory=dict[str, Quantity], metadata=at("spec", "deserved", codec=QUANTITIES, absent={})
    )
    guarantee: Mapping[str, Quantity] = field(
        default_factory=dict[str, Quantity], metadata=at("spec", "guarantee", "resource", codec=QUANTITIES, absent={})
    )
    dequeue_strategy: str | None = field(default=None, metadata=at("spec", "dequeueStrategy", codec=TEXT))

    @property
    def status(self) -> QueueStatus:
        """The status that the server stored; empty for a queue that isn't on a server."""
        return QueueStatus.read(part(self.extra, "status"))
