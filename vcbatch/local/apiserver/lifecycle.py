"""The server's own tasks: namespaces and definitions that are created and deleted, garbage collection, and old events.

One task, woken by changes; it writes through the same verbs as clients. On an idle server it sleeps.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Coroutine, Sequence
from datetime import datetime, timedelta
from typing import Any

from vcbatch.api.names import NODE_LEASE_NAMESPACE
from vcbatch.api.reasons import DefinitionReason
from vcbatch.api.resources import CONFIGMAPS, CRDS, EVENTS, NAMESPACES, PRIORITYCLASSES, SERVICEACCOUNTS, Resource
from vcbatch.hosting.supervise import Background, pause
from vcbatch.local.apiserver import definitions, namespaces
from vcbatch.local.apiserver.apierrors import StatusError
from vcbatch.local.apiserver.counting import CountedStatuses
from vcbatch.local.apiserver.deleting import DeleteOptions, Deleter
from vcbatch.local.apiserver.engine import Engine
from vcbatch.local.apiserver.gc import GarbageCollector
from vcbatch.local.apiserver.history import Change
from vcbatch.local.apiserver.kinds.cluster import SYSTEM_PRIORITY_CLASSES
from vcbatch.local.apiserver.metadata import timestamp
from vcbatch.local.apiserver.record import Record
from vcbatch.local.apiserver.registry import Served
from vcbatch.local.apiserver.request import Body
from vcbatch.local.apiserver.store import collection_of
from vcbatch.local.apiserver.writing import Writer

Json = dict[str, Any]

log = logging.getLogger(__name__)

SYSTEM_NAMESPACES = ("default", "kube-system", "kube-public", NODE_LEASE_NAMESPACE)

_DEBOUNCE_SECONDS = 0.05
_STEP = 200
_RETRY_SECONDS = 1.0
_EVENT_SWEEP_SECONDS = 60.0
EVENT_AGE = timedelta(hours=1)
EVENT_COUNT = 10_000


class Lifecycle:
    """Start it once the engine is complete; its task ends with `background`."""

    def __init__(
        self, engine: Engine, writer: Writer, deleter: Deleter, *, background: Background, root_ca: str = ""
    ) -> None:
        self._engine = engine
        self._writer = writer
        self._deleter = deleter
        self._background = background
        self._root_ca = root_ca
        self._gc = GarbageCollector(engine, writer, deleter)
        self._counted = CountedStatuses(engine, writer)
        self._namespaces: set[str] = set()
        self._definitions: set[str] = set()
        self._wake = asyncio.Event()
        self._next_sweep = engine.clock.monotonic() + _EVENT_SWEEP_SECONDS
        self._retry_at: float | None = None

    async def start(self) -> None:
        """Read the stored objects, create those of a new cluster, and start watching."""
        engine = self._engine
        for crd in engine.store.collection(CRDS).sorted(None):
            engine.served.reconcile(crd.decode(), engine.now())
        engine.store.subscribe(self._observe)
        if engine.served.at("", "v1", "namespaces"):
            for name in SYSTEM_NAMESPACES:
                if engine.store.get(NAMESPACES, None, name) is None:
                    self._create(NAMESPACES, None, {"metadata": {"name": name}})
            self._namespaces.update(record.name for record in engine.store.collection(NAMESPACES).sorted(None))
        self._definitions.update(
            record.name for record in engine.store.collection(CRDS).sorted(None) if record.deleting
        )
        self._create_priority_classes()
        self._gc.start()
        self._counted.start()
        await self._step()
        await engine.store.settled()
        self._background.keep("API server: housekeeping", self._run)

    # -- changes ----------------------------------------------------------------------------------------------------

    def _observe(self, key: str, change: Change) -> None:
        record = change.record
        if key == _CRDS:
            self._observe_definition(change)
        elif key == _NAMESPACES:
            if change.type != "DELETED":
                self._namespaces.add(record.name)
                if change.type == "ADDED":
                    self._furnish(record.name)
        elif record.namespace and (change.type == "DELETED" or (key, record.name) in _FURNITURE):
            owner = self._engine.store.get(NAMESPACES, None, record.namespace)
            if owner is not None and (owner.deleting or (key, record.name) in _FURNITURE):
                self._namespaces.add(record.namespace)
        if change.type == "DELETED" and self._definitions:
            self._wake.set()
        self._gc.observe(key, change)
        self._counted.observe(key, change)
        if self._gc.has_work or self._counted.has_work or self._namespaces or self._definitions:
            self._wake.set()

    def _observe_definition(self, change: Change) -> None:
        engine, record = self._engine, change.record
        if change.type == "DELETED":
            crd = record.decode()
            engine.served.remove(record.name)
            spec = crd.get("spec", {})
            engine.store.forget(f"{spec.get('group')}/{spec.get('names', {}).get('plural')}")
            # Names are free again that other definitions of the group may have been refused.
            for other in list(engine.store.collection(CRDS).sorted(None)):
                if other.name.endswith(f".{spec.get('group')}"):
                    self._reconcile_definition(other)
            return
        self._reconcile_definition(record)
        if record.deleting:
            self._definitions.add(record.name)

    def _reconcile_definition(self, record: Record) -> None:
        engine = self._engine
        status = engine.served.reconcile(record.decode(), engine.now())
        if status is not None:
            entry = engine.entry(CRDS)
            self._writer.change(entry, record.name, lambda crd: crd.update(status=status), engine.context())

    # -- work -------------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        """Run until cancelled. Work that a failed step left is done by the next one."""
        clock = self._engine.clock
        self._wake.set()
        while True:
            await self._wait()
            await clock.sleep(_DEBOUNCE_SECONDS)
            try:
                await self._step()
                await self._engine.store.settled()
            except StatusError as error:
                log.warning("housekeeping will be retried: %s", error)
                await clock.sleep(_RETRY_SECONDS)
                self._wake.set()

    async def _wait(self) -> None:
        """Wait until something changed, or until the next cleanup of old events is due and there are any."""
        clock = self._engine.clock
        if self._wake.is_set():
            self._wake.clear()
            return
        due = self._next_sweep if self._retry_at is None else min(self._next_sweep, self._retry_at)
        await pause(clock, max(0.0, due - clock.monotonic()), woken=self._wake)
        self._wake.clear()

    async def _step(self) -> None:
        now = self._engine.clock.monotonic()
        if self._retry_at is not None and now >= self._retry_at:
            self._retry_at = None
            self._gc.retry()
        for name in sorted(self._namespaces):
            self._namespaces.discard(name)
            try:
                await self._attend_namespace(name)
            except BaseException:
                self._namespaces.add(name)
                raise
        for name in sorted(self._definitions):
            await self._attend_definition(name)
        await self._gc.step()
        self._counted.step()
        if now >= self._next_sweep:
            self._next_sweep = now + _EVENT_SWEEP_SECONDS
            self._sweep_events()
        if self._gc.has_work:
            self._wake.set()
        if self._retry_at is None and (self._gc.has_failures or self._namespaces):
            self._retry_at = now + _RETRY_SECONDS

    def _create_priority_classes(self) -> None:
        for name, value in SYSTEM_PRIORITY_CLASSES.items():
            self._create(PRIORITYCLASSES, None, {"metadata": {"name": name}, "value": value})

    def _create(self, resource: Resource, namespace: str | None, obj: Json) -> None:
        entry = self._engine.served.at(resource.group, resource.version, resource.plural)
        if entry is None or self._engine.store.get(resource, namespace, obj["metadata"]["name"]):
            return
        full = {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
        ctx = self._engine.context(namespace=namespace, unadmitted=True)
        _at_once(self._writer.create(entry, Body(full), ctx))

    def _furnish(self, namespace: str) -> None:
        """Create the objects that every namespace has."""
        record = self._engine.store.get(NAMESPACES, None, namespace)
        if record is None or record.deleting:
            return
        try:
            self._create(SERVICEACCOUNTS, namespace, namespaces.default_service_account())
            self._create(CONFIGMAPS, namespace, namespaces.root_ca(self._root_ca))
            self._renew_root_ca(namespace)
        except StatusError as error:
            log.warning("namespace %s lacks its defaults: %s", namespace, error)
            self._namespaces.add(namespace)

    def _renew_root_ca(self, namespace: str) -> None:
        record = self._engine.store.get(CONFIGMAPS, namespace, namespaces.ROOT_CA)
        wanted = namespaces.root_ca(self._root_ca)["data"]
        if record is not None and not record.deleting and record.decode().get("data") != wanted:
            entry, ctx = self._engine.entry(CONFIGMAPS), self._engine.context(namespace=namespace)
            self._writer.change(entry, record.name, lambda obj: obj.update(data=wanted), ctx)

    async def _attend_namespace(self, name: str) -> None:
        record = self._engine.store.get(NAMESPACES, None, name)
        if record is None:
            return
        if not record.deleting:
            self._furnish(name)
            return
        rest = await self._empty(name)
        if rest is None:
            return
        counts = Counter(
            f"{record.collection.partition('/')[2]}.{record.collection.partition('/')[0]}" for record in rest
        )
        held = Counter(name for record in rest for name in record.decode()["metadata"].get("finalizers", ()))
        entry, ctx = self._engine.entry(NAMESPACES), self._engine.context()
        if rest:
            self._writer.change(entry, name, lambda obj: namespaces.show_remains(obj, counts, held, ctx.now), ctx)
        else:
            self._writer.change(entry, name, lambda obj: _release_namespace(obj, ctx.now), ctx)

    async def _empty(self, namespace: str) -> Sequence[Record] | None:
        """Delete the contents of a namespace, a part at a time. Returns the objects that still wait for their deletion,
        or None while there is more to delete. Pods keep their grace period."""
        budget = _STEP
        rest: list[Record] = []
        for collection in self._engine.store.collections():
            entry = self._engine.served.of_collection(collection.key)
            if entry is None or not entry.resource.namespaced:
                continue
            for record in list(collection.sorted(namespace)):
                if not record.deleting:
                    budget -= 1
                if budget < 0:
                    self._namespaces.add(namespace)
                    return None
                if not await self._delete(entry, record):
                    rest.append(record)
        return rest

    async def _delete(self, entry: Served, record: Record) -> bool:
        """Delete, once; returns whether the object was removed."""
        if record.deleting:
            return False
        ctx = self._engine.context(namespace=record.namespace or None, user="system:serviceaccount:kube-system")
        try:
            _, gone = await self._deleter.delete(entry, record.name, DeleteOptions(propagation="Background"), ctx)
        except StatusError as error:
            log.warning("%s %s/%s can't be deleted yet: %s", record.collection, record.namespace, record.name, error)
            return False
        return gone

    async def _attend_definition(self, name: str) -> None:
        engine = self._engine
        record = engine.store.get(CRDS, None, name)
        if record is None or not record.deleting:
            self._definitions.discard(name)
            return
        spec = record.decode().get("spec", {})
        group, plural = spec.get("group", ""), spec.get("names", {}).get("plural", "")
        collection = next((c for c in engine.store.collections() if c.key == f"{group}/{plural}"), None)
        entry = engine.served.of_collection(f"{group}/{plural}")
        if collection is not None and entry is not None and collection.count:
            rest = [record for record in list(collection.sorted(None)) if not await self._delete(entry, record)]
            if rest:
                return
        now = engine.now()

        def release(crd: Json) -> None:
            finalizers = [one for one in crd["metadata"].get("finalizers", ()) if one != definitions.CLEANUP]
            crd["metadata"]["finalizers"] = finalizers
            definitions.set_condition(
                crd.setdefault("status", {}),
                {
                    "type": "Terminating",
                    "status": "False",
                    "lastTransitionTime": timestamp(now),
                    "reason": DefinitionReason.DELETION_COMPLETED,
                    "message": "removed all instances",
                },
            )
            if not finalizers:
                del crd["metadata"]["finalizers"]

        self._writer.change(engine.entry(CRDS), name, release, engine.context())
        self._definitions.discard(name)

    def _sweep_events(self) -> None:
        """Remove events that are too old, and the oldest where there are too many."""
        entry = self._engine.served.at(EVENTS.group, EVENTS.version, EVENTS.plural)
        if entry is None:
            return
        collection = self._engine.store.collection(EVENTS)
        if not collection.count:
            return
        aged = sorted(
            ((_last_seen(record.decode()), record) for record in collection.sorted(None)),
            key=lambda pair: (pair[0], pair[1].version),
        )
        limit = timestamp(self._engine.now() - EVENT_AGE)
        surplus = len(aged) - EVENT_COUNT
        for index, (seen, record) in enumerate(aged):
            if index >= surplus and seen >= limit:
                break
            self._engine.store.remove(EVENTS, record)


def _at_once(write: Coroutine[Any, Any, Record]) -> Record:
    """The result of a write without webhooks, which has nothing to wait for."""
    try:
        write.send(None)
    except StopIteration as done:
        return done.value
    write.close()
    raise RuntimeError("a write of the server's own waited")


def _last_seen(event: Json) -> str:
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return max((t for t in (*times, event["metadata"].get("creationTimestamp")) if t), default="")


def _release_namespace(namespace: Json, now: datetime) -> None:
    if len(namespace["spec"].get("finalizers", ())) > 1:
        # Another finalizer keeps it.
        namespaces.show_remains(namespace, {}, {}, now)
    spec = namespace.setdefault("spec", {})
    spec["finalizers"] = [name for name in spec.get("finalizers", ()) if name != namespaces.FINALIZER]
    if not spec["finalizers"]:
        del spec["finalizers"]


_CRDS = collection_of(CRDS)
_NAMESPACES = collection_of(NAMESPACES)
_FURNITURE = frozenset({(collection_of(SERVICEACCOUNTS), "default"), (collection_of(CONFIGMAPS), namespaces.ROOT_CA)})
"""The objects that every namespace has: recreated where a client changes or deletes them."""
