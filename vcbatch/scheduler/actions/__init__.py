"""The actions, by the names that a scheduler configuration uses; it also sets their order."""

from __future__ import annotations

from vcbatch.scheduler.actions.allocate import Allocate
from vcbatch.scheduler.actions.backfill import Backfill
from vcbatch.scheduler.actions.enqueue import Enqueue
from vcbatch.scheduler.actions.gang_eviction import GangEvict
from vcbatch.scheduler.actions.preempt import Preempt
from vcbatch.scheduler.actions.reclaim import Reclaim
from vcbatch.scheduler.actions.shuffle import Shuffle
from vcbatch.scheduler.framework.action import Action
from vcbatch.scheduler.framework.plugin import EvictionKind

ADMITTING = "enqueue"
"""The action that admits gangs and places none."""
ACTIONS: dict[str, Action] = {
    "allocate": Allocate(),
    "backfill": Backfill(),
    ADMITTING: Enqueue(),
    "gangpreempt": GangEvict(EvictionKind.PREEMPT),
    "gangreclaim": GangEvict(EvictionKind.RECLAIM),
    "preempt": Preempt(),
    "reclaim": Reclaim(),
    "shuffle": Shuffle(),
}
UNSUPPORTED_ACTIONS: frozenset[str] = frozenset()
"""Names that Volcano knows and this scheduler doesn't."""
