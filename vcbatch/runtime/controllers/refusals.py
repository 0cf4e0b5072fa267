"""What the server doesn't let us do for an object: said on it once, and remembered until a try went well."""

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
    """How it is told that a part of a decision (`create Pod`) was refused."""

    reason: str
    begins: str = ""
    """What the server's words are put after; where it is empty, they come after the part that was refused."""


class Refusals:
    """By the UID of the object that a decision was about, and by the reason that is given: the server's words."""

    def __init__(
        self, resource: Resource, objects: Cache[Any], recorder: Recorder, reported: Mapping[str, Report]
    ) -> None:
        self._resource = resource
        self._objects = objects
        self._recorder = recorder
        self._reported = reported
        self._held: dict[str, dict[str, str]] = {}
        self.over: Callable[[str], None] = lambda _uid: None
        """Called with the UID of an object about which all was done after something had been refused."""

    def of(self, uid: str, reason: str) -> str:
        """Why what that reason stands for can't be done; empty once a try went well."""
        return self._held.get(uid, {}).get(reason, "")

    def last(self, uid: str) -> tuple[str, str] | None:
        """The reason and the words of what was refused last."""
        held = self._held.get(uid)
        return next(reversed(held.items())) if held else None

    def with_reason(self, reason: str) -> list[str]:
        """The objects for which something is refused that is told with that reason."""
        return [uid for uid, held in self._held.items() if reason in held]

    def carried_out(self, uid: str, refused: NotAppliedError | None) -> None:
        """Take note of how a decision went."""
        if refused is not None:
            self._note(uid, refused)
        elif self._held.pop(uid, None) is not None:
            self.over(uid)

    def forget(self, uid: str) -> None:
        """The object is gone."""
        self._held.pop(uid, None)

    def _note(self, uid: str, refused: NotAppliedError) -> None:
        """What passes by itself isn't worth a word, and neither is what was said already. Where the namespace is being
        deleted, the object goes with it."""
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
