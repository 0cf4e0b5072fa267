"""Signals to process 1 of a container, which the kernel ignores where it has no handler for them."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

_AS_FIRST = "import os; os.getpid = lambda: 1; from vcbatch.cli.main import main; main()"


def handled(pid: int, number: signal.Signals) -> bool:
    """Whether the process has a handler for the signal."""
    found = re.search(r"^SigCgt:\s+(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return found is not None and bool(int(found[1], 16) >> (number - 1) & 1)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(("controllers",), 0), (("scheduler",), 0), (("webhooks",), 0), (("job", "list"), 128 + signal.SIGTERM)],
)
def test_sigterm_ends_process_1_that_waits_for_its_server(tmp_path: Path, arguments: tuple[str, ...], status: int):
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections and never shakes hands
        server = f"https://127.0.0.1:{silent.getsockname()[1]}"
        config = tmp_path / "config"
        config.write_text(
            yaml.safe_dump(
                {
                    "current-context": "main",
                    "contexts": [{"name": "main", "context": {"cluster": "c"}}],
                    "clusters": [{"name": "c", "cluster": {"server": server}}],
                }
            )
        )
        process = subprocess.Popen([sys.executable, "-c", _AS_FIRST, *arguments, "--kubeconfig", str(config)])
        try:
            end = time.monotonic() + 120
            while not handled(process.pid, signal.SIGTERM):
                assert process.poll() is None and time.monotonic() < end
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            assert process.wait(120) == status
        finally:
            process.kill()
            process.wait()
