"""Keeps the status of ResourceQuotas: what is allowed, and what of it a namespace uses.

Source of the rules: kube-controller-manager's resourcequota controller.
"""

from __future__ import annotations

from typing import Any

from vcbatch.api.resources import PODS, RESOURCEQUOTAS
from vcbatch.local.apiserver.engine import Engine
from vcbatch.local.apiserver.history import Change
from vcbatch.local.apiserver.kinds import quantities
from vcbatch.local.apiserver.store import Record, collection_of
from vcbatch.local.apiserver.writing import Writer

Json = dict[str, Any]

_QUOTAS = collection_of(RESOURCEQUOTAS)
_PODS = collection_of(PODS)


class QuotaUsage:
    """Told of every change, it says which namespaces to count again; `step` counts and writes what differs."""

    def __init__(self, engine: Engine, writer: Writer) -> None:
        self._engine = engine
        self._writer = writer
        self._namespaces: set[str] = set()

    @property
    def has_work(self) -> bool:
        return bool(self._namespaces)

    def start(self) -> None:
        """Count every namespace that has a quota."""
        self._namespaces.update(
            record.namespace for record in self._engine.store.collection(RESOURCEQUOTAS).sorted(None)
        )

    def observe(self, key: str, change: Change) -> None:
        namespace = change.record.namespace
        if not namespace or not self._has_quota(namespace):
            return
        if key in (_PODS, _QUOTAS) or change.type in ("ADDED", "DELETED"):
            self._namespaces.add(namespace)

    def step(self) -> None:
        names, self._namespaces = self._namespaces, set()
        for namespace in sorted(names):
            for record in list(self._engine.store.collection(RESOURCEQUOTAS).sorted(namespace)):
                self._refresh(record)

    def _has_quota(self, namespace: str) -> bool:
        return any(True for _ in self._engine.store.collection(RESOURCEQUOTAS).sorted(namespace))

    def _refresh(self, record: Record) -> None:
        obj = record.decode()
        hard: Json = (obj.get("spec") or {}).get("hard") or {}
        status = {"hard": hard, "used": self._used(record.namespace, obj.get("spec") or {})}
        if not hard or obj.get("status") == status or record.deleting:
            return
        context = self._engine.context(namespace=record.namespace)
        self._writer.change(
            self._engine.entry(RESOURCEQUOTAS), record.name, lambda target: target.update(status=status), context
        )

    def _used(self, namespace: str, spec: Json) -> Json:
        counted = self._engine.ledger.used(namespace, spec)
        zero = quantities.read(0)
        used: Json = {}
        for name in spec.get("hard") or {}:
            number = self._count(namespace, name.removeprefix("count/")) if name not in counted else None
            used[name] = str(counted.get(name, zero)) if number is None else str(number)
        return used

    def _count(self, namespace: str, name: str) -> int | None:
        """How many objects of a resource, named as `configmaps` or `deployments.apps`, a namespace has."""
        plural, _, group = name.partition(".")
        for collection in self._engine.store.collections():
            if collection.key == f"{group}/{plural}" and collection.key != _PODS:
                return sum(1 for _ in collection.sorted(namespace))
        return None
