"""Names of actions that mean something to others."""

from __future__ import annotations

from typing import Final

EVICTING: Final = frozenset({"gangpreempt", "gangreclaim", "preempt", "reclaim"})
"""The actions that look for victims in the victim table, which is kept for them only."""
