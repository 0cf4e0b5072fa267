"""The garbage collector: dependents are deleted with their owners, or orphaned, as the deletion requested.

Level-triggered: a wake-up names an object or an owner's UID, and the action depends only on the stored state. So
repeating it, also after a restart, is harmless. Source of the rules: Kubernetes' garbage collector controller.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from vcbatch.local.apiserver.apierrors import StatusError
from vcbatch.local.apiserver.deleting import DeleteOptions, Deleter
from vcbatch.local.apiserver.engine import Engine
from vcbatch.local.apiserver.history import Change
from vcbatch.local.apiserver.metadata import FOREGROUND, ORPHAN
from vcbatch.local.apiserver.record import Record
from vcbatch.local.apiserver.registry import Served
from vcbatch.local.apiserver.writing import Writer

Json = dict[str, Any]

log = logging.getLogger(__name__)

Key = tuple[str, str, str]

_STEP = 100
_GONE = 10_000


class GarbageCollector:
    """Call `observe` for every change and `step` when it is requested; `step` waits for webhooks only."""

    def __init__(self, engine: Engine, writer: Writer, deleter: Deleter) -> None:
        self._engine = engine
        self._writer = writer
        self._deleter = deleter
        self._objects: dict[Key, None] = {}
        self._failed: dict[Key, None] = {}
        self._gone: OrderedDict[str, None] = OrderedDict()

    @property
    def has_work(self) -> bool:
        return bool(self._objects)

    @property
    def has_failures(self) -> bool:
        return bool(self._failed)

    def retry(self) -> None:
        """Retry failed deletions: the caller decides when."""
        self._objects.update(self._failed)
        self._failed = {}

    def start(self) -> None:
        """Check all stored objects: an owner may have been deleted just before the last shutdown."""
        for collection in self._engine.store.collections():
            for record in collection.sorted(None):
                if record.owners or record.deleting:
                    self._remember(record)

    def observe(self, _key: str, change: Change) -> None:
        record = change.record
        if change.type == "DELETED":
            self._gone[record.uid] = None
            if len(self._gone) > _GONE:
                self._gone.popitem(last=False)
            for dependent in self._engine.store.dependents(record.uid):
                self._remember(dependent)
            self._remember_owners(record)
            return
        if record.deleting:
            self._remember(record)
        if record.owners and (change.type == "ADDED" or (change.old and change.old.owners != record.owners)):
            self._remember(record)
        if change.old and change.old.owners != record.owners:
            self._remember_owners(change.old)

    def _remember(self, record: Record) -> None:
        self._objects[record.collection, record.namespace, record.name] = None

    def _remember_owners(self, record: Record) -> None:
        """The owners that wait for this dependent may now be removed."""
        if not record.owners:
            return
        for reference in record.decode()["metadata"].get("ownerReferences", ()):
            owner = self._resolve(record, reference)
            if owner is not None and owner.deleting:
                self._remember(owner)

    def _resolve(self, record: Record, reference: Json) -> Record | None:
        entry = self._owner_entry(reference)
        if entry is None:
            return None
        namespace = record.namespace if entry.resource.namespaced else None
        owner = self._engine.store.get(entry.stored_as, namespace, reference.get("name", ""))
        return owner if owner and owner.uid == reference.get("uid") else None

    def _owner_entry(self, reference: Json) -> Served | None:
        group = reference.get("apiVersion", "").rpartition("/")[0]
        return self._engine.served.of_group_kind(group, reference.get("kind", ""))

    def _is_absent(self, record: Record, reference: Json) -> bool:
        """Whether the owner is known not to exist. For a kind that isn't served (any more), only if this server has
        seen its deletion."""
        if reference.get("uid", "") in self._gone:
            return True
        return self._owner_entry(reference) is not None and self._resolve(record, reference) is None

    async def step(self) -> None:
        """Process a part of the recent changes, so that no request waits long. Failed ones wait for `retry`."""
        for key in list(self._objects)[:_STEP]:
            del self._objects[key]
            collection, namespace, name = key
            entry = self._engine.served.of_collection(collection)
            if entry is None:
                continue
            record = self._engine.store.get(entry.stored_as, namespace, name)
            if record is None:
                continue
            try:
                await self._attend(entry, record)
            except StatusError as error:
                if error.code not in (404, 409):
                    log.warning("garbage collection of %s %s/%s failed: %s", collection, namespace, name, error)
                if error.code != 404:
                    self._failed[key] = None
            except BaseException:
                self._failed[key] = None
                raise

    async def _attend(self, entry: Served, record: Record) -> None:
        if record.deleting:
            await self._attend_deleting(record)
            record = self._engine.store.get(entry.stored_as, record.namespace, record.name) or record
            if record.deleting:
                return
        if record.owners:
            await self._attend_owned(record)

    async def _attend_deleting(self, record: Record) -> None:
        finalizers = record.decode()["metadata"].get("finalizers", ())
        if ORPHAN in finalizers:
            for dependent in self._engine.store.dependents(record.uid):
                self._drop_owners(dependent, lambda uid: uid == record.uid)
            self._drop_finalizer(record, ORPHAN)
        elif FOREGROUND in finalizers and not await self._delete_dependents(record):
            self._drop_finalizer(record, FOREGROUND)

    async def _delete_dependents(self, owner: Record) -> bool:
        """Delete the dependents of an owner that is deleted in the foreground. Returns whether one of them blocks
        it."""
        blocked = False
        for dependent in self._engine.store.dependents(owner.uid):
            obj = dependent.decode()
            reference = next(r for r in obj["metadata"]["ownerReferences"] if r.get("uid") == owner.uid)
            blocks = bool(reference.get("blockOwnerDeletion"))
            others = [
                r
                for r in obj["metadata"]["ownerReferences"]
                if r.get("uid") != owner.uid and self._resolve(dependent, r)
            ]
            if others:
                self._drop_owners(dependent, lambda uid: uid == owner.uid)
                continue
            if not dependent.deleting:
                deep = self._engine.store.dependents(dependent.uid)
                await self._delete(dependent, "Foreground" if deep else _policy_of(dependent))
            blocked = blocked or (blocks and self._exists(dependent))
        return blocked

    def _exists(self, record: Record) -> bool:
        entry = self._engine.served.of_collection(record.collection)
        found = entry and self._engine.store.get(entry.stored_as, record.namespace, record.name)
        return bool(found and found.uid == record.uid)

    async def _attend_owned(self, record: Record) -> None:
        references: list[Json] = record.decode()["metadata"].get("ownerReferences", [])
        absent = {one.get("uid", "") for one in references if self._is_absent(record, one)}
        if len(absent) == len({one.get("uid", "") for one in references}):
            await self._delete(record, _policy_of(record))
        elif absent:
            self._drop_owners(record, lambda uid: uid in absent)

    async def _delete(self, record: Record, propagation: str) -> None:
        entry = self._engine.served.of_collection(record.collection)
        if entry is None:
            return
        ctx = self._engine.context(namespace=record.namespace or None, user=_USER)
        options = DeleteOptions(propagation=propagation, uid=record.uid)
        await self._deleter.delete(entry, record.name, options, ctx)

    def _drop_owners(self, record: Record, gone: Callable[[str], bool]) -> None:
        def edit(obj: Json) -> None:
            metadata = obj["metadata"]
            rest = [owner for owner in metadata.get("ownerReferences", ()) if not gone(owner.get("uid", ""))]
            if rest:
                metadata["ownerReferences"] = rest
            else:
                metadata.pop("ownerReferences", None)

        self._edit(record, edit)

    def _drop_finalizer(self, record: Record, finalizer: str) -> None:
        def edit(obj: Json) -> None:
            rest = [name for name in obj["metadata"].get("finalizers", ()) if name != finalizer]
            if rest:
                obj["metadata"]["finalizers"] = rest
            else:
                obj["metadata"].pop("finalizers", None)

        self._edit(record, edit)

    def _edit(self, record: Record, edit: Callable[[Json], None]) -> None:
        entry = self._engine.served.of_collection(record.collection)
        if entry is not None:
            ctx = self._engine.context(namespace=record.namespace or None, user=_USER)
            self._writer.change(entry, record.name, edit, ctx)


def _policy_of(record: Record) -> str:
    """The propagation policy for a dependent: Background, whatever its kind's default is (the Jobs of a CronJob would
    leave their pods behind), unless a client requested another one before."""
    finalizers = record.decode()["metadata"].get("finalizers", ())
    return "" if ORPHAN in finalizers or FOREGROUND in finalizers else "Background"


_USER = "system:serviceaccount:kube-system:generic-garbage-collector"
