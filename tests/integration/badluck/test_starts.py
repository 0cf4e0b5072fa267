"""Starts that meet each other, are broken off, or find their port taken."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys

from tests.integration.badluck.conftest import Unlucky
from tests.integration.clients.waiting import until
from tests.integration.up.conftest import left_over
from tests.support.up import vcbatch


def start(program: Unlucky, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "vcbatch", "up", "--port", "0", "--state-dir", str(program.state), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_of_several_started_at_once_one_runs(program: Unlucky):
    starting = [start(program, "--detach") for _ in range(3)]
    said = [process.communicate(timeout=60) for process in starting]
    codes = sorted(process.returncode for process in starting)
    assert codes == [0, 1, 1], said
    for process, (_, errors) in zip(starting, said, strict=True):
        if process.returncode:
            assert "already running" in errors and "Traceback" not in errors
    assert "Ready" in vcbatch("status", "--state-dir", str(program.state)).stdout


def test_a_start_that_is_broken_off_leaves_nothing(program: Unlucky):
    process = start(program)
    until(lambda: (program.state / "pid").exists() or None)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=120)
    assert process.returncode in (0, -signal.SIGTERM), errors
    assert "error" not in errors, "no part goes on without the others"
    assert left_over(program.state) == []
    program.up()


def test_a_port_that_was_taken_meanwhile_is_exchanged_for_a_free_one(program: Unlucky):
    program.up()
    before = program.kubeconfig.read_text()
    port = int(before.partition("127.0.0.1:")[2].split()[0])
    program.down()
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))
        other.listen()
        vcbatch("up", "--detach", "--state-dir", str(program.state))
        assert program.kubeconfig.read_text() != before
        assert "Ready" in vcbatch("status", "--state-dir", str(program.state)).stdout
