"""PodGroups that another scheduler of the cluster handles.

Volcano's schedulers handle every PodGroup, so two of them on one cluster overwrite each other's phases and conditions.
Here a PodGroup belongs to the scheduler of its pods; before it has any, to the one that its annotation names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Set as AbstractSet

from vcbatch.api import names
from vcbatch.api.scheduling import PodGroupView


class Strangers:
    """The pods of other schedulers by gang, and the PodGroups that are left to these, by `namespace/name`."""

    def __init__(self, own: AbstractSet[str]) -> None:
        """`own` are the `schedulerName`s of this scheduler."""
        self._own = own
        self._pods: dict[str, str] = {}
        self._counts: Counter[str] = Counter()
        self.groups: dict[str, PodGroupView] = {}

    def pod(self, uid: str, key: str) -> str:
        """Record that this pod of a gang belongs to another scheduler (an empty key: to no gang, or not any more).
        Returns the gang whose PodGroup may have changed its scheduler by that; empty for none."""
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
        """Whether another scheduler handles the PodGroup: all its pods are others', or it has none and its annotation
        names others."""
        if own_pods:
            return False
        if self._counts[group.metadata.key] > 0:
            return True
        named = (group.metadata.annotations or {}).get(names.SCHEDULERS, "")
        return bool(named) and self._own.isdisjoint(named.split(","))
