"""Get, list and watch: selectors, pages and what `resourceVersion` asks for."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from vcbatch.local.apiserver.engine import Engine
from vcbatch.local.apiserver.errors import (
    FieldError,
    StatusError,
    bad_request,
    forbidden_field,
    invalid,
    not_supported,
)
from vcbatch.local.apiserver.history import Change
from vcbatch.local.apiserver.registry import Served
from vcbatch.local.apiserver.request import first, flag, integer
from vcbatch.local.apiserver.selectors import FieldSelector, LabelSelector, parse_fields, parse_labels, value_at
from vcbatch.local.apiserver.store import Record

Json = dict[str, Any]

_SNAPSHOTS = 16
_SNAPSHOT_SECONDS = 300.0
_BOOKMARK_SECONDS = 60.0
_WATCH_SECONDS = 1800.0
_TOO_OLD_CONTINUE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which objects of a collection a request means."""

    namespace: str | None = None
    labels: LabelSelector | None = None
    fields: FieldSelector | None = None

    def matches(self, entry: Served, record: Record, known: Mapping[str, str] | None = None) -> bool:
        """Whether the selectors take the record. `known` are its selectable fields, where they are at hand."""
        if self.labels is not None and not self.labels.matches(record.labels):
            return False
        if self.fields is None:
            return True
        values = {"metadata.name": record.name, "metadata.namespace": record.namespace}
        if any(term.path not in values for term in self.fields.terms):
            values.update(known if known is not None else selectable(entry, record))
        return self.fields.matches(lambda path: values.get(path, ""))


