"""Containers as processes of this machine: the implementation of the `Processes` interface."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vcbatch.interfaces.processes import (
    CommandResult,
    ProcessExit,
    ProcessRef,
    ProcessSpec,
    ProcessStartError,
    Session,
)
from vcbatch.local.kubelet import exits, proctree
from vcbatch.local.kubelet.sandbox import Namespaces
from vcbatch.local.kubelet.session import connect
from vcbatch.local.kubelet.supervisor import reserved
from vcbatch.local.kubelet.supervisor.container import INPUT_PIPE, KILL_TREE
from vcbatch.local.kubelet.supervisor.main import boot_id

_SUPERVISOR = "import sys; sys.path.append(sys.argv[1]); from supervisor.main import main; main()"
_LOCK_POLL_SECONDS = 0.01
_SEND_AGAIN_SECONDS = 0.005  # while the supervisor's socket is full
_POLL_SECONDS = 0.1  # how often an exit is polled for where the kernel has no process descriptors
_KILL_PATIENCE = 5.0  # seconds an init process has to end its tree before it is killed itself


class SupervisorLostError(OSError):
    """The supervisor ended during a request."""


class LocalProcesses:
    """Starts containers through the supervisor and waits for them by process descriptor.

    `namespaces` are the namespaces of every container; this machine must support them (see `sandbox.choose_mode`).
    """

    def __init__(self, namespaces: Namespaces) -> None:
        self._namespaces = namespaces
        self._supervisor = _Supervisor()

    async def start(self, spec: ProcessSpec) -> ProcessRef:
        scratch = spec.record / "scratch"
        scratch.mkdir(mode=0o700, exist_ok=True)
        document = {
            "argv": list(spec.argv),
            "env": dict(spec.env),
            "working_dir": spec.working_dir,
            "hostname": spec.hostname,
            "cpus": list(spec.cpus),
            "umask": spec.umask,
            "stdin": spec.stdin,
            "log_max_bytes": spec.log_max_bytes,
            "log_max_files": spec.log_max_files,
            "mounts": [{"source": str(m.source), "target": m.target, "read_only": m.read_only} for m in spec.mounts],
            "namespaces": self._namespaces.document(),
            "scratch": str(scratch),
        }
        exits.reserve(spec.record)
        if spec.stdin:
            os.mkfifo(spec.record / INPUT_PIPE, 0o600)
        _write_private(spec.record / "spec.json", json.dumps(document))
        try:
            reply = await self._supervisor.ask({"op": "start", "record": str(spec.record)})
        except SupervisorLostError as error:
            return await self._after_loss(spec.record, error)
        if "error" in reply:
            if reply.get("errno") in reserved.NO_SPACE:
                raise OSError(reply["errno"], str(reply["error"]))
            raise ProcessStartError(int(reply.get("exit_code", 128)), str(reply["error"]))
        return ProcessRef(pid=reply["pid"], start_time=reply["start_time"], record=spec.record)

    async def _after_loss(self, record: Path, error: SupervisorLostError) -> ProcessRef:
        """Find out from the record whether the supervisor started the container before it ended."""
        found = await self.adopt(record)
        if isinstance(found, ProcessRef):
            return found
        if found is not None:
            raise ProcessStartError(found.exit_code, found.start_error or "ended while its supervisor was lost")
        raise error

    async def adopt(self, record: Path) -> ProcessRef | ProcessExit | None:
        async with _exclusive(record):
            reference = reserved.read(str(record / reserved.REFERENCE))
            if reference is None or "pid" not in reference:
                # A requested start that isn't recorded must not happen any more.
                (record / "spec.json").unlink(missing_ok=True)
                if reference is not None and reference.get("boot_id") != boot_id():
                    # The machine crashed and lost the last writes to its disk: the command may have run.
                    return exits.exit_of(record)
                return exits.read_exit(record)
        ref = ProcessRef(pid=reference["pid"], start_time=reference["start_time"], record=record)
        if reference["boot_id"] == boot_id() and proctree.is_alive(ref.pid, ref.start_time):
            return ref
        return exits.exit_of(record)

    async def wait(self, ref: ProcessRef) -> ProcessExit:
        await _until_gone(ref)
        return exits.exit_of(ref.record)

    async def signal(self, ref: ProcessRef, number: int) -> None:
        if number != signal.SIGKILL:
            proctree.send(ref.pid, ref.start_time, number)
            return
        if proctree.is_alive(ref.pid, ref.start_time):
            exits.note_kill(ref.record)
        if self._namespaces.pid:
            # The init process is PID 1 of the container's PID namespace: the kernel ends everything in it.
            proctree.send(ref.pid, ref.start_time, signal.SIGKILL)
            return
        tree = proctree.descendants(ref.pid)
        if not proctree.send(ref.pid, ref.start_time, KILL_TREE):
            return
        try:
            await asyncio.wait_for(_until_gone(ref), _KILL_PATIENCE)
        except TimeoutError:
            for member in (*tree, *proctree.descendants(ref.pid)):
                proctree.send(member.pid, member.start_time, signal.SIGKILL)
            proctree.send(ref.pid, ref.start_time, signal.SIGKILL)

    async def run_in(
        self, ref: ProcessRef, *, argv: Sequence[str], env: Mapping[str, str], working_dir: str, timeout: float
    ) -> CommandResult:
        target = next(iter(proctree.children(ref.pid)), ref.pid)
        document = {
            "argv": list(argv),
            "env": {**env, **proctree.environment(target)},
            "working_dir": working_dir,
            "timeout": timeout,
            "namespaces": self._namespaces.document(),
        }
        with _in_memory(document) as spec:
            reply = await self._supervisor.ask({"op": "exec", "pid": target}, [spec])
        if "error" in reply:
            return CommandResult(exit_code=126, output=str(reply["error"]))
        return CommandResult(exit_code=reply["exit_code"], output=reply["output"])

    async def open_session(
        self, ref: ProcessRef, *, argv: Sequence[str], env: Mapping[str, str], working_dir: str, stdin: bool, tty: bool
    ) -> Session:
        session, theirs = connect(stdin=stdin, tty=tty)
        environment = {**env, "TERM": env.get("TERM", "xterm")} if tty else env
        try:
            await self.run_on(ref, argv=argv, env=environment, working_dir=working_dir, streams=theirs)
        except BaseException:
            await session.close()
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        try:
            await session.started()
        except BaseException:
            await session.close()
            raise
        return session

    async def run_on(
        self, ref: ProcessRef, *, argv: Sequence[str], env: Mapping[str, str], working_dir: str, streams: Sequence[int]
    ) -> None:
        target = next(iter(proctree.children(ref.pid)), ref.pid)
        document = {
            "argv": list(argv),
            "env": {**env, **proctree.environment(target)},
            "working_dir": working_dir,
            "cpus": [],  # the processes inherit those of the container
            "namespaces": self._namespaces.document(),
        }
        request = {"op": "session", "pid": target, "init": ref.pid, "start_time": ref.start_time}
        try:
            with _in_memory(document) as spec:
                await self._supervisor.report(request, [spec, *streams])
        except SupervisorLostError as error:
            raise ProcessStartError(128, str(error)) from error

    def exceeds_memory(self, ref: ProcessRef, limit: int) -> bool:
        # The exact value requires a walk over the page tables: computed only where the cheap upper bound is too high.
        return proctree.resident_bytes(ref.pid) > limit and proctree.proportional_bytes(ref.pid) > limit

    async def close(self) -> None:
        await self._supervisor.close()


async def probe(namespaces: Namespaces) -> bool:
    """Whether this user may create these namespaces on this machine: tested by creating them."""
    supervisor = _Supervisor()
    try:
        reply = await supervisor.ask({"op": "probe", "namespaces": namespaces.document()})
    except (SupervisorLostError, OSError):
        return False
    finally:
        await supervisor.close()
    return bool(reply.get("possible"))


class _Supervisor:
    """The connection to the supervisor process, which is started when first needed and again when it has ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}

    async def ask(self, request: dict[str, Any], descriptors: Sequence[int] = ()) -> dict[str, Any]:
        """Send a request, optionally with descriptors, and return the response."""
        number = next(self._numbers)
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            await self.report({**request, "id": number}, descriptors)
            return await future
        finally:
            self._waiting.pop(number, None)

    async def report(self, request: dict[str, Any], descriptors: Sequence[int]) -> None:
        """Send a request with descriptors. Raises `SupervisorLostError`."""
        if self._socket is None:
            self._launch()
        message = json.dumps(request).encode()
        while True:
            assert self._socket is not None  # noqa: S101
            try:
                socket.send_fds(self._socket, [message], descriptors)
            except BlockingIOError:
                await asyncio.sleep(_SEND_AGAIN_SECONDS)
            except ConnectionError as error:
                self._disconnect()
                raise SupervisorLostError("the container supervisor has ended") from error
            else:
                return

    def _launch(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        command = [sys.executable, "-I", "-S", "-c", _SUPERVISOR, str(Path(__file__).parent), str(theirs.fileno())]
        with theirs:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                cwd="/",
                env={"LC_ALL": "C.UTF-8"},
            )
        self._socket = ours
        asyncio.get_running_loop().add_reader(ours.fileno(), self._on_readable)

    def _on_readable(self) -> None:
        assert self._socket is not None  # noqa: S101
        try:
            message = self._socket.recv(65536)
        except BlockingIOError:
            return
        except ConnectionError:
            message = b""
        if not message:
            self._disconnect()
            return
        reply = json.loads(message)
        future = self._waiting.get(reply.pop("id"))
        if future is not None and not future.done():
            future.set_result(reply)

    def _disconnect(self) -> None:
        if self._socket is None:
            return
        asyncio.get_running_loop().remove_reader(self._socket.fileno())
        self._socket.close()
        self._socket = None
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(SupervisorLostError("the container supervisor has ended"))

    async def close(self) -> None:
        self._disconnect()
        process, self._process = self._process, None
        if process is not None:
            # It ends by itself now that its socket is closed.
            await asyncio.to_thread(process.wait)


