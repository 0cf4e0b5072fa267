"""The embedded server on a port, with nothing else of vcbatch in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from vcbatch.cli.local.admission import admission_services, ensure_webhooks
from vcbatch.cli.local.definitions import ensure_definitions
from vcbatch.local.apiserver.server import EmbeddedServer
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.random import SystemRandom


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    """With our definitions and our admission."""
    clock = SystemClock()
    server = EmbeddedServer(
        state_dir=tmp_path / "state", clock=clock, random=SystemRandom(), port=0, services=admission_services(clock)
    )
    await server.start()
    try:
        await ensure_definitions(server.api)
        await ensure_webhooks(server.api)
        yield server
    finally:
        await server.stop()
