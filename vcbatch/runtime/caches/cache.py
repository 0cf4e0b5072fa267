"""The last known objects of one resource, by UID, with indexes.

Three rules make it safe to decide from: an older version never overwrites a newer one, regardless of its source; the
response to our own write is stored before the next decision; and a deleted object stays deleted.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from vcbatch.api.meta import ObjectMeta
from vcbatch.interfaces.api import Listing

T = TypeVar("T")
log = logging.getLogger(__name__)

# UIDs of deleted objects are remembered, so that a late event or response can't restore them.
_TOMBSTONES = 16_384


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of an object in a cache. `version` is None where it isn't a number."""

    uid: str
    key: str
    version: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Generic[T]):
    """A change of an object. `old` is None for an object that was added, `new` for one that was deleted."""

    old: T | None
    new: T | None

    @property
    def current(self) -> T:
        """The object as it is now, or as it last was."""
        return self.new if self.new is not None else self.old  # type: ignore[return-value]

    def keeps(self, read: Callable[[T], object]) -> bool:
        """Whether `read` returns the same for the old and the new object. False for an added or deleted object."""
        return self.old is not None and self.new is not None and read(self.old) == read(self.new)


def identity(obj: Any) -> Identity:
    """UID, `namespace/name` and resourceVersion of a JSON object or of a trimmed struct."""
    if isinstance(obj, dict):
        meta: Mapping[str, Any] = obj.get("metadata") or {}
        name, namespace = meta.get("name") or "", meta.get("namespace") or ""
        uid, version = meta.get("uid") or "", meta.get("resourceVersion") or ""
    else:
        struct: ObjectMeta = obj.metadata
        name, namespace, uid, version = struct.name, struct.namespace, struct.uid, struct.resource_version
    return Identity(uid, f"{namespace}/{name}" if namespace else name, _number(version))


def metadata_of(obj: Any) -> ObjectMeta:
    """The metadata of a JSON object or of a trimmed struct."""
    return msgspec.convert(obj["metadata"], ObjectMeta) if isinstance(obj, dict) else obj.metadata


def _number(version: str) -> int | None:
    # Versions are opaque by contract, and decimal on every server there is (Kubernetes says so since 1.35).
    return int(version) if version.isdecimal() else None


