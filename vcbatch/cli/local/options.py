"""What `vcbatch up` is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from vcbatch.cli.state import StateDir
from vcbatch.runtime.serving import Address


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalOptions:
    """What `vcbatch up` was asked for. `port` None means: the last one used."""

    state: StateDir
    port: int | None = None
    virtual_nodes: int = 0
    kubelet_mode: str = "auto"
    webhooks: Literal["in-process", "external"] = "in-process"
    scheduler_conf: Path | None = None
    plugins: tuple[Path, ...] = ()
    queue_gates: bool = False
    controller_conf: Path | None = None
    inherit_owner_annotations: bool = True
    record_cycles: Path | None = None
    listen_address: Address | None = None
    """Where metrics are served; nowhere where None."""
