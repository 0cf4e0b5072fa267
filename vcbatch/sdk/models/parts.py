"""The models of parts of jobs and tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vcbatch.api.names import GPU_RESOURCE
from vcbatch.sdk.models.codecs import COUNT, QUANTITIES, RAW, TEXT, TEXTS, one
from vcbatch.sdk.models.wire import Quantity, Wire, at


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Resources(Wire):
    """The resources that one pod requests (`requests`, for its placement) and their `limits`."""

    requests: Mapping[str, Quantity] = field(
        default_factory=dict[str, Quantity], metadata=at("requests", codec=QUANTITIES, absent={})
    )
    limits: Mapping[str, Quantity] = field(
        default_factory=dict[str, Quantity], metadata=at("limits", codec=QUANTITIES, absent={})
    )

    @classmethod
    def of(
        cls,
        *,
        cpu: Quantity | None = None,
        memory: Quantity | None = None,
        gpus: int | None = None,
        more: Mapping[str, Quantity] | None = None,
    ) -> Resources:
        """Return resources from the usual quantities.

        `cpu` is a request only; `memory` (bytes, or `4Gi`) is a request and a limit. So are `gpus` and `more`, which
        are devices by resource name: Kubernetes requires equal requests and limits for those.
        """
        both: dict[str, Quantity] = dict(more or {})
        if memory is not None:
            both["memory"] = memory
        if gpus is not None:
            both[GPU_RESOURCE] = gpus
        return cls(requests=both if cpu is None else {"cpu": cpu, **both}, limits=both)

    @property
    def gpus(self) -> Quantity:
        """The number of requested GPUs."""
        return self.limits.get(GPU_RESOURCE, self.requests.get(GPU_RESOURCE, 0))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Policy(Wire):
    """On one of the events (or this exit code), execute `action`, after `timeout` (`30s`, `10m`).

    `vcbatch.Action` and `vcbatch.Event` list the values.
    """

    action: str = field(default="", metadata=at("action", codec=TEXT, absent=""))
    event: str | None = field(default=None, metadata=at("event", codec=TEXT))
    events: Sequence[str] = field(default=(), metadata=at("events", codec=TEXTS, absent=()))
    exit_code: int | None = field(default=None, metadata=at("exitCode", codec=COUNT))
    timeout: str | None = field(default=None, metadata=at("timeout", codec=TEXT))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Volume(Wire):
    """A PersistentVolumeClaim that every container mounts: `claim_name` is that of an existing one, `claim` the spec of
    one that is created with the job and deleted with it."""

    mount_path: str = field(default="", metadata=at("mountPath", codec=TEXT, absent=""))
    claim_name: str | None = field(default=None, metadata=at("volumeClaimName", codec=TEXT))
    claim: Mapping[str, Any] | None = field(default=None, metadata=at("volumeClaim", codec=RAW))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class NetworkTopology(Wire):
    """The maximum network distance between the pods of a gang: `mode` is `hard` or `soft`."""

    mode: str | None = field(default=None, metadata=at("mode", codec=TEXT))
    highest_tier: int | None = field(default=None, metadata=at("highestTierAllowed", codec=COUNT))
    highest_tier_name: str | None = field(default=None, metadata=at("highestTierName", codec=TEXT))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DependsOn(Wire):
    """The tasks that have to be ready before this one starts: all of them, or one where `iteration` is `any`."""

    tasks: Sequence[str] = field(default=(), metadata=at("name", codec=TEXTS, absent=()))
    iteration: str | None = field(default=None, metadata=at("iteration", codec=TEXT))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Partitions(Wire):
    """Groups of `size` pods of a task that are placed and restarted together; at least `least` of them have to
    start."""

    total: int | None = field(default=None, metadata=at("totalPartitions", codec=COUNT))
    size: int | None = field(default=None, metadata=at("partitionSize", codec=COUNT))
    least: int | None = field(default=None, metadata=at("minPartitions", codec=COUNT))
    network_topology: NetworkTopology | None = field(
        default=None, metadata=at("networkTopology", codec=one(NetworkTopology))
    )
