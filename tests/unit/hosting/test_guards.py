"""Whoever reads nothing is let go of, and whoever reads slowly isn't."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.virtual_time import run
from vcbatch.hosting.guards import SlowReader, most_connections


class Waiting(asyncio.Transport):
    """A transport with so many bytes that the client hasn't taken."""

    def __init__(self) -> None:
        super().__init__()
        self.size = 1000
        self.aborted = False

    def get_write_buffer_size(self) -> int:
        return self.size

    def abort(self) -> None:
        self.aborted = True


def watched(check: Callable[[Waiting, SlowReader], Any]) -> None:
    async def main() -> None:
        transport = Waiting()
        await check(transport, SlowReader(transport, 10))

    run(main())


def test_a_client_that_reads_nothing_is_let_go_of() -> None:
    async def check(transport: Waiting, reader: SlowReader) -> None:
        reader.paused()
        await asyncio.sleep(9.9)
        assert not transport.aborted
        await asyncio.sleep(0.2)
        assert transport.aborted

    watched(check)


def test_a_client_that_reads_slowly_is_kept_for_as_long_as_it_reads() -> None:
    async def check(transport: Waiting, reader: SlowReader) -> None:
        reader.paused()
        for _ in range(50):
            transport.size -= 1
            await asyncio.sleep(9)
        assert not transport.aborted
        await asyncio.sleep(20)
        assert transport.aborted

    watched(check)


def test_a_client_that_has_read_is_kept() -> None:
    async def check(transport: Waiting, reader: SlowReader) -> None:
        reader.paused()
        await asyncio.sleep(9)
        reader.resumed()
        await asyncio.sleep(100)
        assert not transport.aborted

    watched(check)


def test_a_session_may_be_paused_for_longer() -> None:
    async def check(transport: Waiting, reader: SlowReader) -> None:
        reader.paused()
        reader.allow(1000)
        await asyncio.sleep(999)
        assert not transport.aborted
        await asyncio.sleep(2)
        assert transport.aborted

    watched(check)


@pytest.mark.parametrize("soft", [64, 1024, 10**6])
def test_connections_leave_files_for_everything_else(soft: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (soft, soft))
    assert most_connections(5000) == min(5000, soft // 2)
