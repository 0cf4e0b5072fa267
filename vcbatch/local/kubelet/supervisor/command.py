"""Starts a command from its specification, or reports why it can't be started."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import sys
import termios

from . import syscalls as sys_

_HANDLED = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGCHLD,
    signal.SIGRTMIN,
)
# Signals that Python ignores by itself and a command must not inherit as ignored.
_RESTORED = ("SIGPIPE", "SIGXFSZ")


class StartError(Exception):
    """The command couldn't be started: `exit_code` is that of a shell (127 not found, 126 not executable)."""

    def __init__(self, exit_code: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def launch(
    spec: dict, *, stdin: int, stdout: int, stderr: int, terminal: bool = False, ends_with_us: bool = False
) -> int:
    """Run `argv` with `env` in `working_dir`, in a session of its own, and return its pid; raises `StartError`.

    `cpus` are the CPUs it may use (all that this process may where empty), `umask` is 022 where it is missing. With
    `terminal` its streams are a terminal, which it then controls. With `ends_with_us` it is killed together with this
    process, since no process could report its exit then."""
    failure_read, failure_write = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        _exec(spec, (stdin, stdout, stderr), failure_write, terminal=terminal, ends_with_us=ends_with_us)
    os.close(failure_write)
    with os.fdopen(failure_read, "rb") as pipe:
        failure = pipe.read()
    if failure:
        os.waitpid(pid, 0)
        code, message = json.loads(failure)
        raise StartError(code, message)
    return pid


def exit_code_of(status: int) -> int:
    """The exit code of a shell: 128 + signal where a signal ended the process."""
    if os.WIFSIGNALED(status):
        return 128 + os.WTERMSIG(status)
    return os.WEXITSTATUS(status)


def _exec(spec: dict, streams: tuple[int, int, int], failure: int, *, terminal: bool, ends_with_us: bool) -> None:
    """In the forked child: execute the command. Never returns."""
    try:
        if ends_with_us and sys.platform == "linux":
            sys_.prctl(sys_.PR_SET_PDEATHSIG, signal.SIGKILL)
        _become(spec, streams, terminal=terminal)
    except OSError as error:
        os.write(failure, json.dumps(_explain(spec, error)).encode())
    except BaseException as error:
        os.write(failure, json.dumps([128, f"{type(error).__name__}: {error}"]).encode())
    os._exit(127)


def _become(spec: dict, streams: tuple[int, int, int], *, terminal: bool) -> None:
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in _HANDLED:
        signal.signal(number, signal.SIG_DFL)
    for name in _RESTORED:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    if terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    if spec["cpus"] and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, spec["cpus"])
    os.umask(spec.get("umask", 0o022))
    os.chdir(spec["working_dir"])
    os.execvpe(spec["argv"][0], spec["argv"], spec["env"])  # noqa: S606


def _explain(spec: dict, error: OSError) -> list:
    command = spec["argv"][0]
    if error.filename == spec["working_dir"] and error.filename != command:
        return [128, f'working directory "{spec["working_dir"]}": {os.strerror(error.errno or 0)}']
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        if "/" in command and os.path.exists(command):
            return [127, f'exec: "{command}": its interpreter (the #! line or the dynamic loader) is not found']
        where = "no such file or directory" if "/" in command else "executable file not found in $PATH"
        return [127, f'exec: "{command}": {where}']
    if error.errno == errno.EACCES:
        if "/" not in command and not _is_on_path(command, spec["env"].get("PATH", os.defpath)):
            # A search path directory that may not be read gives the same error as a file that may not be executed.
            return [127, f'exec: "{command}": executable file not found in $PATH']
        return [126, f'exec: "{command}": permission denied']
    if error.errno == errno.ENOEXEC:
        return [126, f'exec: "{command}": exec format error (a script needs a #! line)']
    if error.errno == errno.E2BIG:
        return [126, f'exec: "{command}": arguments and environment are too long']
    return [126, f'exec: "{command}": {os.strerror(error.errno or 0)}']


def _is_on_path(command: str, path: str) -> bool:
    return any(os.path.exists(os.path.join(directory, command)) for directory in path.split(":"))
