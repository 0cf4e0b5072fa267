"""Waits for what a server does on its own."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(what: str, condition: Callable[[], bool], timeout: float = 60.0) -> None:
    """Return once the condition holds. Raises TimeoutError naming what was waited for."""
    end = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.05)
