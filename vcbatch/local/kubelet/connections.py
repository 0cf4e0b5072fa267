"""Client connections to the pods of a node: commands, attachments and ports."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

from vcbatch.interfaces.processes import ProcessStartError, Session
from vcbatch.local.kubelet import proctree
from vcbatch.local.kubelet.attachment import Attachment, InputClosedError, forget_input, open_input
from vcbatch.local.kubelet.container_run import ContainerRun
from vcbatch.local.kubelet.supervisor.container import CLOSE_INPUT
from vcbatch.local.kubelet.worker import PodWorker

Json = dict[str, Any]

MAX_SESSIONS = 128
"""Limit of concurrent commands and attachments per node."""

_DIAL_SECONDS = 10.0

Find = Callable[[str, str], PodWorker | None]
Follow = Callable[[PodWorker, str], AsyncGenerator[bytes]]


class ConnectionUnavailableError(Exception):
    """The connection isn't possible: the pod or container isn't running, or the command can't be started."""


class ConnectionRefusedHereError(Exception):
    """The container doesn't support the request; a retry doesn't help."""


class TooManyConnectionsError(Exception):
    """The node has reached its limit of sessions."""


class Connections:
    """`find` returns the worker of a pod by namespace and name; `follow` the output of a container from now on."""

    def __init__(self, *, find: Find, follow: Follow) -> None:
        self._find = find
        self._follow = follow
        self._sessions: set[Session] = set()
        self._opening = 0

    async def exec(
        self, namespace: str, name: str, container: str, command: Sequence[str], *, stdin: bool, tty: bool
    ) -> Session:
        """Start a command in a running container; raises the errors of this module."""
        _, live = self._live(namespace, name, container)
        self._admit()
        self._opening += 1
        try:
            session = await live.open_session(command, stdin=stdin, tty=tty)
        except ProcessStartError as error:
            raise ConnectionUnavailableError(f"error executing command in container: {error}") from error
        finally:
            self._opening -= 1
        return self._keep(session)

    async def attach(self, namespace: str, name: str, container: str, *, stdin: bool, tty: bool) -> Session:
        """Attach to a running container; raises the errors of this module."""
        worker, live = self._live(namespace, name, container)
        self._admit()
        spec = live.container
        if tty:
            raise ConnectionRefusedHereError(
                f"container {container} has no terminal: containers run without one in local mode;"
                " attach without -t, or run a shell with `kubectl exec -it`"
            )
        if stdin and not spec.get("stdin"):
            raise ConnectionRefusedHereError(
                f"container {container} has no standard input: spec.containers[].stdin is not true"
            )
        source = -1
        if stdin:
            try:
                source = open_input(live.run.path)
            except InputClosedError as error:
                raise ConnectionRefusedHereError(
                    f"the standard input of container {container} is closed: {error}"
                ) from error

        def closed_input() -> None:
            if spec.get("stdinOnce"):
                forget_input(live.run.path)
                proctree.send(live.ref.pid, live.ref.start_time, CLOSE_INPUT)

        return self._keep(Attachment(self._follow(worker, container), source=source, closed_input=closed_input))

    async def dial(self, namespace: str, name: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to a port of the pod's own address; raises the errors of this module and `OSError`."""
        worker = self._find(namespace, name)
        if worker is None or not worker.address or not worker.is_running:
            raise ConnectionUnavailableError(f'pod not running ("{name}")')
        try:
            return await asyncio.wait_for(asyncio.open_connection(worker.address, port), _DIAL_SECONDS)
        except TimeoutError:
            raise OSError(errno.ETIMEDOUT, f"{worker.address}:{port} didn't answer in {_DIAL_SECONDS:g} s") from None
        except OSError as error:
            number = error.errno or errno.ECONNREFUSED
            raise OSError(number, f"dial tcp {worker.address}:{port}: {os.strerror(number).lower()}") from error

    def end(self) -> None:
        """End all commands that clients have started; each client gets the result of its own."""
        for session in self._sessions:
            session.end()

    def _live(self, namespace: str, name: str, container: str) -> tuple[PodWorker, ContainerRun]:
        worker = self._find(namespace, name)
        if worker is None:
            # Usually a pod of a virtual node.
            raise ConnectionUnavailableError(f'pod "{name}" has no processes on this machine')
        live = worker.live_run(container)
        if live is None:
            raise ConnectionUnavailableError(f'unable to upgrade connection: container not found ("{container}")')
        return worker, live

    def _admit(self) -> None:
        if len(self._sessions) + self._opening >= MAX_SESSIONS:
            raise TooManyConnectionsError(f"{MAX_SESSIONS} sessions are open in the pods of this node; close one first")

    def _keep(self, session: Session) -> Session:
        kept = _Counted(session, self._sessions.discard)
        self._sessions.add(kept)
        return kept


class _Counted:
    """A session that reports when it is closed."""

    def __init__(self, session: Session, closed: Callable[[Session], None]) -> None:
        self._session = session
        self._closed = closed
        self.output = session.output
        self.write = session.write
        self.close_input = session.close_input
        self.resize = session.resize
        self.exit_code = session.exit_code
        self.end = session.end

    async def close(self) -> None:
        self._closed(self)
        await self._session.close()
