"""Following objects on a server: what exists, then what changes, over every way in which a watch can break.

Made for the few objects that one user looks at, by name or by label. Controllers, which hold whole resources, follow
them by `vcbatch.runtime.caches.watch`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from vcbatch.api.resources import Resource
from vcbatch.hosting.backoff import Backoff
from vcbatch.interfaces.api import Api, ApiError
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.caches.cache import identity

T = TypeVar("T")

_RECONNECT = Backoff(initial=0.1, limit=10.0)
_SHORT_WATCH = 1.0
"""Seconds: a watch that ended sooner didn't work, and is not tried again at once."""
PATIENCE = 300.0
"""Seconds for which a server may be out of reach before its error is raised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Generic[T]):
    """An object as it is now or, where it was `deleted`, as it was last."""

    object: T
    deleted: bool = False


async def changes(
    api: Api,
    resource: Resource,
    *,
    clock: Clock,
    random: Random,
    namespace: str | None = None,
    label_selector: str = "",
    field_selector: str = "",
    model: type[T] = dict,
    patience: float = PATIENCE,
    on_trouble: Callable[[ApiError], None] | None = None,
) -> AsyncGenerator[Sequence[Change[T]], None]:
    """What exists, all of it in the first batch (which may be empty), then each change, without end.

    A watch that ends, goes silent or is cut is taken up where it was; where the server has forgotten that place (410),
    what exists is listed and compared, deletions included. A deletion comes before what took the object's name. Raises
    `ApiError` for a refusal, and for a server that can't be reached for `patience` seconds; until then `on_trouble` is
    told each time that trying again didn't help.
    """
    known: dict[str, T] = {}
    version = ""
    failures = 0
    expired = False
    working = clock.monotonic()
    while True:
        try:
            if not version:
                listing = await api.list(
                    resource,
                    namespace=namespace,
                    label_selector=label_selector,
                    field_selector=field_selector,
                    model=model,
                )
                version, working = listing.resource_version, clock.monotonic()
                yield tuple(_compared(known, listing.items))
                continue
            opened = clock.monotonic()
            watch = api.watch(
                resource,
                resource_version=version,
                namespace=namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                model=model,
            )
            async with _closing(watch) as events:
                async for event in events:
                    failures, expired, working = 0, False, clock.monotonic()
                    version = event.resource_version or version
                    if event.type != "BOOKMARK":
                        yield (_observed(known, event.object, deleted=event.type == "DELETED"),)
            working = clock.monotonic()
            if working - opened >= _SHORT_WATCH:
                failures = 0
                continue
            retry_after = None
        except ApiError as error:
            if error.expired:
                version = ""
                if not expired:
                    expired = True  # the server answers: there is nothing to wait for, unless the list leads here again
                    continue
            elif not error.transient or clock.monotonic() - working >= patience:
                raise
            elif failures and on_trouble is not None:
                on_trouble(error)
            retry_after = error.retry_after
        failures += 1
        await clock.sleep(max(_RECONNECT.delay(failures, random), retry_after or 0.0))


def _compared(known: dict[str, T], items: Iterable[T]) -> Iterator[Change[T]]:
    """What a list says that wasn't known; `known` is brought up to it."""
    listed = {identity(item).uid: item for item in items}
    for uid in [uid for uid in known if uid not in listed]:
        yield Change(object=known.pop(uid), deleted=True)
    for uid, item in listed.items():
        before = known.get(uid)
        if before is None or identity(before).version != identity(item).version:
            known[uid] = item
            yield Change(object=item)


def _observed(known: dict[str, T], item: T, *, deleted: bool) -> Change[T]:
    uid = identity(item).uid
    if deleted:
        known.pop(uid, None)
    else:
        known[uid] = item
    return Change(object=item, deleted=deleted)


def _closing(events: Any) -> AbstractAsyncContextManager[Any]:
    """Ends the stream with the block. What an `Api` gives is a generator, although its type promises less."""
    return cast("AbstractAsyncContextManager[Any]", aclosing(events))