def selectable(entry: Served, record: Record) -> Mapping[str, str]:
    """The values of the fields that selectors of this kind may name."""
    obj = Engine.decode(entry, record)
    values = {path: value_at(obj, path) for path in entry.selectable_fields}
    if entry.field_values:
        values.update(entry.field_values(obj))
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    selection: Selection
    limit: int = 0
    continue_: str = ""
    version: str = ""
    match: str = ""
    watch: bool = False
    bookmarks: bool = False
    initial_events: bool | None = None
    timeout: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of a list at one resourceVersion."""

    records: Sequence[Record]
    version: int
    continue_: str = ""
    remaining: int | None = None


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """A whole collection as it was when the first page of a list was given out."""

    records: Sequence[Record]
    expires: float


class _Token(msgspec.Struct):
    """What a continue token says; opaque to clients."""

    v: str
    rv: int
    start: str


def parse_list_options(entry: Served, namespace: str | None, query: Mapping[str, Sequence[str]]) -> ListOptions:
    """Parsed and checked as Kubernetes checks them; raises 400 and 422."""
    labels = parse_labels(first(query, "labelSelector"))
    fields = parse_fields(
        first(query, "fieldSelector"),
        known=entry.selectable_fields,
        named=entry.generated or bool(entry.selectable_fields),
    )
    limit = integer(query, "limit") or 0
    timeout = integer(query, "timeoutSeconds")
    options = ListOptions(
        selection=Selection(namespace=namespace, labels=labels, fields=fields),
        limit=max(0, limit),
        continue_=first(query, "continue"),
        version=first(query, "resourceVersion"),
        match=first(query, "resourceVersionMatch"),
        watch=flag(query, "watch"),
        bookmarks=flag(query, "allowWatchBookmarks"),
        initial_events=flag(query, "sendInitialEvents") if "sendInitialEvents" in query else None,
        timeout=float(timeout) if timeout else None,
    )
    errors = _watch_faults(options) if options.watch else _list_faults(options)
    if errors:
        raise invalid(group="meta.k8s.io", kind="ListOptions", name="", errors=errors)
    return options


_MATCH = "resourceVersionMatch"


def _list_faults(options: ListOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    if options.match:
        if not options.version:
            errors.append(forbidden_field(_MATCH, f"{_MATCH} is forbidden unless resourceVersion is provided"))
        if options.continue_:
            errors.append(forbidden_field(_MATCH, f"{_MATCH} is forbidden when continue is provided"))
        if options.match not in ("Exact", "NotOlderThan"):
            errors.append(not_supported(_MATCH, options.match, ["Exact", "NotOlderThan", ""]))
        if options.match == "Exact" and options.version == "0":
            errors.append(forbidden_field(_MATCH, f'{_MATCH} "exact" is forbidden for resourceVersion "0"'))
    if options.initial_events is not None:
        errors.append(forbidden_field("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return errors


def _watch_faults(options: ListOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    if options.initial_events is not None and options.match != "NotOlderThan":
        errors.append(forbidden_field(_MATCH, f"sendInitialEvents requires setting {_MATCH} to NotOlderThan"))
    if options.match:
        if options.initial_events is None:
            detail = f"{_MATCH} is forbidden for watch unless sendInitialEvents is provided"
            errors.append(forbidden_field(_MATCH, detail))
        if options.match != "NotOlderThan":
            errors.append(not_supported(_MATCH, options.match, ["NotOlderThan"]))
        if options.continue_:
            errors.append(forbidden_field(_MATCH, f"{_MATCH} is forbidden when continue is provided"))
    return errors


def parse_version(text: str) -> int:
    if not text.isdecimal() or len(text) > 19:
        raise StatusError(
            500, "", f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        )
    return int(text)


class Reader:
    """Reads of an `Engine`'s store. Only what is on disk is shown: pending writes are committed first."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._snapshots: OrderedDict[tuple[str, int], _Snapshot] = OrderedDict()

    def get(self, entry: Served, namespace: str | None, name: str, *, version: str = "") -> Record:
        """The object; 504 where the client knows of a `version` that this server hasn't reached."""
        self._engine.store.flush()
        if version and parse_version(version) > self._engine.store.version:
            raise too_large(int(version), self._engine.store.version)
        return self._engine.find(entry, namespace, name)

    def list(self, entry: Served, options: ListOptions) -> Page:
        store = self._engine.store
        store.flush()
        self._drop_snapshots()
        if options.continue_:
            return self._continued(entry, options)
        if options.version:
            self._check_version(entry, options)
        records = self._select(entry, options.selection)
        return self._page(entry, options, records, store.version)

    def _drop_snapshots(self) -> None:
        """Snapshots hold on to objects that may be long gone, so they are few and live for a while only."""
        now = self._engine.clock.monotonic()
        while self._snapshots:
            oldest = next(iter(self._snapshots))
            if len(self._snapshots) <= _SNAPSHOTS and self._snapshots[oldest].expires > now:
                return
            del self._snapshots[oldest]

    def _check_version(self, entry: Served, options: ListOptions) -> None:
        store = self._engine.store
        wanted = parse_version(options.version)
        if wanted > store.version:
            raise too_large(wanted, store.version)
        # No former states are kept; but the present one is also that of every version since the last change.
        exact = options.match == "Exact" or (options.limit and wanted and not options.match)
        if exact and wanted < store.collection(entry.stored_as).history.last:
            raise StatusError(410, "Expired", f"The resourceVersion for the provided list is too old: {wanted}")

    def _select(self, entry: Served, selection: Selection) -> list[Record]:
        collection = self._engine.store.collection(entry.stored_as)
        name = selection.fields.name if selection.fields else None
        if name is not None and (selection.namespace is not None or not entry.resource.namespaced):
            record = collection.get(selection.namespace or "", name)
            return [record] if record and selection.matches(entry, record) else []
        namespace = selection.namespace if entry.resource.namespaced else None
        if selection.labels is None and selection.fields is None:
            return list(collection.sorted(namespace))
        return [record for record in collection.sorted(namespace) if selection.matches(entry, record)]

    def _page(self, entry: Served, options: ListOptions, records: Sequence[Record], version: int) -> Page:
        if not options.limit or len(records) <= options.limit:
            return Page(records=records, version=version)
        page = records[: options.limit]
        last = page[-1]
        key = (f"{entry.stored_as.group}/{entry.stored_as.plural}", version)
        if key not in self._snapshots:
            everything = tuple(self._engine.store.collection(entry.stored_as).sorted(None))
            self._snapshots[key] = _Snapshot(everything, self._engine.clock.monotonic() + _SNAPSHOT_SECONDS)
        token = _Token(v="meta.k8s.io/v1", rv=version, start=f"{last.namespace}/{last.name}")
        remaining = len(records) - options.limit
        whole = options.selection.labels is None and options.selection.fields is None
        return Page(
            records=page,
            version=version,
            continue_=base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("="),
            remaining=remaining if whole else None,
        )

    def _continued(self, entry: Served, options: ListOptions) -> Page:
        if options.version and options.version != "0":
            raise bad_request("specifying resource version is not allowed when using continue")
        try:
            padded = options.continue_ + "=" * (-len(options.continue_) % 4)
            token = msgspec.json.decode(base64.urlsafe_b64decode(padded), type=_Token)
        except (binascii.Error, msgspec.MsgspecError, ValueError, UnicodeDecodeError):
            raise bad_request("continue key is not valid: encoded continue token is unreadable") from None
        namespace, _, name = token.start.partition("/")
        stored = entry.stored_as
        if token.rv < 0:
            # The token of a 410: go on with what there is now.
            version = self._engine.store.version
            snapshot: Sequence[Record] | None = tuple(self._engine.store.collection(stored).sorted(None))
        else:
            version = token.rv
            kept = self._snapshots.get((f"{stored.group}/{stored.plural}", version))
            snapshot = kept.records if kept else None
        if snapshot is None:
            raise self._expired(token)
        wanted = options.selection.namespace if entry.resource.namespaced else None
        records = [
            record
            for record in snapshot
            if (record.namespace, record.name) > (namespace, name)
            and (wanted is None or record.namespace == wanted)
            and options.selection.matches(entry, record)
        ]
        return self._page(entry, options, records, version)

    @staticmethod
    def _expired(token: _Token) -> StatusError:
        fresh = base64.urlsafe_b64encode(msgspec.json.encode(_Token(v=token.v, rv=-1, start=token.start)))
        error = StatusError(410, "Expired", _TOO_OLD_CONTINUE)
        error.metadata = {"continue": fresh.decode().rstrip("=")}
        return error

    def watch(self, entry: Served, options: ListOptions) -> Watch:
        """A started watch; raises for a version that can't be watched from at all."""
        self._engine.store.flush()
        if options.version not in ("", "0"):
            wanted = parse_version(options.version)
            if wanted > self._engine.store.version:
                raise too_large(wanted, self._engine.store.version)
        initial: Sequence[Record] = ()
        if options.initial_events or (options.initial_events is None and options.version in ("", "0")):
            initial = self._select(entry, options.selection)
        return Watch(self._engine, entry, options, initial)


