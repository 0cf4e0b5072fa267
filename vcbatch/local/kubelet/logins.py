"""Login from pod to pod: the function of the ssh plugin, without an ssh server.

A pod of a job with the ssh plugin has an `ssh` first on its PATH that passes its streams to the kubelet, which starts
the command as an additional one in the container of the other pod, and an `sshd` that only waits. So `mpirun` and other
launchers that use ssh work without keys, ports and servers.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pwd
import shlex
import socket
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from vcbatch.api.names import JOB_NAME, ssh_secret
from vcbatch.api.pod import TERMINAL_PHASES
from vcbatch.hosting.supervise import Background
from vcbatch.interfaces.processes import ProcessStartError
from vcbatch.local.kubelet.names import PodName, pod_name

Json = dict[str, Any]

SOCKET = "logins"
SSHD_PATH = "/usr/sbin/sshd"
"""The usual path of the ssh server in images, which commands written for them use."""

_MAX_MESSAGE = 128 * 1024
_MAX_DESCRIPTORS = 4  # control, standard input, output, error
_PATIENCE_SECONDS = 10.0  # for a client's request, which follows its connection at once
_BACKLOG = 128

_SSH = """\
#!/bin/sh
exec {python} -I -S -c 'import sys; sys.path.append({package}); from supervisor.ssh import main; \
sys.argv[0] = {own}; sys.exit(main({directory}, {name}, {pod}, sys.argv[1:]))' "$@"
"""
_SSHD = """\
#!/bin/sh
# Pods of local mode are logged in to without a server: this one only waits where it is to stay.
for word; do
  case $word in
    -*D*) exec sleep 2147483647 ;;
  esac
done
"""


def logs_in(pod: Json) -> bool:
    """Whether the pod belongs to a job with the ssh plugin."""
    job = (pod["metadata"].get("labels") or {}).get(JOB_NAME)
    secrets = ((volume.get("secret") or {}).get("secretName") for volume in pod["spec"].get("volumes") or ())
    return bool(job) and ssh_secret(job) in secrets


def write_programs(folder: Path, *, root: Path, uid: str) -> Path:
    """Write `ssh` and `sshd` for one pod to `folder`; returns it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    texts = {
        "ssh": _SSH.format(
            python=shlex.quote(sys.executable),
            **{
                key: _quoted(value)
                for key, value in {
                    "package": str(Path(__file__).parent),
                    "own": str(folder / "ssh"),
                    "directory": str(root),
                    "name": SOCKET,
                    "pod": uid,
                }.items()
            },
        ),
        "sshd": _SSHD,
    }
    for name, text in texts.items():
        path = folder / name
        path.write_text(text)
        path.chmod(0o755)
    return folder


def _quoted(text: str) -> str:
    """A Python literal for use inside the single quotes of a shell."""
    return json.dumps(text).replace("'", "'\\''")


class LiveRun(Protocol):
    """An active run of a container."""

    async def run_on(self, argv: Sequence[str], streams: Sequence[int]) -> None: ...


class Peer(Protocol):
    """A pod on this machine."""

    @property
    def pod(self) -> Json: ...
    @property
    def address(self) -> str: ...
    def live_run(self, container: str) -> LiveRun | None: ...


P = TypeVar("P", bound=Peer)


