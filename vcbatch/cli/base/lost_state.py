"""Warnings about a local server whose database lost writes while pods that it doesn't know still run."""

from __future__ import annotations

import shlex
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

from vcbatch.cli.base.state import StateDir, default_state_dir

if TYPE_CHECKING:
    from vcbatch.local.apiserver.losses import Loss
    from vcbatch.local.kubelet.unaccounted import UnaccountedPod

_NAMED = 5


def warnings_of(state: StateDir, *, losses: Sequence[Loss], pods: Sequence[UnaccountedPod]) -> list[str]:
    """A warning for each loss, and one for the pods that still run, with the command that ends them."""
    from vcbatch.local.kubelet import unaccounted

    said = [str(loss) for loss in losses]
    alive = unaccounted.running(state.kubelet, pods)
    if alive:
        named = ", ".join(map(str, alive[:_NAMED])) + (", ..." if len(alive) > _NAMED else "")
        what = "1 pod that is missing in the database is still running" if len(alive) == 1 else (
            f"{len(alive)} pods that are missing in the database are still running"
        )  # fmt: skip
        said.append(f"{what}: {named}. To stop them, run `{end_command(state)}`")
    return said


def lost_state_warnings(state: StateDir, *, known: Container[str]) -> list[str]:
    """The same warnings for a running server, which knows the pods with these UIDs."""
    from vcbatch.local.apiserver.losses import read_losses
    from vcbatch.local.kubelet import unaccounted

    losses = read_losses(state.path)
    if not losses:
        return []
    pods = [pod for pod in unaccounted.read(state.kubelet) if pod.uid not in known]
    return warnings_of(state, losses=losses, pods=pods)


def end_command(state: StateDir) -> str:
    """The command that ends the pods that the database has lost."""
    where = "" if state.path == default_state_dir() else f" --state-dir {shlex.quote(str(state.path))}"
    return f"vcbatch down --unaccounted{where}"
