"""Updates the statuses that a cluster's controllers count from pods: those of ResourceQuotas and PodDisruptionBudgets.

Source of the rules: kube-controller-manager's resourcequota and disruption controllers.
"""

from __future__ import annotations

from typing import Any, Protocol

from vcbatch.api import quantities
from vcbatch.api.resources import PODS, RESOURCEQUOTAS, Resource
from vcbatch.local.apiserver.engine import Engine
from vcbatch.local.apiserver.history import Change
from vcbatch.local.apiserver.kinds.disruption import measure
from vcbatch.local.apiserver.kinds.policy import BUDGETS
from vcbatch.local.apiserver.record import Record
from vcbatch.local.apiserver.store import collection_of
from vcbatch.local.apiserver.writing import Writer

Json = dict[str, Any]

_PODS = collection_of(PODS)


class _Counting(Protocol):
    """The counting of one kind."""

    resource: Resource

    def status(self, obj: Json, namespace: str) -> Json | None:
        """The desired status, or None where the object has nothing to count."""
        ...


class CountedStatuses:
    """Notified of every change, it records which namespaces to count again; `step` counts them and writes changed
    statuses."""

    def __init__(self, engine: Engine, writer: Writer) -> None:
        self._engine = engine
        self._writer = writer
        self._counting: tuple[_Counting, ...] = (_Quotas(engine), _Budgets(engine))
        self._own = {collection_of(one.resource) for one in self._counting}
        self._namespaces: set[str] = set()

    @property
    def has_work(self) -> bool:
        return bool(self._namespaces)

    def start(self) -> None:
        """Count every namespace with objects of these kinds."""
        for one in self._counting:
            self._namespaces.update(self._engine.store.collection(one.resource).by_namespace)

    def observe(self, key: str, change: Change) -> None:
        namespace = change.record.namespace
        if not namespace or not self._counts_in(namespace):
            return
        if key == _PODS or key in self._own or change.type in ("ADDED", "DELETED"):
            self._namespaces.add(namespace)

    def step(self) -> None:
        for namespace in sorted(self._namespaces):
            self._namespaces.discard(namespace)
            try:
                for one in self._counting:
                    for record in list(self._engine.store.collection(one.resource).sorted(namespace)):
                        self._refresh(one, record)
            except BaseException:
                self._namespaces.add(namespace)
                raise

    def _counts_in(self, namespace: str) -> bool:
        collections = (self._engine.store.collection(one.resource) for one in self._counting)
        return any(namespace in collection.by_namespace for collection in collections)

    def _refresh(self, one: _Counting, record: Record) -> None:
        obj = record.decode()
        status = one.status(obj, record.namespace)
        before: Json = obj.get("status") or {}
        if status is None or record.deleting or all(before.get(key) == value for key, value in status.items()):
            return
        context = self._engine.context(namespace=record.namespace)
        entry = self._engine.entry(one.resource)
        self._writer.change(entry, record.name, lambda target: target.update(status={**before, **status}), context)


class _Quotas:
    resource = RESOURCEQUOTAS

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def status(self, obj: Json, namespace: str) -> Json | None:
        spec: Json = obj.get("spec") or {}
        hard: Json = spec.get("hard") or {}
        return {"hard": hard, "used": self._used(namespace, spec)} if hard else None

    def _used(self, namespace: str, spec: Json) -> Json:
        counted = self._engine.ledger.used(namespace, spec)
        zero = quantities.read(0)
        used: Json = {}
        for name in spec.get("hard") or {}:
            number = self._count(namespace, name.removeprefix("count/")) if name not in counted else None
            used[name] = str(counted.get(name, zero)) if number is None else str(number)
        return used

    def _count(self, namespace: str, name: str) -> int | None:
        """The number of objects of a resource, named as `configmaps` or `deployments.apps`, in a namespace."""
        plural, _, group = name.partition(".")
        for collection in self._engine.store.collections():
            if collection.key == f"{group}/{plural}" and collection.key != _PODS:
                return sum(1 for _ in collection.sorted(namespace))
        return None


class _Budgets:
    resource = BUDGETS

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def status(self, obj: Json, namespace: str) -> Json | None:
        pods = [record.decode() for record in self._engine.store.collection(PODS).sorted(namespace)]
        found = measure(obj, pods)
        return {
            "currentHealthy": found.healthy,
            "desiredHealthy": found.desired,
            "disruptionsAllowed": found.allowed,
            "expectedPods": found.expected,
            "observedGeneration": (obj.get("metadata") or {}).get("generation", 1),
        }
