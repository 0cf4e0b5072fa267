"""The embedded server on a port, with nothing else of vcbatch in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from vcbatch.cli.admission import LocalAdmission
from vcbatch.cli.definitions import ensure_definitions
from vcbatch.local.apiserver.server import EmbeddedServer
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.random import SystemRandom


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    """With our definitions and our admission."""
    admission = LocalAdmission()
    server = EmbeddedServer(
        state_dir=tmp_path / "state", clock=SystemClock(), random=SystemRandom(), port=0, admission=admission
    )
    await server.start()
    try:
        await ensure_definitions(server.api)
        yield server
    finally:
        await server.stop()
