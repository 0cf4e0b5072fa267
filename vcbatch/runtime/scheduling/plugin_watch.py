"""Saying which plugin of the user's own a cycle waits for while it waits: nothing else of the program runs until then,
so that no metric and no probe could tell."""

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
    """`slow(name, where)` is called once a cycle is over in which a plugin or an action was being called after so many
    seconds. Those that no policy of the user's own names cost nothing."""

    def __init__(self, slow: Callable[[str, str], None], *, after: float = SLOW_SECONDS) -> None:
        self._slow = slow
        self._after = after

    @contextmanager
    def over(self, extensions: Extensions) -> Iterator[None]:
        """Watch what this thread does."""
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
            log.warning("a cycle takes longer than %g s, it waits for %s", self._after, where)
            found.append((name, where))