def too_large(wanted: int, current: int) -> StatusError:
    return StatusError(
        504,
        "Timeout",
        f"Too large resource version: {wanted}, current: {current}",
        {
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        },
        {"Retry-After": "1"},
    )


@dataclass(frozen=True, slots=True)
class Seen:
    """An event as one watcher sees it. `change` is None for the initial state (`record` then) and for bookmarks."""

    type: str
    change: Change | None = None
    record: Record | None = None
    version: int = 0
    initial_end: bool = False
    before: bool = False
    """Whether the watcher is shown the object as it was before the change."""


class Watch:
    """One watcher: iterate over it for groups of events. Ends by timeout, when the kind goes, or with `closed`."""

    def __init__(
        self,
        engine: Engine,
        entry: Served,
        options: ListOptions,
        initial: Sequence[Record],
    ) -> None:
        self._engine = engine
        self._entry = entry
        self._options = options
        self._initial = initial
        self._history = engine.store.collection(entry.stored_as).history
        self._wake = asyncio.Event()
        self._version = engine.store.version
        start = options.version
        begin = self._version if initial or start in ("", "0") else int(start)
        if options.initial_events:
            begin = self._version
        self._position = self._history.position_after(begin)
        self._begin = begin

    async def __aiter__(self) -> AsyncIterator[list[Seen]]:
        options = self._options
        first_events = [Seen("ADDED", record=record, version=record.version) for record in self._initial]
        if options.initial_events and options.bookmarks:
            first_events.append(Seen("BOOKMARK", version=self._version, initial_end=True))
        self._initial = ()
        if first_events:
            yield first_events
        if self._position is None:
            raise expired(self._begin, self._history.floor)
        clock = self._engine.clock
        spread = 1.0 + self._engine.random.random()
        ends = clock.monotonic() + (options.timeout or _WATCH_SECONDS * spread)
        bookmark = clock.monotonic() + _BOOKMARK_SECONDS
        timer = asyncio.create_task(self._tick(ends))
        self._history.register(self._wake)
        try:
            while True:
                self._wake.clear()
                events = self._collect()
                if events:
                    yield events
                    continue
                now = clock.monotonic()
                if now >= ends or self._history.closed:
                    return
                if options.bookmarks and now >= bookmark:
                    bookmark = now + _BOOKMARK_SECONDS
                    yield [Seen("BOOKMARK", version=self._engine.store.version)]
                    continue
                await self._wake.wait()
        finally:
            self._history.unregister(self._wake)
            timer.cancel()

    async def _tick(self, ends: float) -> None:
        """Wake the watcher for bookmarks and for its end; one timer for the whole watch."""
        clock = self._engine.clock
        while True:
            rest = ends - clock.monotonic()
            await clock.sleep(min(_BOOKMARK_SECONDS, max(rest, 0.0)))
            self._wake.set()

    def _collect(self) -> list[Seen]:
        assert self._position is not None  # noqa: S101
        changes = self._history.since(self._position)
        if changes is None:
            raise expired(self._begin, self._history.floor)
        self._position += len(changes)
        selection = self._options.selection
        if selection.labels is None and selection.fields is None:
            if selection.namespace is None or not self._entry.resource.namespaced:
                return [Seen(change.type, change, change.record, change.record.version) for change in changes]
            return [
                Seen(change.type, change, change.record, change.record.version)
                for change in changes
                if change.record.namespace == selection.namespace
            ]
        seen = (self._seen(change) for change in changes)
        return [event for event in seen if event]

    def _seen(self, change: Change) -> Seen | None:
        """What a watcher with selectors sees: an object that comes into sight is ADDED, one that leaves DELETED."""
        record = change.record
        namespace = self._options.selection.namespace
        if namespace is not None and self._entry.resource.namespaced and record.namespace != namespace:
            return None
        before = change.old is not None and self._matches(change, change.old, before=True)
        if change.type == "DELETED":
            return Seen("DELETED", change, record, record.version) if before else None
        after = self._matches(change, record, before=False)
        if after:
            return Seen("MODIFIED" if before else "ADDED", change, record, record.version)
        return Seen("DELETED", change, record, record.version, before=True) if before else None

    def _matches(self, change: Change, record: Record, *, before: bool) -> bool:
        selection = self._options.selection
        if selection.fields is None:
            return selection.matches(self._entry, record)
        key = (self._entry.resource.api_version, before)
        known = change.fields.get(key)
        if known is None:
            known = change.fields[key] = selectable(self._entry, record)
        return selection.matches(self._entry, record, known)


def expired(wanted: int, floor: int) -> StatusError:
    return StatusError(410, "Expired", f"too old resource version: {wanted} ({floor + 1})")
