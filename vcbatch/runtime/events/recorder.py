"""Kubernetes Events, limited in number and length, and sent without delaying the program.

Equal events are counted on one object, many similar ones are combined, and the rate per object is bounded, with
client-go's values (`tools/record/events_cache.go`).
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from vcbatch.api.messages import shorten
from vcbatch.api.resources import EVENTS
from vcbatch.api.timestamps import format_time
from vcbatch.core.machine import Emit
from vcbatch.hosting.backoff import Backoff
from vcbatch.interfaces.api import Api, ApiError, Json
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random

log = logging.getLogger(__name__)

_REMEMBERED = 4096
_WINDOW = 600.0  # seconds in which equal and similar events are aggregated
_SIMILAR = 10  # after this many messages of one reason about one object, they are combined
_BURST = 25
_REFILL_SECONDS = 300.0  # one more event per object in this time, once the burst is used up
_BACKLOG = 10_000
_TRIES = 12  # as in client-go
_RETRY = Backoff(initial=0.5, limit=10.0)
_NAME_LIMIT = 253 - 18  # the rest is for `.` and the random part


@dataclass(slots=True)
class _Story:
    """An event object that was sent and is counted up."""

    name: str
    count: int
    seen: float


@dataclass(slots=True)
class _Similar:
    """The different recent messages of one reason about one object."""

    since: float
    messages: set[str] = field(default_factory=set[str])
    combined: str = ""


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled: float


class Recorder:
    """Queues events without blocking and sends them from `run`, in order. A request without an answer is retried for
    about a minute; an event that is refused, or can't be sent in that time, is dropped and counted."""

    def __init__(
        self,
        api: Api,
        *,
        clock: Clock,
        random: Random,
        component: str,
        host: str = "",
        on_drop: Callable[[int], None] | None = None,
    ) -> None:
        self._api = api
        self._clock = clock
        self._random = random
        self.component = component
        self._host = host
        self._on_drop = on_drop
        self._pending: deque[Emit] = deque()
        self._wake = asyncio.Event()
        self._stories: OrderedDict[tuple[str, ...], _Story] = OrderedDict()
        self._similar: OrderedDict[tuple[str, ...], _Similar] = OrderedDict()
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def emit(self, event: Emit) -> None:
        if len(self._pending) >= _BACKLOG:
            self._dropped(1)
            return
        self._pending.append(event)
        self._wake.set()

    async def run(self) -> None:
        """Send the emitted events, until cancelled."""
        while True:
            await self.flush()
            self._wake.clear()
            await self._wake.wait()

    async def flush(self) -> None:
        """Send all queued events."""
        while self._pending:
            event = self._pending.popleft()
            now = self._clock.monotonic()
            message = self._combined(event, shorten(event.message), now)
            if not self._allowed(event.ref.uid, now):
                self._dropped(1)
                continue
            try:
                await self._send(event, message)
            except ApiError as error:
                # An event is only informational: the state that it describes is stored already.
                self._dropped(1)
                log.debug("an event was rejected", extra={"reason": event.reason, "error": error.message})

    async def _send(self, event: Emit, message: str) -> None:
        now = self._clock.monotonic()
        key = (event.ref.uid, event.type, event.reason, message)
        story = self._stories.get(key)
        if story is not None and now - story.seen < _WINDOW and await self._count_up(event, story):
            story.seen = now
            self._stories.move_to_end(key)
            return
        body = self._body(event, message)
        await self._insist(lambda: self._create(body))
        _keep(self._stories, key, _Story(body["metadata"]["name"], 1, now))

    async def _insist(self, write: Callable[[], Awaitable[object]]) -> None:
        """Retry only where the server doesn't answer: an event that fails for a reason of its own must not delay the
        others. The writes are idempotent, so that repeating one is harmless."""
        for failures in range(1, _TRIES):
            try:
                await write()
            except ApiError as error:
                if error.code:
                    raise
                await self._clock.sleep(_RETRY.delay(failures, self._random))
            else:
                return
        await write()

    async def _create(self, body: Json) -> None:
        try:
            await self._api.create(EVENTS, body, namespace=body["metadata"]["namespace"])
        except ApiError as error:
            if not error.already_exists:  # created by an attempt whose response was lost: no other client uses the name
                raise

    async def _count_up(self, event: Emit, story: _Story) -> bool:
        patch: Json = {"count": story.count + 1, "lastTimestamp": format_time(self._clock.now())}
        try:
            await self._insist(lambda: self._api.patch(EVENTS, story.name, patch, namespace=_namespace(event)))
        except ApiError as error:
            if error.not_found:
                return False  # expired; a new one is created
            raise
        story.count += 1
        return True

    def _combined(self, event: Emit, message: str, now: float) -> str:
        key = (event.ref.uid, event.type, event.reason)
        similar = self._similar.get(key)
        if similar is None or now - similar.since >= _WINDOW:
            similar = _Similar(since=now)
            _keep(self._similar, key, similar)
        if message in similar.messages:
            return message
        if len(similar.messages) < _SIMILAR:
            similar.messages.add(message)
            return message
        # One message for all that follow, so that they are counted and not listed.
        similar.combined = similar.combined or shorten(f"(combined from similar events): {message}")
        return similar.combined

    def _allowed(self, uid: str, now: float) -> bool:
        bucket = self._buckets.get(uid)
        if bucket is None:
            bucket = _Bucket(tokens=_BURST, filled=now)
            _keep(self._buckets, uid, bucket)
        bucket.tokens = min(_BURST, bucket.tokens + (now - bucket.filled) / _REFILL_SECONDS)
        bucket.filled = now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True

    def _body(self, event: Emit, message: str) -> Json:
        ref, stamp = event.ref, format_time(self._clock.now())
        involved: Json = {"kind": ref.resource.kind, "apiVersion": ref.resource.api_version, "name": ref.name}
        if ref.namespace:
            involved["namespace"] = ref.namespace
        involved["uid"] = ref.uid
        source: Json = {"component": self.component}
        if self._host:
            source["host"] = self._host
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{ref.name[:_NAME_LIMIT]}.{self._random.token(16)}",
                "namespace": _namespace(event),
            },
            "involvedObject": involved,
            "type": event.type.value,
            "reason": event.reason,
            "message": message,
            "source": source,
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
            "reportingComponent": self.component,
            "reportingInstance": self._host,
        }

    def _dropped(self, count: int) -> None:
        if self._on_drop is not None:
            self._on_drop(count)


def _namespace(event: Emit) -> str:
    """The namespace of the event: `default` for cluster-scoped objects, as in client-go."""
    return event.ref.namespace or "default"


def _keep(table: OrderedDict, key: object, value: object) -> None:  # type: ignore[type-arg]
    table[key] = value
    table.move_to_end(key)
    while len(table) > _REMEMBERED:
        table.popitem(last=False)
