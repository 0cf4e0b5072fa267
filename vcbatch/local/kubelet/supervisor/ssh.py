"""The `ssh` command in pods of a job with the ssh plugin: runs a command in another pod of the job, through the
kubelet.

There is no server, no key and no encryption: both pods are processes of one user on one machine. It implements what
programs such as mpirun expect: the options of OpenSSH, the command in a shell of the other pod with our streams, its
exit code, and 255 where it couldn't be started. The kubelet answers on a socket `{"started": true}` once it has passed
our streams on, `{"wait": WHY}` while the other pod doesn't run yet, and `{"error": WHY}`.

Other hosts than pods of the job are left to the machine's own ssh.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time

_FLAGS = frozenset("46AaCKkTtvXxYyq")  # without effect where nothing is encrypted, forwarded or displayed
_VALUES = frozenset("BbcEeFIilmop")  # the same, with a value
_REFUSED = frozenset("DfGgJLMNOPQRSsWw")
_PATIENCE_SECONDS = 120.0
_PAUSE_SECONDS = 0.2
_UNREACHABLE = 255


class UsageError(Exception):
    """An option that is unknown or not supported."""


class Call:
    """The parsed command line: `command` is None for a shell that reads our standard input."""

    def __init__(self, arguments: list[str]) -> None:
        self.host = ""
        self.command: str | None = None
        self.no_input = False
        self.patience = _PATIENCE_SECONDS
        rest = list(arguments)
        while rest:
            if rest[0] == "--":
                rest.pop(0)
                if not self.host and rest:
                    self.host = rest.pop(0)
                break
            if rest[0].startswith("-") and len(rest[0]) > 1:
                self._options(rest)
            elif self.host:
                break
            else:
                self.host = rest.pop(0)
        if not self.host:
            raise UsageError("no host is named")
        if rest:
            self.command = " ".join(rest)
        self.host = self.host.removeprefix("ssh://").rpartition("@")[2]

    def _options(self, rest: list[str]) -> None:
        """Parse one word of options, and the value of its last one where it has one."""
        letters = rest.pop(0)[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            if letter == "n":
                self.no_input = True
            elif letter in _VALUES:
                if not letters and not rest:
                    raise UsageError(f"option requires an argument -- {letter}")
                self._value(letter, letters or rest.pop(0))
                return
            elif letter in _REFUSED:
                raise UsageError(f"option -{letter} can't be had between pods of local mode")
            elif letter not in _FLAGS:
                raise UsageError(f"unknown option -- {letter}")

    def _value(self, letter: str, value: str) -> None:
        name, _, text = value.replace("=", " ", 1).partition(" ")
        if letter == "o" and name.lower() == "connecttimeout" and text.strip().isdigit():
            self.patience = float(text)


def main(directory: str, name: str, pod: str, arguments: list[str]) -> int:
    """Run the command; returns its exit code. The socket is `name` in `directory`, the pod's UID is `pod`."""
    if "-V" in arguments:
        print("vcbatch: ssh between the pods of a job in local mode", file=sys.stderr)  # noqa: T201
        return 0
    try:
        call = Call(arguments)
    except UsageError as error:
        return _fail(str(error))
    end = time.monotonic() + call.patience
    while True:
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        reply = _ask(directory, name, {"pod": pod, "host": call.host, "command": call.command}, theirs, call.no_input)
        if "started" in reply:
            return _follow(control, call.host)
        control.close()
        if "stranger" in reply:
            return _leave_to_the_machine(arguments, call.host)
        if "wait" not in reply:
            return _fail(reply.get("error", "the kubelet doesn't answer"))
        if time.monotonic() >= end:
            return _fail(f"connect to host {call.host} port 22: Connection timed out ({reply['wait']})")
        time.sleep(_PAUSE_SECONDS)


def _ask(directory: str, name: str, request: dict, theirs: socket.socket, no_input: bool) -> dict:
    """Pass our streams to the kubelet; `theirs` is closed."""
    # Through the directory: the path of a socket is limited to 107 bytes.
    folder = os.open(directory, os.O_PATH | os.O_DIRECTORY)
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        with theirs, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.connect(f"/proc/self/fd/{folder}/{name}")
            streams = [nothing if (number == 0 and no_input) or not _is_open(number) else number for number in range(3)]
            socket.send_fds(connection, [json.dumps(request).encode()], [theirs.fileno(), *streams])
            return json.loads(connection.recv(65536) or b"{}")
    except OSError as error:
        return {"error": f"the kubelet doesn't answer: {error.strerror or error}"}
    finally:
        os.close(folder)
        os.close(nothing)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _follow(control: socket.socket, host: str) -> int:
    """Wait until the command has ended. The control socket is closed when this process ends, and that ends the
    command."""
    while message := control.recv(65536):
        reply = json.loads(message)
        if "error" in reply:
            return _fail(reply["error"])
        if "exit_code" in reply:
            return int(reply["exit_code"])
    return _fail(f"Connection to {host} closed by remote host.")


def _leave_to_the_machine(arguments: list[str], host: str) -> int:
    own = os.path.dirname(os.path.abspath(sys.argv[0]))
    for folder in os.environ.get("PATH", os.defpath).split(":"):
        program = os.path.join(folder, "ssh")
        if folder != own and os.access(program, os.X_OK):
            os.execv(program, ["ssh", *arguments])  # noqa: S606
    return _fail(f"Could not resolve hostname {host}: no pod of this job is called so")


def _fail(message: str) -> int:
    print(f"ssh: {message}", file=sys.stderr)  # noqa: T201
    return _UNREACHABLE