@contextlib.asynccontextmanager
async def _exclusive(record: Path) -> AsyncIterator[None]:
    """While this lock is held, no supervisor starts a container on this record. Waits for a start in progress."""
    descriptor = os.open(record, os.O_RDONLY | os.O_DIRECTORY)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(_LOCK_POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)


async def _until_gone(ref: ProcessRef) -> None:
    try:
        descriptor = os.pidfd_open(ref.pid)
    except ProcessLookupError:
        return
    except (OSError, AttributeError):
        while proctree.is_alive(ref.pid, ref.start_time):  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(_POLL_SECONDS)
        return
    loop = asyncio.get_running_loop()
    gone = asyncio.Event()
    try:
        if not proctree.is_alive(ref.pid, ref.start_time):
            return
        loop.add_reader(descriptor, gone.set)
        try:
            await gone.wait()
        finally:
            loop.remove_reader(descriptor)
    finally:
        os.close(descriptor)


def _write_private(path: Path, text: str) -> None:
    """Write a file that only this user can read; where the disk is too full for all of it, remove it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
    except OSError:
        path.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _in_memory(document: Mapping[str, Any]) -> Iterator[int]:
    """A descriptor of a file in memory with the document: a probe must not fail because the disk is full, and an
    environment may contain secrets."""
    descriptor = os.memfd_create("vcbatch-spec", os.MFD_CLOEXEC)
    try:
        data = json.dumps(document).encode()
        while data:
            data = data[os.write(descriptor, data) :]
        yield descriptor
    finally:
        os.close(descriptor)
