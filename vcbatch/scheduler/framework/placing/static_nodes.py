"""The results of filters and preferences that depend on nodes alone and are valid until a node changes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vcbatch.scheduler.framework.plugin import Plugin, Preference, Rejection
from vcbatch.scheduler.model.classes import Profile
from vcbatch.scheduler.model.resources import Mask


class StaticNodes:
    """Filters and preferences of one profile on all nodes; valid while no node changes."""

    __slots__ = ("admits_all", "lasting", "mask", "preferences", "rejections")

    def __init__(self, rejections: Sequence[Rejection], preferences: Sequence[Preference], count: int) -> None:
        self.rejections = rejections
        self.preferences = preferences
        self.mask: Mask = np.ones(count, dtype=bool)
        self.lasting: Mask = np.ones(count, dtype=bool)
        """The nodes that are admitted, or rejected only for a temporary state."""
        for rejection in rejections:
            self.mask &= ~rejection.nodes
            self.lasting &= ~rejection.lasting
        self.admits_all = bool(self.mask.all())


class StaticCache:
    """`StaticNodes` by profile, kept between cycles."""

    def __init__(self) -> None:
        self._stamp = -1
        self._volumes = -1
        self._known: dict[Profile, StaticNodes] = {}

    def of(
        self,
        profile: Profile,
        *,
        stamp: int,
        volumes: int,
        scorers: PluginSet,
        count: int,
        always: Sequence[Rejection] = (),
    ) -> StaticNodes:
        """`stamp` is that of the nodes, `volumes` that of claims and volumes. `always` applies to every profile."""
        if stamp != self._stamp:
            self._known.clear()
            self._stamp = stamp
        if volumes != self._volumes:
            self._known = {profile: known for profile, known in self._known.items() if not profile.claims}
            self._volumes = volumes
        known = self._known.get(profile)
        if known is None:
            known = self._known[profile] = StaticNodes(
                [*always, *(r for p in scorers.filters for r in p.rejections(profile))],
                [f for p in scorers.orderers for f in p.preferences(profile)],
                count,
            )
        return known

    def clear(self) -> None:
        self._known.clear()


class PluginSet:
    """The plugins that take part in the choice of nodes, by the methods that they override."""

    __slots__ = ("by_amounts", "cappers", "couplers", "filters", "orderers", "pickers", "raters", "refusers", "scorers")

    def __init__(self, filters: Sequence[Plugin], orderers: Sequence[Plugin]) -> None:
        self.filters = filters
        self.orderers = orderers
        self.cappers = [p for p in filters if type(p).caps is not Plugin.caps]
        self.scorers = [p for p in orderers if type(p).scores is not Plugin.scores]
        self.by_amounts = all(p.BY_AMOUNTS for p in (*self.cappers, *self.scorers))
        self.pickers = [p for p in dict.fromkeys((*filters, *orderers)) if type(p).couples is not Plugin.couples]
        """The plugins that decide about one task at a time: by rejecting nodes and by scoring them."""
        self.couplers = [p for p in self.pickers if not p.BY_TERMS]
        self.refusers = [p for p in filters if type(p).task_rejections is not Plugin.task_rejections]
        self.raters = [p for p in orderers if type(p).task_scores is not Plugin.task_scores]