class Logins:
    """Serves the pods' `ssh` on a socket in the kubelet's directory. `peers` returns the current pods."""

    def __init__(self, root: Path, *, peers: Callable[[], Iterable[Peer]], background: Background) -> None:
        self._root = root
        self._peers = peers
        self._background = background

    async def run(self) -> None:
        """Serve until cancelled."""
        loop = asyncio.get_running_loop()
        with _listening(self._root) as listener:
            while True:
                connection, _ = await loop.sock_accept(listener)
                self._background.once("kubelet: login", partial(self._serve, connection))

    async def _serve(self, connection: socket.socket) -> None:
        descriptors: list[int] = []
        try:
            connection.setblocking(False)
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await _readable(connection)
                message, descriptors, _, _ = socket.recv_fds(
                    connection, _MAX_MESSAGE, _MAX_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
                )
                reply = await self._answer(message, descriptors)
            connection.send(json.dumps(reply).encode())
        except (OSError, TimeoutError):
            return  # the client has disconnected, or sent no request
        finally:
            connection.close()
            for descriptor in descriptors:
                os.close(descriptor)

    async def _answer(self, message: bytes, descriptors: Sequence[int]) -> Json:
        try:
            request = json.loads(message)
            uid, host, command = str(request["pod"]), str(request["host"]), request.get("command")
        except (ValueError, KeyError, TypeError):
            return {"error": "the request isn't understood"}
        if len(descriptors) != _MAX_DESCRIPTORS or not isinstance(command, str | None):
            return {"error": "the request isn't understood"}
        everybody = list(self._peers())
        caller = next((peer for peer in everybody if peer.pod["metadata"]["uid"] == uid), None)
        if caller is None:
            return {"error": "this pod has ended"}
        peers = [peer for peer in everybody if _job_of(peer.pod) == _job_of(caller.pod)]
        target = find(host, caller=caller, peers=peers)
        if target is None:
            known = _may_come(host, pod_name(caller.pod))
            return {"wait": f"{host} isn't on this machine yet"} if known else {"stranger": host}
        return await self._start(target, host, command, descriptors)

    async def _start(self, target: Peer, host: str, command: str | None, descriptors: Sequence[int]) -> Json:
        container = target.pod["spec"]["containers"][0]["name"]
        live = target.live_run(container)
        if live is None:
            phase = (target.pod.get("status") or {}).get("phase")
            if phase in TERMINAL_PHASES or target.pod["metadata"].get("deletionTimestamp"):
                return {"error": f"connect to host {host} port 22: Connection refused (the pod has ended)"}
            return {"wait": f"container {container} of {target.pod['metadata']['name']} doesn't run"}
        shell = _login_shell()
        try:
            await live.run_on([shell] if command is None else [shell, "-c", command], descriptors)
        except ProcessStartError as error:
            return {"error": str(error)}
        return {"started": True}


def find(host: str, *, caller: P, peers: Iterable[P]) -> P | None:
    """The pod of the caller's job with that name or address; where an older pod of that name is terminating, the newer
    one."""
    if host in ("localhost", "127.0.0.1", "::1"):
        return caller
    named: list[P] = []
    for peer in peers:
        name = pod_name(peer.pod)
        if host in (name.hostname, peer.address) or host in name.aliases(seen_from=name.namespace):
            named.append(peer)
    return max(named, key=lambda peer: peer.pod["metadata"].get("creationTimestamp") or "", default=None)


def _may_come(host: str, own: PodName) -> bool:
    """Whether a pod of the job that isn't here (yet) may have that name."""
    first, _, rest = host.partition(".")
    if not own.subdomain:
        return False
    if not rest:
        return first.startswith(f"{own.subdomain}-")
    peer = PodName(namespace=own.namespace, hostname=first, subdomain=own.subdomain)
    return host in peer.aliases(seen_from=own.namespace)


def _job_of(pod: Json) -> tuple[str, str]:
    metadata = pod["metadata"]
    owner = next((o["uid"] for o in metadata.get("ownerReferences") or () if o.get("controller")), metadata["uid"])
    return metadata["namespace"], owner


def _login_shell() -> str:
    """The shell in which ssh runs a command: launchers write their commands for the user's login shell."""
    with contextlib.suppress(KeyError):
        shell = pwd.getpwuid(os.geteuid()).pw_shell
        if os.access(shell, os.X_OK) and not shell.endswith(("nologin", "false")):
            return shell
    return "/bin/sh"


@contextlib.contextmanager
def _listening(root: Path) -> Any:
    # Through the directory: the path of a socket is limited to 107 bytes.
    folder = os.open(root, os.O_PATH | os.O_DIRECTORY)
    path = f"/proc/self/fd/{folder}/{SOCKET}"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(SOCKET, dir_fd=folder)
        listener.bind(path)
        os.chmod(path, 0o600)  # noqa: PTH101 - a path by descriptor
        listener.listen(_BACKLOG)
        listener.setblocking(False)
        yield listener
    finally:
        listener.close()
        with contextlib.suppress(OSError):
            os.unlink(SOCKET, dir_fd=folder)
        os.close(folder)


async def _readable(connection: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(connection.fileno(), ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(connection.fileno())
