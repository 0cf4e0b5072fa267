"""Recognizes that the local server of a command has ended, so that the command doesn't wait for it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from vcbatch.cli.base.output import CliError
from vcbatch.cli.base.state import StateDir, default_state_dir
from vcbatch.cli.base.state_ownership import is_own
from vcbatch.interfaces.api import ApiError

GRACE_SECONDS: Final = 10.0
"""Seconds for which a local server may be down before it counts as ended: it may be restarted."""


class LocalEnd:
    """A check for each failed request of a command that follows a job. Without a `state` directory, which is that of a
    server elsewhere, it never ends the command."""

    def __init__(self, state: StateDir | None, *, follow_up: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._state = state
        self._follow_up = follow_up
        self._clock = clock
        self._down_since: float | None = None

    def __call__(self, error: ApiError) -> None:
        """Raises `CliError` where the server has not run for `GRACE_SECONDS`."""
        if self._state is None or error.code != 0:
            return
        if self._state.running() is not None:
            self._down_since = None
            return
        now = self._clock()
        if self._down_since is None:
            self._down_since = now
        elif now - self._down_since >= GRACE_SECONDS:
            up = "vcbatch up --detach"
            if self._state.path != default_state_dir():
                up += f" --state-dir {self._state.path}"
            raise CliError(
                f"the local server of {self._state.path} has ended",
                hint=f"Start it with `{up}`, then follow the job with `{self._follow_up}`.",
            )


def local_state(kubeconfig: Path | None, server: str) -> StateDir | None:
    """The state directory of the local server that a command uses; None for any other server."""
    given = [kubeconfig] if kubeconfig is not None else list(map(Path, _paths()))
    for path in (*given, StateDir(default_state_dir()).kubeconfig):
        state = StateDir(path.parent)
        try:
            if is_own(state.path) and state.kubeconfig.name == path.name and server in path.read_text():
                return state
        except OSError:
            continue
    return None


def _paths() -> list[str]:
    return [path for path in os.environ.get("KUBECONFIG", "").split(os.pathsep) if path]
