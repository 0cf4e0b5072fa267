"""The real program, and what befalls it; nothing of it stays."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.integration.up.conftest import left_over
from tests.support.up import RunningVcbatch
from vcbatch.runtime.client.http import HttpApi
from vcbatch.runtime.client.kubeconfig import load
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.random import SystemRandom


class Unlucky(RunningVcbatch):
    """A program that is ended in the ways that users end it, and comes back on the port it had."""

    def again(self) -> None:
        port = load(self.kubeconfig).server.rpartition(":")[2]
        self.arguments = ("--port", port)
        self.up()

    def end(self, how: signal.Signals) -> None:
        """Send the signal to the server and wait until it is gone."""
        process = psutil.Process(int((self.state / "pid").read_text().split()[0]))
        os.kill(process.pid, how)
        _, alive = psutil.wait_procs([process], timeout=60)
        assert not alive or alive[0].status() == psutil.STATUS_ZOMBIE, f"{how.name} didn't end the server in 60 s"

    def api(self) -> HttpApi:
        return HttpApi(load(self.kubeconfig), clock=SystemClock(), random=SystemRandom())


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Unlucky]:
    """Not started yet."""
    program = Unlucky(tmp_path)
    yield program
    program.down()
    assert left_over(program.state) == []
