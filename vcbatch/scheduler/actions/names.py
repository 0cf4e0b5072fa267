"""Names of actions that other modules refer to."""

from __future__ import annotations

from typing import Final

EVICTING: Final = frozenset({"gangpreempt", "gangreclaim", "preempt", "reclaim"})
"""The actions that search victims in the victim table, which is maintained only for them."""
