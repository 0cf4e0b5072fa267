"""Finding the server: a cluster by kubectl's rules, or the local server of `vcbatch up`."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from vcbatch.interfaces import interpreter
from vcbatch.runtime.client.kubeconfig import Connection, KubeconfigError, NothingConfigured, load
from vcbatch.runtime.client.local_server import default_state_dir, kubeconfig_of, running_server
from vcbatch.sdk.errors import NotConfigured

_START_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A server, and its state directory where it is a local server."""

    connection: Connection
    state_dir: Path | None


def configured(kubeconfig: Path | None, context: str | None) -> Place:
    """The cluster of `kubeconfig`, $KUBECONFIG, ~/.kube/config or of the present pod; where none is configured, the
    local server if it runs. Raises `NotConfigured`."""
    with _configuration():
        try:
            connection = load(kubeconfig, context=context)
        except NothingConfigured:
            state_dir = default_state_dir()
            if context is not None or running_server(state_dir) is None:
                raise
            return Place(connection=load(kubeconfig_of(state_dir)), state_dir=state_dir)
        return Place(connection=connection, state_dir=_local(connection))


def local(state_dir: Path | None, *, start: bool) -> Place:
    """The local server, started where it doesn't run and `start` allows it. It keeps running after the program:
    `vcbatch down` stops it. Raises `NotConfigured`."""
    folder = (state_dir or default_state_dir()).expanduser().absolute()
    if running_server(folder) is None:
        if not start:
            raise NotConfigured(f"vcbatch isn't running on {folder}", hint="Start it with `vcbatch up --detach`.")
        _start(folder)
    with _configuration():
        return Place(connection=load(kubeconfig_of(folder)), state_dir=folder)


def _start(folder: Path) -> None:
    command = interpreter.vcbatch("up", "--detach", "--state-dir", str(folder))
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_START_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotConfigured(f"vcbatch couldn't be started: {error}", hint=f"See {folder}/log.") from error
    if done.returncode == 0 or running_server(folder) is not None:  # another process started it first
        return
    said = [line for line in done.stderr.strip().splitlines() if line.strip()]
    raise NotConfigured(
        f"vcbatch couldn't be started: {said[0].removeprefix('error: ') if said else 'it said nothing'}",
        hint="\n  ".join(line.strip() for line in said[1:]) or f"See {folder}/log.",
    )


def _local(connection: Connection) -> Path | None:
    """The state directory, where the server of a kubeconfig is the local server; else None."""
    folder = default_state_dir()
    if running_server(folder) is None:
        return None
    try:
        return folder if load(kubeconfig_of(folder)).server == connection.server else None
    except KubeconfigError:
        return None


@contextmanager
def _configuration() -> Iterator[None]:
    try:
        yield
    except NothingConfigured as error:
        said = "no cluster is configured (by $KUBECONFIG, ~/.kube/config or as in a pod) and vcbatch isn't running here"
        hint = "For this machine: Client.local(), or `vcbatch up`. For a cluster: Client(kubeconfig=...)."
        raise NotConfigured(said, hint=hint) from error
    except KubeconfigError as error:
        hint = "Look at it with `kubectl config view`, or choose another: Client(kubeconfig=..., context=...)."
        raise NotConfigured(str(error), hint=hint) from error
