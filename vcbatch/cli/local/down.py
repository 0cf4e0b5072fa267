"""`vcbatch down`: end the server of a state directory, and all remaining processes of its pods."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import click

from vcbatch.api.resources import PODS
from vcbatch.cli.base.options import state_dir_option
from vcbatch.cli.base.output import CliError, note, say
from vcbatch.cli.base.state import Server, StateDir
from vcbatch.cli.local import unfinished
from vcbatch.interfaces.api import Api

_POLL = 0.02
_PATIENCE = timedelta(seconds=10)


@click.command("down")
@state_dir_option
@click.option(
    "--timeout", type=click.FloatRange(min=0), default=45.0, show_default=True, metavar="SECONDS",
    help="Time for pods to terminate before they are killed.",
)  # fmt: skip
@click.option(
    "--unaccounted", is_flag=True,
    help="Stop only pods that are missing in the database; keep the server running.",
)  # fmt: skip
@click.option(
    "--suspend-running", is_flag=True, help="Suspend running jobs first; they stay suspended after `vcbatch up`."
)
def command(state_dir: Path, timeout: float, unaccounted: bool, suspend_running: bool) -> int:
    """Stop the local server and its pods. Jobs and their state are kept for the next `vcbatch up`.

    Running jobs whose policies handle PodEvicted are started again by the next `vcbatch up`.
    Exits 0 if no server is running.
    """
    state = StateDir(state_dir)
    if not state.exists():
        say(f"vcbatch is not running ({state.path} doesn't exist)")
        return 0
    state.require_own()
    server = state.running()
    if unaccounted:
        return _end_unaccounted(state, server)
    running = unfinished.running(state) if server is not None else []
    if running and suspend_running:
        unfinished.suspend(state, running, seconds=timeout)
    if server is not None:
        _stop(server, timeout)
    leftover = _end_leftovers(state)
    state.forget()
    _forget_losses(state)
    if server is None and not leftover:
        say("vcbatch is not running")
    else:
        containers = f"{leftover} container{'s' if leftover != 1 else ''}"
        say("vcbatch stopped" if server else f"stopped {containers} left by a previous server")
    if running and not suspend_running:
        unfinished.note_stopped(running)
    return 0


def _end_unaccounted(state: StateDir, server: Server | None) -> int:
    from vcbatch.cli.base.access import Access
    from vcbatch.local.kubelet import end_unaccounted

    if server is None:
        raise CliError("vcbatch is not running", hint="To stop all remaining pods, use `vcbatch down`.")

    async def fetch(api: Api) -> set[str]:
        return {pod["metadata"]["uid"] for pod in (await api.list(PODS)).items}

    known = Access(kubeconfig=state.kubeconfig, request_timeout=_PATIENCE).once(fetch)
    ended = asyncio.run(end_unaccounted(state.kubelet, known=known))
    _forget_losses(state)
    say(f"stopped {ended} container{'' if ended == 1 else 's'} of pods that are missing in the database")
    return 0


def _forget_losses(state: StateDir) -> None:
    """Delete the record of lost writes, once no process of an unknown pod is left."""
    from vcbatch.local.apiserver.losses import forget_losses

    forget_losses(state.path)


def _stop(server: Server, timeout: float) -> None:
    try:
        os.kill(server.pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError:
        raise CliError(f"vcbatch (pid {server.pid}) belongs to another user") from None
    if _ended(server, timeout):
        return
    note(f"vcbatch (pid {server.pid}) did not stop within {timeout:.0f} s; killing it")
    with suppress(ProcessLookupError):
        os.kill(server.pid, signal.SIGKILL)
    if not _ended(server, 10.0):
        raise CliError(f"vcbatch (pid {server.pid}) could not be killed")


def _ended(server: Server, timeout: float) -> bool:
    deadline = time.monotonic() + timeout
    while server.alive():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL)
    return True


def _end_leftovers(state: StateDir) -> int:
    """End the processes of pods that a killed server left, found by their records; returns their number."""
    from vcbatch.local.kubelet import end_containers

    return asyncio.run(end_containers(state.kubelet)) if state.kubelet.is_dir() else 0
