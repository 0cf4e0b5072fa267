"""The usage in the status of ResourceQuotas, updated with every write of a pod.

As in kube-apiserver's admission, usage grows in the same transaction as the pod that is created, and before it, so that
a client that sees the pod could also see its usage; it shrinks with the deleted pod. Other numbers of the status are
counted later (`counting`).
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
    """A quota with its new status, and whether any of its numbers grows."""

    old: Record
    quota: Json
    grows: bool


class QuotaUsage:
    """The usage in the quotas of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def kept(self, namespace: str, before: Json | None, after: Json | None, write: Callable[[], Record]) -> Record:
        """Call `write`, by which a pod of the namespace changes from `before` (None: it is new) to `after` (None: it is
        deleted), together with the change of the usage."""
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
        """Whether the namespace has quotas."""
        return bool(self._store.collection(RESOURCEQUOTAS).by_namespace.get(namespace))

    def _changes(self, namespace: str, before: Json | None, after: Json | None) -> Iterator[_Change]:
        for record in list(self._store.collection(RESOURCEQUOTAS).by_namespace.get(namespace, {}).values()):
            quota = record.decode()
            spec: Json = quota.get("spec") or {}
            used: Json = (quota.get("status") or {}).get("used") or {}  # none yet: soon counted from the pods
            was, now = _counted(before, spec), _counted(after, spec)
            steps = {name: step for name in used if (step := now.get(name, ZERO) - was.get(name, ZERO)) != ZERO}
            if steps and not record.deleting:
                reported = {name: str(quantities.read(used[name]) + step) for name, step in steps.items()}
                quota["status"]["used"] = {**used, **reported}
                yield _Change(record, quota, any(step > ZERO for step in steps.values()))


def _counted(pod: Json | None, spec: Json) -> Mapping[str, Quantity]:
    return usage(pod) if pod is not None and in_scope(pod, spec) else {}