class Cache(Generic[T]):
    """The objects of one resource. Not thread-safe: one event loop reads and writes it."""

    def __init__(self, *, model: type[T] = dict) -> None:
        self.model = model
        self._objects: dict[str, T] = {}
        self._versions: dict[str, int | None] = {}
        self._keys: dict[str, str] = {}  # key -> uid
        self._index_functions: dict[str, Callable[[T], Iterable[str]]] = {}
        self._indexes: dict[str, dict[str, set[str]]] = {}
        self._tombstones: OrderedDict[str, None] = OrderedDict()
        self._listeners: list[Callable[[Change[T]], None]] = []

    # Reads

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(list(self._objects.values()))

    def get(self, uid: str) -> T | None:
        """The object with that UID; None where it isn't known."""
        return self._objects.get(uid)

    def held_as(self, obj: T) -> T:
        """The cached object with the same UID and version as `obj`, or `obj` itself where there is none."""
        who = identity(obj)
        held = self._objects.get(who.uid)
        return held if held is not None and who.version is not None and self._versions[who.uid] == who.version else obj

    def by_key(self, key: str) -> T | None:
        """The object with that `namespace/name`, or with the bare name of a cluster-scoped object."""
        uid = self._keys.get(key)
        return self._objects.get(uid) if uid is not None else None

    def indexed(self, index: str, value: str) -> list[T]:
        """The objects for which the index function returned `value`, in no particular order."""
        return [self._objects[uid] for uid in self._indexes[index].get(value, ())]

    def count(self, index: str, value: str) -> int:
        """The number of objects that `indexed` returns."""
        return len(self._indexes[index].get(value, ()))

    def add_index(self, index: str, function: Callable[[T], Iterable[str]]) -> None:
        """Add an index under that name. The same name always means the same function."""
        if index in self._index_functions:
            return
        self._index_functions[index] = function
        self._indexes[index] = {}
        for uid, obj in self._objects.items():
            for value in function(obj):
                self._indexes[index].setdefault(value, set()).add(uid)

    def listen(self, listener: Callable[[Change[T]], None]) -> None:
        """Call `listener` with every later change, in order, within the call that makes the change."""
        self._listeners.append(listener)

    # Writes

    def observe(self, event_type: str, obj: T) -> bool:
        """Apply an event of a watch. True where it changed something."""
        if event_type == "DELETED":
            who = identity(obj)
            self._bury(who.uid)
            return self._remove(who.uid)
        return self.put(obj)

    def put(self, obj: T) -> bool:
        """Store an object as the server returned it: from a watch, a read, or the response to a write. True where it
        changed something."""
        who = identity(obj)
        if not who.uid or who.uid in self._tombstones:
            return False
        if who.uid in self._objects:
            if not _newer(who.version, self._versions[who.uid]):
                return False
        elif (other := self._keys.get(who.key)) is not None:
            # An object was recreated with this name. The older one was deleted, in whatever order the events arrive.
            if not _newer(who.version, self._versions[other]):
                self._bury(who.uid)
                return False
            self._bury(other)
            self._remove(other)
        self._store(who, obj)
        return True

    def amend(self, obj: T) -> None:
        """Replace the object by one with more information at the same version (a deletion that we just requested)."""
        who = identity(obj)
        if who.uid in self._objects and self._versions[who.uid] == who.version:
            self._store(who, obj)

    def discard(self, uid: str) -> bool:
        """Remove the object: the server reports that it doesn't exist."""
        self._bury(uid)
        return self._remove(uid)

    def drop(self, uid: str) -> bool:
        """Remove the object without recording its deletion: it is stored again once it is read again. For caches that
        no watch fills."""
        return self._remove(uid)

    def replace(self, listing: Listing[T]) -> int:
        """Apply a complete list: objects that it lacks were deleted, unless they are newer than the list. Returns the
        number of objects that differed."""
        at = _number(listing.resource_version)
        listed = {identity(obj).uid for obj in listing.items}
        changed = 0
        for uid in [uid for uid in self._objects if uid not in listed]:
            version = self._versions[uid]
            if at is not None and version is not None and version > at:
                continue  # created after the list
            self._bury(uid)
            changed += self._remove(uid)
        for obj in listing.items:
            changed += self.put(obj)
        return changed

    def _store(self, who: Identity, obj: T) -> None:
        if isinstance(obj, dict):
            # The managed fields don't affect any decision, and are up to half of an object.
            obj["metadata"].pop("managedFields", None)
        old = self._objects.get(who.uid)
        self._objects[who.uid] = obj
        self._versions[who.uid] = who.version
        self._keys[who.key] = who.uid
        self._reindex(who.uid, old, obj)
        self._report(Change(old=old, new=obj))

    def _remove(self, uid: str) -> bool:
        old = self._objects.pop(uid, None)
        if old is None:
            return False
        del self._versions[uid]
        key = identity(old).key
        if self._keys.get(key) == uid:
            del self._keys[key]
        self._reindex(uid, old, None)
        self._report(Change(old=old, new=None))
        return True

    def _reindex(self, uid: str, old: T | None, new: T | None) -> None:
        for name, function in self._index_functions.items():
            before = set(function(old)) if old is not None else set[str]()
            after = set(function(new)) if new is not None else set[str]()
            index = self._indexes[name]
            for value in before - after:
                members = index[value]
                members.discard(uid)
                if not members:
                    del index[value]
            for value in after - before:
                index.setdefault(value, set()).add(uid)

    def _bury(self, uid: str) -> None:
        self._tombstones[uid] = None
        self._tombstones.move_to_end(uid)
        while len(self._tombstones) > _TOMBSTONES:
            self._tombstones.popitem(last=False)

    def _report(self, change: Change[T]) -> None:
        for listener in self._listeners:
            try:
                listener(change)
            except Exception:  # an error of one listener must not lose the object for the others
                log.exception("a listener failed on a change")


def _newer(candidate: int | None, held: int | None) -> bool:
    """Whether `candidate` replaces `held`. Versions that aren't numbers can't be compared; then the last one received
    wins."""
    return candidate is None or held is None or candidate > held


def deleting(obj: T, *, at: str) -> T:
    """A copy of `obj` with `at` as its deletion timestamp, or `obj` itself where it has one."""
    if isinstance(obj, dict):
        metadata = dict(obj.get("metadata") or {})
        if metadata.get("deletionTimestamp"):
            return obj
        return {**obj, "metadata": {**metadata, "deletionTimestamp": at}}  # type: ignore[return-value]
    meta: ObjectMeta = obj.metadata  # type: ignore[attr-defined]
    if meta.deletion_timestamp:
        return obj
    return msgspec.structs.replace(obj, metadata=msgspec.structs.replace(meta, deletion_timestamp=at))  # type: ignore[type-var]
