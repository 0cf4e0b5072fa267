"""Run a command with another root file system, in namespaces that end with it.

What it writes goes to a folder that is removed afterwards, except in what is bound into it; the root itself is never
changed, so that any number run at once.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class SandboxError(Exception):
    """A command in a sandbox failed; the message carries the end of what it said."""


@dataclass(frozen=True, slots=True)
class Bind:
    """A folder or file of the machine that the command sees at `at`."""

    source: Path
    at: str
    writable: bool = False


def missing() -> str:
    """What this machine lacks; empty where sandboxes work."""
    for program in ("unshare", "mount", "chroot"):
        if shutil.which(program, path=PATH) is None:
            return f"{program} (package util-linux or coreutils)"
    try:
        done = subprocess.run(
            ["unshare", "--mount", "--pid", "--net", "--fork", "mount", "-t", "tmpfs", "tmpfs", "/tmp"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    except OSError as error:
        return str(error)
    return f"the right to make namespaces and mounts: {done.stderr.strip()}" if done.returncode else ""


@contextmanager
def sandboxed(
    root: Path, command: Sequence[str], *, binds: Sequence[Bind] = (), network: bool = False
) -> Iterator[list[str]]:
    """The command line that runs `command` with this root; without `network` it has not even a loopback interface."""
    with tempfile.TemporaryDirectory(prefix="vcbatch-sandbox-") as name:
        folder = Path(name)
        for each in ("upper", "work", "merged"):
            (folder / each).mkdir()
        # An overlay's upper folder is its root: it says who may enter.
        (folder / "upper").chmod(0o755)
        script = folder / "enter.sh"
        script.write_text(_script(root, folder, binds, command), encoding="utf-8")
        apart = ["--mount", "--pid", "--ipc", "--uts", *([] if network else ["--net"])]
        yield ["unshare", *apart, "--fork", "--kill-child", "--propagation", "private", "sh", str(script)]


def run(
    root: Path,
    command: Sequence[str],
    *,
    binds: Sequence[Bind] = (),
    network: bool = False,
    env: Mapping[str, str] | None = None,
    timeout: float = 900,
) -> str:
    """What `command` printed. Raises `SandboxError` where it fails or takes longer."""
    with sandboxed(root, command, binds=binds, network=network) as line:
        try:
            done = subprocess.run(
                line, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=timeout,
                env={"PATH": PATH, "HOME": "/root", "LC_ALL": "C", **(env or {})},
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise SandboxError(f"{command[0]}: not done after {timeout:.0f} s") from error
    if done.returncode:
        raise SandboxError(f"{command[0]} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-6000:]}")
    return done.stdout


def _script(root: Path, folder: Path, binds: Sequence[Bind], command: Sequence[str]) -> str:
    merged = folder / "merged"
    layers = f"lowerdir={root},upperdir={folder / 'upper'},workdir={folder / 'work'}"
    lines = ["set -e", shlex.join(["mount", "-t", "overlay", "-o", layers, "overlay", str(merged)])]
    for name, arguments in (
        ("proc", ["-t", "proc", "proc"]),
        ("sys", ["--rbind", "/sys"]),
        ("dev", ["--rbind", "/dev"]),
        ("run", ["-t", "tmpfs", "tmpfs"]),
    ):
        lines.append(shlex.join(["mkdir", "-p", str(merged / name)]))
        lines.append(shlex.join(["mount", *arguments, str(merged / name)]))
    for bind in binds:
        at = merged / bind.at.lstrip("/")
        if bind.source.is_dir():
            lines.append(shlex.join(["mkdir", "-p", str(at)]))
        else:
            lines.append(shlex.join(["mkdir", "-p", str(at.parent)]))
            lines.append(f"{shlex.join(['rm', '-f', str(at)])}; : > {shlex.quote(str(at))}")
        lines.append(shlex.join(["mount", "--bind", str(bind.source.resolve()), str(at)]))
        if not bind.writable:
            lines.append(shlex.join(["mount", "-o", "remount,bind,ro", str(at)]))
    lines.append(f"cd {shlex.quote(str(merged))}")
    # A root that is a mount of its own, so that programs which change it again can.
    lines.append("exec " + shlex.join(["chroot", str(merged), *command]))
    return "\n".join(lines) + "\n"
