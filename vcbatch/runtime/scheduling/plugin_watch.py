"""Logs which user-defined plugin a cycle is waiting for: nothing else of the program runs during that time, so no
metric or probe could report it."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from vcbatch.scheduler.failures import busy
from vcbatch.scheduler.framework.policy import Extensions

log = logging.getLogger(__name__)

SLOW_SECONDS: Final = 5.0


class PluginWatch:
    """`slow(name, where)` is called after a cycle during which a plugin or an action was running after `after` seconds.
    Costs nothing where the configuration names no user-defined ones."""

    def __init__(self, slow: Callable[[str, str], None], *, after: float = SLOW_SECONDS) -> None:
        self._slow = slow
        self._after = after

    @contextmanager
    def over(self, extensions: Extensions) -> Iterator[None]:
        """Watch the current thread."""
        if not extensions.plugins and not extensions.actions:
            yield
            return
        found: list[tuple[str, str]] = []
        timer = threading.Timer(self._after, self._check, [threading.get_ident(), extensions, found])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
        for name, where in found:
            self._slow(name, where)

    def _check(self, thread: int, extensions: Extensions, found: list[tuple[str, str]]) -> None:
        name, where = busy(sys._current_frames().get(thread), extensions)
        if name:
            log.warning("a cycle takes longer than %g s: waiting for %s", self._after, where)
            found.append((name, where))
