"""The script with which a worker waits for its master, in the shells and with the tools that this machine has."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from vcbatch.core.job.plugins.master_wait import wait_container

SHELLS = [shell for shell in ("dash", "bash") if shutil.which(shell)]
BASIC = ("date", "sleep", "grep", "true", "timeout")
WAYS = ("python3", "perl", "nc", "bash", "busybox")


@pytest.fixture
def taken_port() -> Iterator[socket.socket]:
    """A port on which nobody listens yet, and nobody else can."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held


def tools(folder: Path, *ways: str, shell: str) -> Path:
    """A folder with a shell, what every image has beside it, and these ways to ask."""
    folder.mkdir()
    for name in (*BASIC, *ways):
        found = sys.executable if name == "python3" else shutil.which(name)
        if found is None:
            pytest.skip(f"{name} isn't on this machine")
        if name == "python3":
            _script(folder / name, f'exec {found} "$@"')
        else:
            (folder / name).symlink_to(found)
    where = shutil.which(shell)
    assert where is not None
    (folder / "sh").symlink_to(where)
    return folder


def _script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@contextmanager
def waiting(path: Path, port: int, *, seconds: int) -> Iterator[subprocess.Popen[str]]:
    container = wait_container(
        {"spec": {"containers": []}},
        image="img",
        timeout=seconds,
        defaults={"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)},
    )
    variables = {entry["name"]: entry["value"] for entry in container["env"]}
    command = [str(path / "sh"), *container["command"][1:]]
    environment = {**variables, "PATH": str(path)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, 9)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shell", SHELLS)
def test_it_ends_when_the_master_listens(shell: str, way: str, tmp_path: Path, taken_port: socket.socket) -> None:
    port = taken_port.getsockname()[1]
    with waiting(tools(tmp_path / "bin", way, shell=shell), port, seconds=60) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"waiting until 127.0.0.1:{port} answers, asking with {way}\n"
        assert process.poll() is None
        taken_port.listen()
        assert process.wait(60) == 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shell", SHELLS)
def test_it_fails_when_the_master_never_listens(
    shell: str, way: str, tmp_path: Path, taken_port: socket.socket
) -> None:
    port = taken_port.getsockname()[1]
    with waiting(tools(tmp_path / "bin", way, shell=shell), port, seconds=1) as process:
        _, said = process.communicate(timeout=60)
        assert (process.returncode, said) == (1, f"127.0.0.1:{port} didn't answer within 1 s\n")


@pytest.mark.skipif(not shutil.which("busybox"), reason="busybox isn't on this machine")
def test_busybox_alone_is_enough(tmp_path: Path, taken_port: socket.socket) -> None:
    """As in the plugin's default image. Its nc may have no -z."""
    folder = tools(tmp_path / "bin", "busybox", shell="busybox")
    with waiting(folder, taken_port.getsockname()[1], seconds=60) as process:
        assert process.stdout is not None
        assert "asking with" in process.stdout.readline()
        taken_port.listen()
        assert process.wait(60) == 0


@pytest.mark.parametrize("shell", SHELLS)
def test_it_says_when_it_has_nothing_to_ask_with(shell: str, tmp_path: Path, taken_port: socket.socket) -> None:
    taken_port.listen()
    port = taken_port.getsockname()[1]
    folder = tools(tmp_path / "bin", shell=shell)
    _script(folder / "python3", "exit 127")  # a shim without the version that it names
    with waiting(folder, port, seconds=60) as process:
        out, said = process.communicate(timeout=60)
        assert process.returncode == 1
        assert not out
        assert f"can't tell whether 127.0.0.1:{port} answers" in said
        assert "--wait-master-image" in said
