"""What ResourceQuotas say is used, kept with every write of a pod.

As kube-apiserver's admission does, usage grows in the same transaction as the pod that is made, and before it, so that
whoever sees the pod has been able to see it counted; it shrinks with the pod that goes. Others of the kind's numbers
are counted later (`counting`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from vcbatch.api import quantities
from vcbatch.api.quantity import ZERO, Quantity
from vcbatch.api.resources import RESOURCEQUOTAS
from vcbatch.local.apiserver.kinds.pods.quota import in_scope, usage
from vcbatch.local.apiserver.record import Record
from vcbatch.local.apiserver.store import Store

Json = dict[str, Any]


class _Change(NamedTuple):
    """A quota as it is to be, and whether any of its numbers grows."""

    old: Record
    quota: Json
    grows: bool


class QuotaUsage:
    """The usage that quotas of a store tell."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def kept(self, namespace: str, before: Json | None, after: Json | None, write: Callable[[], Record]) -> Record:
        """Do `write`, by which a pod of the namespace becomes `after` (None: it goes) where it was `before` (None: it
        is new), with the usage that follows."""
        changes = list(self._changes(namespace, before, after))
        for change in changes:
            if change.grows:
                self._store.put(RESOURCEQUOTAS, change.quota, change.old)
        written = write()
        for change in changes:
            if not change.grows:
                self._store.put(RESOURCEQUOTAS, change.quota, change.old)
        return written

    def watched(self, namespace: str) -> bool:
        """Whether the namespace has quotas at all."""
        return bool(self._store.collection(RESOURCEQUOTAS).by_namespace.get(namespace))

    def _changes(self, namespace: str, before: Json | None, after: Json | None) -> Iterator[_Change]:
        for record in list(self._store.collection(RESOURCEQUOTAS).by_namespace.get(namespace, {}).values()):
            quota = record.decode()
            spec: Json = quota.get("spec") or {}
            used: Json = (quota.get("status") or {}).get("used") or {}  # none yet: it is counted from the pods soon
            was, now = _counted(before, spec), _counted(after, spec)
            steps = {name: step for name in used if (step := now.get(name, ZERO) - was.get(name, ZERO)) != ZERO}
            if steps and not record.deleting:
                reported = {name: str(quantities.read(used[name]) + step) for name, step in steps.items()}
                quota["status"]["used"] = {**used, **reported}
                yield _Change(record, quota, any(step > ZERO for step in steps.values()))


def _counted(pod: Json | None, spec: Json) -> Mapping[str, Quantity]:
    return usage(pod) if pod is not None and in_scope(pod, spec) else {}
