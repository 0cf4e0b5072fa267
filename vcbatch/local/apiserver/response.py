"""Responses on the wire: objects, lists, tables, partial metadata, watch events, and the Status of an error."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from vcbatch.local.apiserver import yaml
from vcbatch.local.apiserver.apierrors import StatusError, bad_request
from vcbatch.local.apiserver.engine import Engine
from vcbatch.local.apiserver.reading import Page
from vcbatch.local.apiserver.record import Record
from vcbatch.local.apiserver.registry import Served
from vcbatch.local.apiserver.request import JSON_TYPE, YAML_TYPE, Accepted
from vcbatch.local.apiserver.watch import Seen

Json = dict[str, Any]

encode = msgspec.json.Encoder().encode
_META = "meta.k8s.io/v1"
_LARGE_LIST = 256 * 1024
"""Bytes from which on a list is joined only while it is sent."""


class Pieces:
    """A large body as chunks of `size` bytes together. They are created while they are sent, so that a client that
    reads slowly uses no memory; `bytes()` joins them."""

    def __init__(self, size: int, pieces: Callable[[], Iterator[bytes]]) -> None:
        self.size = size
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces()

    def __bytes__(self) -> bytes:
        return b"".join(self._pieces())


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """`body` is a stream for watches and logs. `stall_seconds`: the time that a client may leave a stream unread, where
    that is longer than usual."""

    code: int = 200
    body: bytes | Pieces | AsyncIterator[bytes] = b""
    content_type: str = JSON_TYPE
    headers: Sequence[tuple[str, str]] = field(default=())
    stall_seconds: float | None = None


def json_response(value: Any, *, code: int = 200, accepted: Accepted | None = None, pretty: bool = False) -> Response:
    if accepted and accepted.media_type == YAML_TYPE:
        return Response(code=code, body=yaml.dump(value), content_type=YAML_TYPE)
    if pretty:
        return Response(code=code, body=json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n")
    return Response(code=code, body=encode(value))


def text_response(text: str, *, code: int = 200) -> Response:
    return Response(code=code, body=text.encode(), content_type="text/plain; charset=utf-8")


def error_response(error: StatusError, *, media_type: str = JSON_TYPE) -> Response:
    body = yaml.dump(error.body()) if media_type == YAML_TYPE else encode(error.body())
    return Response(code=error.code, body=body, content_type=media_type, headers=list(error.headers.items()))


def page_not_found() -> Response:
    """The response for a path that no group version has, with the message of Go's HTTP library."""
    return text_response("404 page not found\n", code=404)


_MOST_WARNINGS = 64
"""The limit of warnings per response: Python's HTTP library, and so most clients written in it, reads 100 headers at
most."""
_WARNINGS_TOGETHER = 4096
_LONG_WARNING = 256
"""Warnings are truncated to this many characters where all of them together are too long."""


def warning_headers(warnings: Sequence[str]) -> list[tuple[str, str]]:
    """Each text once, in order; none with control characters; limited in number, where the last one has the number of
    those left out, and in size. Source: apiserver `pkg/endpoints/filters/warning.go`."""
    texts = [text for text in dict.fromkeys(warnings) if text and text.isprintable()]
    if sum(map(len, texts)) > _WARNINGS_TOGETHER:
        texts = [text[:_LONG_WARNING] for text in texts]
    kept: list[str] = []
    size = 0
    for text in texts:
        if size >= _WARNINGS_TOGETHER:
            break
        if len(kept) == _MOST_WARNINGS - 1 and len(texts) > _MOST_WARNINGS:
            kept.append(f"{len(texts) - len(kept)} more warnings were left out")
            break
        size += len(text)
        kept.append(text)
    escaped = (text.replace("\\", "\\\\").replace('"', '\\"') for text in kept)
    return [("Warning", f'299 - "{text}"') for text in escaped]


