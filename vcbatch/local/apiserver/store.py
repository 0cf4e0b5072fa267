"""The objects: encoded bytes with the few decoded fields that searching requires, and their changes in order.

One resourceVersion counts all writes. A write changes memory at once, so that the next one builds on it, and is
committed with its group; no client sees it before (`settled`), and when the commit fails, memory is rolled back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from vcbatch.api.resources import Resource
from vcbatch.local.apiserver.apierrors import StatusError, entity_too_large
from vcbatch.local.apiserver.history import Change, History
from vcbatch.local.apiserver.persistence import Persistence, StoredObject, WriteFailed
from vcbatch.local.apiserver.record import Record

Json = dict[str, Any]

_encode = msgspec.json.Encoder().encode


LARGEST_OBJECT = 3 * 512 * 1024
"""The largest JSON of a created object in bytes: 1.5 MiB, as etcd's `--max-request-bytes`."""
_SLACK = 4096
"""Bytes by which an update may exceed it, so that an object of just this size can still be deleted: marks,
conditions."""


def check_size(body: bytes, old: Record | None) -> None:
    """413 for an object that is too large to be stored. One that a former version stored may stay as large."""
    limit = LARGEST_OBJECT if old is None else max(LARGEST_OBJECT, len(old.body) - _SLACK) + _SLACK
    if len(body) > limit:
        raise entity_too_large(
            f"etcdserver: request is too large: the object has {len(body)} bytes, limit is {LARGEST_OBJECT}"
        )


class _Owner(msgspec.Struct, gc=False):
    uid: str = ""


class _Meta(msgspec.Struct, rename="camel", gc=False):
    uid: str = ""
    labels: dict[str, str] | None = None
    owner_references: list[_Owner] | None = None
    deletion_timestamp: str | None = None


class _Trimmed(msgspec.Struct, gc=False):
    metadata: _Meta


_decode_trimmed = msgspec.json.Decoder(_Trimmed).decode


def collection_of(resource: Resource) -> str:
    return f"{resource.group}/{resource.plural}"


class Collection:
    """All objects of one resource, by namespace and name ("" is the namespace of cluster-scoped objects)."""

    __slots__ = ("by_namespace", "count", "history", "key")

    def __init__(self, key: str, floor: int) -> None:
        self.key = key
        self.by_namespace: dict[str, dict[str, Record]] = {}
        self.count = 0
        self.history = History(floor)

    def get(self, namespace: str, name: str) -> Record | None:
        return self.by_namespace.get(namespace, {}).get(name)

    def sorted(self, namespace: str | None) -> Iterator[Record]:
        """The objects in the order of lists: by namespace, then name, as strings of bytes."""
        namespaces = sorted(self.by_namespace) if namespace is None else [namespace]
        for one in namespaces:
            members = self.by_namespace.get(one)
            if members:
                for name in sorted(members):
                    yield members[name]

    def place(self, record: Record) -> None:
        members = self.by_namespace.setdefault(record.namespace, {})
        if record.name not in members:
            self.count += 1
        members[record.name] = record

    def drop(self, record: Record) -> None:
        members = self.by_namespace.get(record.namespace)
        if members and members.pop(record.name, None) is not None:
            self.count -= 1
            if not members:
                del self.by_namespace[record.namespace]


