"""The actions, by the names that a policy file uses; a policy runs them in its own order."""

from __future__ import annotations

from vcbatch.scheduler.actions.allocate import Allocate
from vcbatch.scheduler.actions.backfill import Backfill
from vcbatch.scheduler.actions.base import Action
from vcbatch.scheduler.actions.enqueue import Enqueue

ACTIONS: dict[str, Action] = {"allocate": Allocate(), "backfill": Backfill(), "enqueue": Enqueue()}

UNSUPPORTED_ACTIONS = frozenset({"gangpreempt", "gangreclaim", "preempt", "reclaim", "shuffle"})
"""Names that Volcano knows and this scheduler doesn't."""