def object_response(
    entry: Served, record: Record, accepted: Accepted, *, code: int = 200, now: datetime, query: Mapping[str, Any]
) -> Response:
    """One object, as it is stored unless the client requested another form."""
    if accepted.transform == "Table":
        obj = Engine.decode(entry, record)
        table = _table([obj], entry, now, _include(query), headers=True)
        if obj["metadata"].get("resourceVersion"):
            table["metadata"]["resourceVersion"] = obj["metadata"]["resourceVersion"]
        return json_response(_in_version(table, accepted), code=code, accepted=accepted)
    if accepted.transform:
        partial = _in_version(_partial(Engine.decode(entry, record)), accepted)
        return json_response(partial, code=code, accepted=accepted)
    if accepted.media_type == YAML_TYPE or _pretty(query):
        return json_response(Engine.decode(entry, record), code=code, accepted=accepted, pretty=_pretty(query))
    return Response(code=code, body=Engine.body(entry, record))


def _pretty(query: Mapping[str, Any]) -> bool:
    values = query.get("pretty")
    return bool(values) and values[0].lower() not in ("false", "0")


def _include(query: Mapping[str, Any]) -> str:
    values = query.get("includeObject")
    include = values[0] if values and values[0] else "Metadata"
    if include not in ("Metadata", "Object", "None"):
        raise bad_request(
            f'Unable to convert to Table as requested: includeObject: Invalid value: "{include}": must be '
            "'Metadata', 'Object', 'None', or empty"
        )
    return include


def _in_version(shown: Json, accepted: Accepted) -> Json:
    """A table or partial metadata in the requested version of meta.k8s.io."""
    if accepted.version == "v1":
        return shown
    version = f"meta.k8s.io/{accepted.version}"
    for row in shown.get("rows") or ():
        if row["object"] and row["object"].get("apiVersion") == _META:
            row["object"]["apiVersion"] = version
    return {**shown, "apiVersion": version}


def list_response(
    entry: Served, page: Page, accepted: Accepted, *, now: datetime, query: Mapping[str, Any]
) -> Response:
    metadata: Json = {"resourceVersion": str(page.version)}
    if page.continue_:
        metadata["continue"] = page.continue_
    if page.remaining is not None:
        metadata["remainingItemCount"] = page.remaining
    if accepted.transform == "Table":
        table = _table(
            [Engine.decode(entry, record) for record in page.records], entry, now, _include(query), headers=True
        )
        table["metadata"] = metadata
        return json_response(_in_version(table, accepted), accepted=accepted)
    if accepted.transform:
        items = [_in_version(_partial(Engine.decode(entry, record)), accepted) for record in page.records]
        partials = {"kind": "PartialObjectMetadataList", "apiVersion": _META, "metadata": metadata, "items": items}
        return json_response(_in_version(partials, accepted), accepted=accepted)
    if entry.generated and "continue" not in metadata:
        metadata = {"continue": "", **metadata}
    body = _list_body(entry, page.records, metadata)
    if accepted.media_type == YAML_TYPE or _pretty(query):
        return json_response(msgspec.json.decode(bytes(body)), accepted=accepted, pretty=_pretty(query))
    return Response(body=body if body.size > _LARGE_LIST else bytes(body))


def list_kind(entry: Served) -> str:
    return entry.list_kind or f"{entry.resource.kind}List"


def _list_body(entry: Served, records: Sequence[Record], metadata: Json) -> Pieces:
    """The list, joined from encoded objects. Items of built-in kinds have no version and kind, as from Go."""
    resource = entry.resource
    head = encode({"kind": list_kind(entry), "apiVersion": resource.api_version, "metadata": metadata})
    start = head[:-1] + b',"items":['
    bodies: list[bytes] = [Engine.body(entry, record) for record in records]
    prefix = b"" if entry.generated else encode({"apiVersion": resource.api_version, "kind": resource.kind})[:-1] + b","
    cut = len(prefix)
    size = len(start) + sum(map(len, bodies)) + max(len(bodies) - 1, 0) + 2
    if prefix:
        size -= sum(cut - 1 for body in bodies if body.startswith(prefix))

    def pieces() -> Iterator[bytes]:
        yield start
        for index, body in enumerate(bodies):
            if prefix and body.startswith(prefix):
                yield b"%b{" % (b"," if index else b"")
                yield body[cut:]
            elif index:
                yield b"," + body
            else:
                yield body
        yield b"]}"

    return Pieces(size, pieces)


