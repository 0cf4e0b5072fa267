"""What is logged of errors in the event loop of kopf."""

from __future__ import annotations

import asyncio
import logging

import pytest

from vcbatch.runtime.caches.kopf_operator import report


@pytest.mark.parametrize(("name", "logged"), [("request_cancel_callback", False), ("another", True)])
def test_only_the_failure_of_kopfs_own_cancellation_is_not_logged(
    name: str, logged: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def fails() -> None:
        raise AssertionError

    fails.__qualname__ = f"stream.<locals>.{name}"
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(report)
    try:
        with caplog.at_level(logging.ERROR, logger="asyncio"):
            loop.call_soon(fails)
            loop.run_until_complete(asyncio.sleep(0))
    finally:
        loop.close()
    assert bool(caplog.records) is logged
