"""Which bundles plugins allow to be evicted: one that must be evicted whole is evicted whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from vcbatch.scheduler.actions.bundles import Bundle
from vcbatch.scheduler.framework.plugin import GangEviction
from vcbatch.scheduler.framework.session import Session

_MOST_ROUNDS: Final = 16
"""How often plugins are called again without a gang that can't be evicted whole, so that its pods don't count against
other gangs."""


class Permitted:
    """Calls the plugins for the bundles of one domain."""

    def __init__(self, session: Session, eviction: GangEviction) -> None:
        self._session = session
        self._eviction = eviction
        self._alone: dict[str, bool] = {}
        self.left_out = False
        """Whether a gang may not be evicted whole, even alone."""

    def of(self, bundles: Sequence[Bundle]) -> list[Bundle]:
        """The bundles without the pods that plugins protect. A gang that would end is evicted with all its pods,
        including those it could spare, or loses only those it can spare. The result for a pod depends on the bundles
        before it alone, so more bundles extend the result and don't change it."""
        asked, agreed, failed = list(bundles), frozenset[str](), list[Bundle]()
        for nth in range(_MOST_ROUNDS + 1):
            agreed = self._agreed(asked)
            safe = {bundle.job.uid: bundle for bundle in asked if bundle.safe}
            failed = [b for b in asked if not b.safe and not self._whole(b, safe.get(b.job.uid), agreed)]
            if not failed or nth == _MOST_ROUNDS:
                break
            never = [b for b in failed if not self._may_go_alone(b, safe.get(b.job.uid))]
            self.left_out = self.left_out or bool(never)
            dropped = {id(bundle) for bundle in never or failed[:1]}
            asked = [bundle for bundle in asked if id(bundle) not in dropped]
        dropped = {id(bundle) for bundle in failed}
        return [
            bundle if not bundle.safe or len(kept) == len(bundle.tasks) else bundle.of(kept)
            for bundle in asked
            if id(bundle) not in dropped and (kept := [task for task in bundle.tasks if task.uid in agreed])
        ]

    def _agreed(self, bundles: Sequence[Bundle]) -> frozenset[str]:
        tasks = [task for bundle in bundles for task in bundle.tasks]
        return frozenset(task.uid for task in self._session.evictable(self._eviction, tasks))

    def _whole(self, bundle: Bundle, safe: Bundle | None, agreed: frozenset[str]) -> bool:
        return all(task.uid in agreed for part in (safe, bundle) if part is not None for task in part.tasks)

    def _may_go_alone(self, bundle: Bundle, safe: Bundle | None) -> bool:
        """Whether the gang may be evicted whole if no other gang loses pods."""
        known = self._alone.get(bundle.job.uid)
        if known is None:
            parts = [bundle] if safe is None else [safe, bundle]
            known = self._alone[bundle.job.uid] = self._whole(bundle, safe, self._agreed(parts))
        return known
