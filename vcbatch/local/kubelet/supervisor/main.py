"""The supervisor's loop: one request per message, one fork per request.

The kubelet has the other end of a sequenced-packet socket. When that is closed, for whatever reason, this process ends
and the containers continue: each has its own init process.

Requests are JSON: `{"id": N, "op": "start", "record": DIR}` (the container's specification is in `DIR/spec.json`, which
is removed once read, since its environment may contain secrets), `{"id": N, "op": "exec", "pid": P}`, together with the
descriptor of a file with the command's specification, and `{"id": N, "op": "probe"}`. Responses have the same id.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile

from . import session
from . import syscalls as sys_
from .command import StartError
from .container import Container, open_exit, write_exit
from .mounts import MountError, View
from .reserved import NO_SPACE, REFERENCE, put

_NAMESPACES = sys_.CLONE_NEWNS | sys_.CLONE_NEWUTS
MAX_EXEC_OUTPUT = 10 * 1024
_MAX_DESCRIPTORS = 5  # a session's: specification, control, standard input, output, error


def main() -> None:
    """Serve requests from the socket whose descriptor is the last argument, until the kubelet closes it."""
    connection = socket.socket(fileno=int(sys.argv[-1]))
    connection.set_inheritable(False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the short-lived forks
    gc.disable()
    gc.freeze()  # forks share the heap as long as no process writes to it
    while True:
        message, descriptors, _, _ = socket.recv_fds(connection, 65536, _MAX_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC)
        if not message:
            return
        request = json.loads(message)
        if os.fork() == 0:
            _answer(connection, request, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _answer(connection: socket.socket, request: dict, descriptors: list[int]) -> None:
    """In the fork: process one request and respond. Never returns."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    if request["op"] == "session":
        connection.close()
        session.serve(request, descriptors)
        os._exit(0)
    try:
        if request["op"] == "exec":
            reply = _exec(request, session.read_spec(descriptors[0]))
        else:
            reply = {"start": _start, "probe": _probe}[request["op"]](request)
    except BaseException as error:
        reply = {"error": str(error) or type(error).__name__, "exit_code": 128, "errno": _errno(error)}
    try:
        connection.send(json.dumps({"id": request["id"], **reply}).encode())
    finally:
        os._exit(0)


def _start(request: dict) -> dict:
    os.setsid()
    record_fd = os.open(request["record"], os.O_RDONLY | os.O_DIRECTORY)
    # A kubelet that adopts this record waits until it has the started process, or removes the specification before it
    # is read here.
    lock_fd = os.open(request["record"], os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(lock_fd, fcntl.LOCK_EX)
    with open("spec.json", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, dir_fd=record_fd)) as file:
        spec = json.load(file)
    os.unlink("spec.json", dir_fd=record_fd)
    namespaces = spec["namespaces"]
    if namespaces["mount"]:
        enter_namespaces(user=namespaces["user"], pid=namespaces["pid"])
    # Opened inside the new mount namespace, since nothing else can be bound in it, and before a mount can hide them.
    sources = [os.open(mount["source"], os.O_PATH) for mount in spec["mounts"]]
    go_read, go_write = os.pipe()
    outcome_read, outcome_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(go_write)
        os.close(outcome_read)
        os.close(lock_fd)
        _init(spec, record_fd, sources, go_read, outcome_write)
    os.close(go_read)
    os.close(outcome_write)
    reference = {"pid": pid, "start_time": start_time(pid), "boot_id": boot_id()}
    _write_reference(record_fd, reference)
    fcntl.flock(lock_fd, fcntl.LOCK_UN)
    os.write(go_write, b"1")
    with os.fdopen(outcome_read, "rb") as pipe:
        outcome = pipe.read()
    return {**reference, **json.loads(outcome or b'{"error": "ended while starting", "exit_code": 128}')}


def _write_reference(record_fd: int, reference: dict) -> None:
    fd = os.open(REFERENCE, os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=record_fd)
    try:
        put(fd, reference, sync=False)
    finally:
        os.close(fd)


def _init(spec: dict, record_fd: int, sources: list[int], go: int, outcome: int) -> None:
    """In the container's first process. Never returns."""
    try:
        if not os.read(go, 1):
            os._exit(1)  # this container isn't recorded: it must not run
        os.close(go)
        started = _run(spec, record_fd, sources, outcome)
        if started:
            os._exit(0)
    except BaseException as error:
        _give_up(record_fd, outcome, 128, f"{type(error).__name__}: {error}", number=_errno(error))
    os._exit(1)