class Store:
    """See the module. With `persistence` None no state outlives the process."""

    def __init__(self, *, persistence: Persistence | None = None) -> None:
        self._persistence = persistence
        self._collections: dict[str, Collection] = {}
        self._dependents: dict[str, dict[tuple[str, str, str], Record]] = {}
        self._listeners: list[Callable[[str, Change], None]] = []
        self._pending: list[tuple[Collection, Change]] = []
        self._batch: asyncio.Future[None] | None = None
        self._version = persistence.version() if persistence else 1
        self._committed = self._version
        # A server that starts on old state doesn't know earlier changes: older watches must list again.
        self._floor = 0 if self._version == 1 else self._version
        self._floors: dict[str, int] = {}
        if persistence:
            for row in persistence.load():
                try:
                    self._load(row)
                except msgspec.DecodeError as error:
                    raise persistence.damaged(
                        f"{row.collection} {row.namespace}/{row.name} can't be read: {error}"
                    ) from error

    def _load(self, row: StoredObject) -> None:
        body = row.body or b""
        meta = _decode_trimmed(body).metadata
        record = Record(
            row.collection,
            row.namespace,
            row.name,
            meta.uid,
            row.version,
            body,
            meta.labels,
            tuple(owner.uid for owner in meta.owner_references or ()),
            meta.deletion_timestamp is not None,
        )
        self._collection(row.collection).place(record)
        self._index_owners(record)

    @property
    def version(self) -> int:
        """The newest resourceVersion that clients may see."""
        return self._committed

    def _collection(self, key: str) -> Collection:
        found = self._collections.get(key)
        if found is None:
            found = self._collections[key] = Collection(key, self._floors.pop(key, self._floor))
        return found

    def collection(self, resource: Resource) -> Collection:
        return self._collection(collection_of(resource))

    def collections(self) -> list[Collection]:
        return list(self._collections.values())

    def get(self, resource: Resource, namespace: str | None, name: str) -> Record | None:
        return self.collection(resource).get(namespace or "", name)

    def subscribe(self, listener: Callable[[str, Change], None]) -> None:
        """Call `listener(collection, change)` for every change, in order, after it was committed."""
        self._listeners.append(listener)

    def dependents(self, uid: str) -> list[Record]:
        """The objects with an ownerReference to this UID."""
        return list(self._dependents.get(uid, {}).values())

    def put(self, resource: Resource, obj: Json, old: Record | None) -> Record:
        """Write `obj`, which has its name, namespace and UID, over `old`. Sets its resourceVersion. Raises
        `StatusError` 413 for an object beyond `LARGEST_OBJECT`."""
        collection = self.collection(resource)
        record = self._record(collection.key, obj)
        check_size(record.body, old)
        if old is not None:
            self._unindex_owners(old)
        collection.place(record)
        self._index_owners(record)
        self._record_change(collection, Change("MODIFIED" if old else "ADDED", record, old))
        return record

    def remove(self, resource: Resource, old: Record, final: Json | None = None) -> Record:
        """Delete `old`; watchers get `final`, or the object as it was, with the deletion's resourceVersion."""
        collection = self.collection(resource)
        record = self._record(collection.key, final if final is not None else old.decode())
        collection.drop(old)
        self._unindex_owners(old)
        self._record_change(collection, Change("DELETED", record, old))
        return record

    def _record(self, key: str, obj: Json) -> Record:
        self._version += 1
        metadata = obj["metadata"]
        metadata["resourceVersion"] = str(self._version)
        return Record(
            key,
            metadata.get("namespace") or "",
            metadata["name"],
            metadata["uid"],
            self._version,
            _encode(obj),
            metadata.get("labels") or None,
            tuple(owner.get("uid", "") for owner in metadata.get("ownerReferences") or ()),
            "deletionTimestamp" in metadata,
        )

    def _record_change(self, collection: Collection, change: Change) -> None:
        self._pending.append((collection, change))
        if self._batch is None:
            loop = asyncio.get_running_loop()
            self._batch = loop.create_future()
            loop.call_soon(self.flush)

    async def settled(self) -> None:
        """Return when all writes so far are committed; raises `StatusError` 507 or 500 when that fails and memory is
        rolled back."""
        if self._batch is not None:
            await asyncio.shield(self._batch)

    def flush(self) -> None:
        """Commit the pending writes as one group, then publish them to watches and listeners."""
        batch, pending = self._batch, self._pending
        self._batch, self._pending = None, []
        if not pending:
            return
        try:
            if self._persistence:
                self._persistence.write(_rows(pending), self._version)
        except WriteFailed as error:
            self._undo(pending)
            if batch and not batch.done():
                batch.set_exception(_write_refusal(error))
                batch.exception()  # Waiting callers raise it; having none is no error.
            return
        self._committed = self._version
        touched: set[History] = set()
        for collection, change in pending:
            collection.history.append(change)
            touched.add(collection.history)
        if batch and not batch.done():
            batch.set_result(None)
        for history in touched:
            history.wake()
        for collection, change in pending:
            for listener in self._listeners:
                listener(collection.key, change)

    def _undo(self, pending: list[tuple[Collection, Change]]) -> None:
        for collection, change in reversed(pending):
            if change.type != "DELETED":
                collection.drop(change.record)
                self._unindex_owners(change.record)
            if change.old is not None:
                collection.place(change.old)
                self._index_owners(change.old)

    def _index_owners(self, record: Record) -> None:
        for uid in record.owners:
            self._dependents.setdefault(uid, {})[record.collection, record.namespace, record.name] = record

    def _unindex_owners(self, record: Record) -> None:
        for uid in record.owners:
            dependents = self._dependents.get(uid)
            if dependents:
                dependents.pop((record.collection, record.namespace, record.name), None)
                if not dependents:
                    del self._dependents[uid]

    def forget(self, key: str) -> None:
        """Drop an empty collection's history: its watches end and its kind is no longer served."""
        collection = self._collections.get(key)
        if collection and not collection.count:
            del self._collections[key]
            self._floors[key] = self._version
            collection.history.close()

    def end_watches(self) -> None:
        for collection in self._collections.values():
            collection.history.close()

    def close(self) -> None:
        self.flush()
        self.end_watches()
        if self._persistence:
            self._persistence.close()


def _rows(pending: list[tuple[Collection, Change]]) -> Iterator[StoredObject]:
    """The last state of each object that the group changed."""
    last: Mapping[tuple[str, str, str], StoredObject] = {
        (collection.key, change.record.namespace, change.record.name): StoredObject(
            collection.key,
            change.record.namespace,
            change.record.name,
            change.record.version,
            None if change.type == "DELETED" else change.record.body,
            change.record.deleting,
        )
        for collection, change in pending
    }
    yield from last.values()


def _write_refusal(error: WriteFailed) -> StatusError:
    if error.full:
        return StatusError(
            507,
            "InsufficientStorage",
            f"the request changed nothing: no space left for the server's state ({error})",
        )
    return StatusError(
        500, "InternalError", f"the request changed nothing: the server's state can't be written: {error}"
    )
