"""The stored form of an object."""

from __future__ import annotations

from typing import Any

import msgspec

Json = dict[str, Any]


class Record(msgspec.Struct, frozen=True, gc=False):
    """One stored object. Immutable: a write creates a new record, so a list of records is a snapshot."""

    collection: str
    namespace: str
    name: str
    uid: str
    version: int
    body: bytes
    labels: dict[str, str] | None
    owners: tuple[str, ...]
    deleting: bool

    def decode(self) -> Json:
        """A fresh copy as plain JSON."""
        return msgspec.json.decode(self.body)
