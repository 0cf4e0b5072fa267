"""What `make demo` shows of a log, whatever the server answers before the pod runs."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from vcbatch.interfaces import ApiError

DEMO = Path(__file__).parents[3] / "examples/demo.py"


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo", DEMO)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Server:
    """Answers each request for the log with the next of `logs`, and with the last one from then on.

    Each of them is the phase of the pod at that time, the lines, and an error that follows them.
    """

    def __init__(self, *logs: tuple[str, list[bytes], ApiError | None]) -> None:
        self.logs = list(logs)
        self.phase = "Pending"

    async def get(self, *_: Any, **__: Any) -> dict[str, Any]:
        return {"metadata": {"uid": "1"}, "status": {"phase": self.phase}}

    async def log_lines(self, *_: Any, **__: Any) -> AsyncIterator[bytes]:
        self.phase, lines, error = self.logs.pop(0) if len(self.logs) > 1 else self.logs[0]
        for line in lines:
            yield line
        if error is not None:
            raise error


@pytest.mark.parametrize(
    "before",
    [
        pytest.param([("Pending", [], None)] * 3, id="empty log of a pod without a node"),
        pytest.param([("Pending", [], ApiError(400, "BadRequest", "ContainerCreating"))], id="container not started"),
        pytest.param([("Running", [b"one"], ApiError(0, "", "broken"))], id="connection broken in the middle"),
        pytest.param([("Running", [b"one"], None)], id="stream ended while the pod runs"),
    ],
)
async def test_reads_the_log_until_the_pod_has_ended(demo: ModuleType, before: list[Any]) -> None:
    server = Server(*before, ("Running", [b"one", b"two"], None), ("Succeeded", [b"one", b"two"], None))
    screen = demo.Screen()
    async with asyncio.timeout(30):
        await demo.show_training(server, screen)
    assert screen.log == ["one", "two"]
    assert server.phase == "Succeeded"
