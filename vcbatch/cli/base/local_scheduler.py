"""The description that `vcbatch up` writes of its scheduler into its state directory, for commands that simulate it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcbatch.cli.base.output import CliError
from vcbatch.cli.base.state import StateDir, default_state_dir
from vcbatch.local.files import replace_file
from vcbatch.runtime.client.kubeconfig import KubeconfigError, load

if TYPE_CHECKING:
    from vcbatch.cli.base.reach import Access
    from vcbatch.scheduler.simulation.recording import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalScheduler:
    """The configuration of the running scheduler. The policy in force is that of `settings`. `policy_file` is the file
    of the policy, None for the built-in one; `plugins` are the files of the user's plugins."""

    settings: Settings
    policy_file: Path | None = None
    plugins: Sequence[Path] = ()


def leave(state: StateDir, scheduler: LocalScheduler) -> None:
    """Write the description, replacing an existing one. Raises `OSError`."""
    content = {
        "settings": scheduler.settings.line(),
        "policyFile": None if scheduler.policy_file is None else str(scheduler.policy_file.resolve()),
        "plugins": [str(path.resolve()) for path in scheduler.plugins],
    }
    replace_file(state.scheduler, json.dumps(content).encode(), durable=False)


def local_scheduler(access: Access) -> LocalScheduler | None:
    """The scheduler of the connected server, where `vcbatch up` runs it locally; else None.

    Raises:
        CliError: the description can't be read.
    """
    state = local_state(access)
    return _read(state.scheduler) if state is not None and state.scheduler.exists() else None


def local_state(access: Access) -> StateDir | None:
    """The state directory of the connected server, where `vcbatch up` runs it locally; else None."""
    server = access.connection().server
    for state in map(StateDir, dict.fromkeys(_directories(access))):
        if state.running() is not None and _serves(state, server):
            return state
    return None


def _directories(access: Access) -> Iterator[Path]:
    """The possible state directories of the server: the directory of each kubeconfig in use, and the default."""
    if access.kubeconfig is not None:
        yield access.kubeconfig.absolute().parent
    else:
        yield from (Path(name).absolute().parent for name in os.environ.get("KUBECONFIG", "").split(os.pathsep) if name)
    yield default_state_dir()


def _serves(state: StateDir, server: str) -> bool:
    try:
        return load(state.kubeconfig).server == server
    except KubeconfigError:
        return False


def _read(path: Path) -> LocalScheduler:
    from vcbatch.scheduler.simulation.recording import Settings
    from vcbatch.scheduler.simulation.world import WorldError

    try:
        content: Any = json.loads(path.read_text())
        file = content["policyFile"]
        return LocalScheduler(
            settings=Settings.read(content["settings"]),
            policy_file=None if file is None else Path(file),
            plugins=[Path(name) for name in content["plugins"]],
        )
    except (OSError, ValueError, KeyError, TypeError, WorldError) as error:
        hint = "A server of another version may run: `vcbatch down`, then `vcbatch up`."
        raise CliError(f"{path}: {error}", hint=hint) from error
