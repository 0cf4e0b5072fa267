"""PodGroups that another scheduler of the cluster judges.

Volcano's schedulers judge every PodGroup, so that two of them on one cluster overwrite each other's phases and
conditions. A PodGroup belongs to who is to place its pods; before it has any, to whom its annotation names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Set as AbstractSet

from vcbatch.api import names
from vcbatch.api.scheduling import PodGroupView


class Strangers:
    """Which pods of which gangs are others', and the PodGroups that are left to them, by `namespace/name`."""

    def __init__(self, own: AbstractSet[str]) -> None:
        """`own` are the `schedulerName`s that are ours."""
        self._own = own
        self._pods: dict[str, str] = {}
        self._counts: Counter[str] = Counter()
        self.groups: dict[str, PodGroupView] = {}

    def pod(self, uid: str, key: str) -> str:
        """This pod of a gang is another's (an empty key: of none, or not another's any more). The gang whose PodGroup
        may have changed hands by that; empty for none."""
        before = self._pods.get(uid, "")
        if before == key:
            return ""
        if before:
            del self._pods[uid]
            self._counts[before] -= 1
            if self._counts[before] <= 0:
                del self._counts[before]
        if key:
            self._pods[uid] = key
            self._counts[key] += 1
        return key or before

    def judge(self, group: PodGroupView, *, own_pods: bool) -> bool:
        """Whether others judge the PodGroup: its pods are theirs and none is ours, or it has none and names others."""
        if own_pods:
            return False
        if self._counts[group.metadata.key] > 0:
            return True
        named = (group.metadata.annotations or {}).get(names.SCHEDULERS, "")
        return bool(named) and self._own.isdisjoint(named.split(","))
