"""The options of `vcbatch up`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from vcbatch.cli.base.state import StateDir
from vcbatch.cli.components.feature_gates import QUEUE_GATES

LOG_RETENTION: Final = timedelta(days=7)
LOG_RETENTION_BYTES: Final = 1024**3

if TYPE_CHECKING:
    from vcbatch.runtime.serving import Address


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalOptions:
    """The options of `vcbatch up`. `port` None means the last one used."""

    state: StateDir
    port: int | None = None
    virtual_nodes: int = 0
    virtual_node_size: Mapping[str, str] | None = None
    """Quantities by resource name, where they aren't the default."""
    kubelet_mode: str = "auto"
    webhooks: Literal["in-process", "external"] = "in-process"
    scheduler_conf: Path | None = None
    plugins: tuple[Path, ...] = ()
    queue_gates: bool = False
    controller_conf: Path | None = None
    inherit_owner_annotations: bool = True
    record_cycles: Path | None = None
    listen_address: Address | None = None
    """The address of the metrics server; None disables it."""
    log_retention: timedelta = LOG_RETENTION
    """How long logs of deleted pods are kept; 0 to delete logs with their pods."""
    log_retention_size: int = LOG_RETENTION_BYTES

    def arguments(self) -> list[str]:
        """The arguments of `vcbatch up` for the same options, from any working directory."""
        arguments = [
            *("--state-dir", str(self.state.path)),
            *("--virtual-nodes", str(self.virtual_nodes)),
            *("--kubelet-mode", self.kubelet_mode),
            *("--webhooks", self.webhooks),
            *("--feature-gates", f"{QUEUE_GATES}={str(self.queue_gates).lower()}"),
            f"--inherit-owner-annotations={str(self.inherit_owner_annotations).lower()}",
            *("--log-retention", f"{self.log_retention.total_seconds():.0f}s"),
            *("--log-retention-size", str(self.log_retention_size)),
        ]
        if self.virtual_node_size is not None:
            size = ",".join(f"{name}={quantity}" for name, quantity in self.virtual_node_size.items())
            arguments += ["--virtual-node-size", size]
        if self.port is not None:
            arguments += ["--port", str(self.port)]
        if self.scheduler_conf is not None:
            arguments += ["--scheduler-conf", str(self.scheduler_conf.resolve())]
        for plugin in self.plugins:
            arguments += ["--plugin", str(plugin.resolve())]
        if self.controller_conf is not None:
            arguments += ["--controller-conf", str(self.controller_conf.resolve())]
        if self.record_cycles is not None:
            arguments += ["--record-cycles", str(self.record_cycles.resolve())]
        if self.listen_address is not None:
            arguments += ["--listen-address", str(self.listen_address)]
        return arguments