def _run(spec: dict, record_fd: int, sources: list[int], outcome: int) -> bool:
    namespaces = spec["namespaces"]
    try:
        if namespaces["mount"]:
            _furnish(spec, sources, new_proc=namespaces["pid"])
        elif sys.platform == "linux":
            sys_.prctl(sys_.PR_SET_CHILD_SUBREAPER, 1)
        for fd in sources:
            os.close(fd)
        _detach_stdio()
        container = Container(spec=spec, record_fd=record_fd, alone=namespaces["pid"])
        container.start()
    except StartError as error:
        _give_up(record_fd, outcome, error.exit_code, str(error))
        return False
    except (MountError, OSError) as error:
        _give_up(record_fd, outcome, 128, str(error), number=_errno(error))
        return False
    os.write(outcome, b"{}")
    os.close(outcome)
    container.run()
    return True


def _furnish(spec: dict, sources: list[int], *, new_proc: bool) -> None:
    socket.sethostname(spec["hostname"])
    view = View(spec["scratch"])
    view.prepare([mount["target"] for mount in spec["mounts"]])
    for mount, fd in zip(spec["mounts"], sources, strict=True):
        view.add(source_fd=fd, target=mount["target"], read_only=mount["read_only"])
    view.enter(new_proc=new_proc)


def _give_up(record_fd: int, outcome: int, exit_code: int, message: str, *, number: int = 0) -> None:
    """Report why the command doesn't run. For lack of disk space it is started again later, so no exit is recorded."""
    failure = {"error": message[:2048], "exit_code": exit_code, "errno": number}
    if number not in NO_SPACE:
        write_exit(open_exit(record_fd), {"error": message[:2048], "exit_code": exit_code}, patience=1.0)
    os.write(outcome, json.dumps(failure).encode())


def _errno(error: BaseException) -> int:
    """The system's error number, of the error or of its cause; 0 where there is none."""
    for one in (error, error.__cause__):
        if isinstance(one, OSError) and one.errno:
            return one.errno
    return 0


def _detach_stdio() -> None:
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)


def enter_namespaces(*, user: bool, pid: bool) -> None:
    """New mount and UTS namespaces (and, for the next child, a PID namespace) for this process; with `user`, inside a
    user namespace in which this process keeps its user and group and gains the privilege to mount."""
    uid, gid = os.geteuid(), os.getegid()
    flags = _NAMESPACES | (sys_.CLONE_NEWPID if pid else 0) | (sys_.CLONE_NEWUSER if user else 0)
    sys_.unshare(flags)
    if not user:
        return
    _write_map("setgroups", "deny")
    _write_map("uid_map", f"{uid} {uid} 1")
    _write_map("gid_map", f"{gid} {gid} 1")


def _write_map(name: str, text: str) -> None:
    fd = os.open(f"/proc/self/{name}", os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _exec(request: dict, spec: dict) -> dict:
    """Run one command inside a running container, for probes and hooks; returns its output, truncated to 10 KiB."""
    if spec["namespaces"]["mount"]:
        session.join(request["pid"], spec["namespaces"])
    try:
        done = subprocess.run(
            spec["argv"],
            env=spec["env"],
            cwd=spec["working_dir"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=spec["timeout"],
            start_new_session=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"exit_code": 124, "output": f"command timed out after {spec['timeout']:g} s"}
    except OSError as error:
        return {"exit_code": 126, "output": str(error)}
    code = done.returncode if done.returncode >= 0 else 128 - done.returncode
    return {"exit_code": code, "output": done.stdout[:MAX_EXEC_OUTPUT].decode(errors="replace")}


def _probe(request: dict) -> dict:
    """Which namespaces this user may create on this machine: tested by creating them, in a process that ends
    afterwards."""
    wanted = request["namespaces"]
    enter_namespaces(user=wanted["user"], pid=wanted["pid"])
    child = os.fork()
    if child == 0:
        try:
            with tempfile.TemporaryDirectory() as scratch:
                View(scratch).enter(new_proc=wanted["pid"])
            os._exit(0)
        except BaseException:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    return {"possible": os.waitstatus_to_exitcode(status) == 0}


def start_time(pid: int) -> int:
    """Start time of a process, in clock ticks since boot: together with the pid, it identifies the process."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return int(file.read().rpartition(")")[2].split()[19])


def boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""
