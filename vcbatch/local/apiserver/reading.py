"""Get and list, and the start of a watch: committed state only, in consistent pages."""

from __future__ import annotations

import base64
import binascii
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from vcbatch.local.apiserver import gojson
from vcbatch.local.apiserver.apierrors import StatusError, bad_request
from vcbatch.local.apiserver.engine import Engine
from vcbatch.local.apiserver.list_options import ListOptions, Selection, parse_version, too_large
from vcbatch.local.apiserver.record import Record
from vcbatch.local.apiserver.registry import Served
from vcbatch.local.apiserver.watch import Watch

_SNAPSHOTS = 16
_SNAPSHOT_SECONDS = 300.0
_TOO_OLD_CONTINUE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of a list at one resourceVersion."""

    records: Sequence[Record]
    version: int
    continue_: str = ""
    remaining: int | None = None


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """The whole collection at the time of the first page of a list."""

    records: Sequence[Record]
    expires: float


class _Token(msgspec.Struct):
    """The content of a continue token; opaque to clients."""

    v: str
    rv: int
    start: str


def _read_token(text: str) -> _Token:
    """Parse the token that a client sent. Raises `StatusError` 400."""
    prefix = "invalid continue token: continue key is not valid: "
    raw = b""
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        token = msgspec.json.decode(raw, type=_Token)
    except (binascii.Error, msgspec.MsgspecError, ValueError, UnicodeDecodeError) as error:
        raise bad_request(prefix + (gojson.syntax_error(raw) or str(error))) from None
    if not token.start:
        raise bad_request(f"{prefix}encoded start key empty (version {token.v})")
    return token


class Reader:
    """Reads of an `Engine`'s store. Only committed state is returned: pending writes are committed first."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._snapshots: OrderedDict[tuple[str, int], _Snapshot] = OrderedDict()

    def get(self, entry: Served, namespace: str | None, name: str, *, version: str = "") -> Record:
        """The object; 504 where the client requests a `version` that this server hasn't reached."""
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
        """Snapshots keep objects that may be deleted since, so their number and their lifetime are limited."""
        now = self._engine.clock.monotonic()
        while self._snapshots:
            oldest = next(iter(self._snapshots))
            if len(self._snapshots) <= _SNAPSHOTS and self._snapshots[oldest].expires > now:
                return
            del self._snapshots[oldest]

    def _check_version(self, entry: Served, options: ListOptions) -> None:
        store = self._engine.store
        try:
            wanted = parse_version(options.version)
        except StatusError as error:
            raise bad_request(f"invalid resource version: {error.message}") from None
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
        token = _read_token(options.continue_)
        namespace, _, name = token.start.partition("/")
        stored = entry.stored_as
        if token.rv < 0:
            # The token of a 410: continue with the present state.
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
        """A started watch; raises for a version that can't be watched from."""
        self._engine.store.flush()
        if options.version not in ("", "0"):
            wanted = parse_version(options.version)
            if wanted > self._engine.store.version:
                raise too_large(wanted, self._engine.store.version)
        initial: Sequence[Record] = ()
        if options.initial_events or (options.initial_events is None and options.version in ("", "0")):
            initial = self._select(entry, options.selection)
        return Watch(self._engine, entry, options, initial)
