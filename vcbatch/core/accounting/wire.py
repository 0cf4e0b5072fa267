"""Records as JSON, with camelCase names and RFC 3339 times: in responses of the local server and `-o json`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from vcbatch.api.resources import Resource
from vcbatch.core.accounting.attempt import Attempt

Json = dict[str, Any]

ATTEMPTS: Final = Resource(group="accounting.vcbatch.dev", version="v1alpha1", plural="attempts", kind="Attempt")
"""The path of the records on the local server, which stores no objects there: only lists are served, in which the query
parameter `filter` is a `Filter` as JSON."""

_TIMES: Final = ("submitted", "queued", "admitted", "started", "ended")


def _name(field: str) -> str:
    first, *others = field.split("_")
    return "jobUID" if field == "job_uid" else first + "".join(word.title() for word in others)


_NAMES: Final = {field: _name(field) for field in Attempt.__struct_fields__ if field != "observed"}
"""Field -> name in JSON."""
FIELDS: Final = tuple(_NAMES.values())
"""The names in JSON, in the order of the record."""


def to_wire(attempt: Attempt) -> Json:
    """The record as JSON; times that aren't known are null."""
    values: Json = msgspec.to_builtins(attempt)
    for field in _TIMES:
        values[field] = _text(values[field])
    return {name: values[field] for field, name in _NAMES.items()}


def from_wire(wire: Mapping[str, Any]) -> Attempt:
    """The record that `to_wire` gave. Raises `msgspec.ValidationError` or ValueError for other values."""
    values = {field: wire[name] for field, name in _NAMES.items() if name in wire}
    for field in _TIMES:
        if isinstance(values.get(field), str):
            values[field] = datetime.fromisoformat(values[field]).timestamp()
    return msgspec.convert(values, Attempt)


def _text(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