def _partial(obj: Json) -> Json:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}


def _table(objects: Sequence[Json], entry: Served, now: datetime, include: str, *, headers: bool) -> Json:
    """A meta.k8s.io/v1 Table. `include`: None, Metadata or Object, the data of each row besides its cells."""
    rows: list[Json] = []
    for obj in objects:
        row: Json = {"cells": [column.cell(obj, now) for column in entry.columns]}
        conditions = entry.row_conditions(obj) if entry.row_conditions else ()
        if conditions:
            row["conditions"] = list(conditions)
        row["object"] = None if include == "None" else obj if include == "Object" else _partial(obj)
        rows.append(row)
    columns = [
        {
            "name": column.name,
            "type": column.type,
            "format": column.format,
            "description": column.description,
            "priority": column.priority,
        }
        for column in entry.columns
    ]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": columns if headers else None,
        "rows": rows,
    }


class EventEncoder:
    """Encodes the events of one watcher. What doesn't depend on the time is encoded once for all watchers."""

    def __init__(self, entry: Served, accepted: Accepted, now: Callable[[], datetime], query: Mapping[str, Any]):
        self._entry = entry
        self._transform = accepted.transform
        self._now = now
        self._include = _include(query)
        self._shared = not accepted.transform and entry.storage is None and entry.from_storage is None
        self._first = True

    def encode(self, events: Sequence[Seen]) -> bytes:
        return b"".join([self._encode(event) for event in events])

    def _encode(self, event: Seen) -> bytes:
        if event.type == "BOOKMARK":
            return encode({"type": "BOOKMARK", "object": self._bookmark(event)}) + b"\n"
        plain = self._shared and not event.before  # joined from encoded parts, so a second copy has no benefit
        if event.change is None or plain or self._transform == "Table":  # ages in tables are those of the moment
            return self._line(event)
        form = (event.type, "before" if event.before else "", self._transform, self._entry.resource.api_version)
        return event.change.line(form, partial(self._line, event))

    def _line(self, event: Seen) -> bytes:
        if not self._shared:
            return encode({"type": event.type, "object": self._shown(self.object(event))}) + b"\n"
        record = event.change.record if event.change else event.record
        body = record.body if record else b"null"
        if event.before and event.change:
            body = event.change.previous_at_this_version()
        return b'{"type":"%b","object":%b}\n' % (event.type.encode(), body)

    def object(self, event: Seen) -> Json:
        """The object of an event, in the served version; a fresh copy."""
        if event.before and event.change:
            obj = msgspec.json.decode(event.change.previous_at_this_version())
            if self._entry.from_storage:
                return self._entry.from_storage(obj)
            return {**obj, "apiVersion": self._entry.resource.api_version}
        assert event.record is not None  # noqa: S101
        return Engine.decode(self._entry, event.record)

    def _bookmark(self, event: Seen) -> Json:
        metadata: Json = {"resourceVersion": str(event.version)}
        if event.initial_end:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        resource = self._entry.resource
        bookmark = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
        if self._transform == "Table":
            table = _table([], self._entry, self._now(), self._include, headers=self._first)
            self._first = False
            table["metadata"] = {"resourceVersion": str(event.version)}
            if event.initial_end:
                table["rows"] = [{"cells": [], "object": _partial(bookmark)}]
            return table
        return _partial(bookmark) if self._transform else bookmark

    def _shown(self, obj: Json) -> Json:
        if self._transform == "Table":
            table = _table([obj], self._entry, self._now(), self._include, headers=self._first)
            self._first = False
            table["metadata"] = {"resourceVersion": obj["metadata"]["resourceVersion"]}
            return table
        return _partial(obj) if self._transform else obj


def error_event(error: StatusError) -> bytes:
    return encode({"type": "ERROR", "object": error.body()}) + b"\n"
