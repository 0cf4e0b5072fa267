"""Writes for an object that the server refused: reported once as an event, and kept until an attempt succeeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from vcbatch.api.messages import shorten
from vcbatch.api.resources import Resource
from vcbatch.core.machine import Emit, EventType, ref_of
from vcbatch.runtime.apply import NotAppliedError
from vcbatch.runtime.caches.cache import Cache, metadata_of
from vcbatch.runtime.events.recorder import Recorder


class Report(NamedTuple):
    """How the refusal of a part of a decision (such as `create Pod`) is reported."""

    reason: str
    begins: str = ""
    """The text before the server's message; if empty, the message follows the name of the refused part."""


class Refusals:
    """The server's messages, by the UID of the object that a decision was about and the reason of the event."""

    def __init__(
        self, resource: Resource, objects: Cache[Any], recorder: Recorder, reported: Mapping[str, Report]
    ) -> None:
        self._resource = resource
        self._objects = objects
        self._recorder = recorder
        self._reported = reported
        self._held: dict[str, dict[str, str]] = {}
        self.over: Callable[[str], None] = lambda _uid: None
        """Called with the UID of an object whose decision was applied completely after an earlier refusal."""

    def of(self, uid: str, reason: str) -> str:
        """The server's message for that reason; empty once an attempt succeeded."""
        return self._held.get(uid, {}).get(reason, "")

    def last(self, uid: str) -> tuple[str, str] | None:
        """The reason and the message of the last refusal."""
        held = self._held.get(uid)
        return next(reversed(held.items())) if held else None

    def with_reason(self, reason: str) -> list[str]:
        """The UIDs of the objects with a refusal of that reason."""
        return [uid for uid, held in self._held.items() if reason in held]

    def carried_out(self, uid: str, refused: NotAppliedError | None) -> None:
        """Record the result of applying a decision."""
        if refused is not None:
            self._note(uid, refused)
        elif self._held.pop(uid, None) is not None:
            self.over(uid)

    def forget(self, uid: str) -> None:
        """Drop what is kept for a deleted object."""
        self._held.pop(uid, None)

    def _note(self, uid: str, refused: NotAppliedError) -> None:
        """Record and report a refusal. Transient errors and repeated messages are not reported. Where the namespace is
        being deleted, the object is deleted with it."""
        stored, reported, words = self._objects.get(uid), self._reported.get(refused.part), refused.error.message
        if stored is None or reported is None or refused.passing or refused.error.namespace_terminating:
            return
        held = self._held.setdefault(uid, {})
        said = held.pop(reported.reason, None) == words
        held[reported.reason] = words
        if said:
            return
        message = shorten(f"{reported.begins}{words}" if reported.begins else str(refused))
        ref = ref_of(self._resource, metadata_of(stored))
        self._recorder.emit(Emit(ref=ref, type=EventType.WARNING, reason=reported.reason, message=message))
