"""Following objects on a server: the existing ones, then their changes, over every way in which a watch can break.

For the few objects that one user follows, by name or by label. Controllers, which follow whole resources, use
`vcbatch.runtime.caches.watch`.
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
"""Seconds: a watch that ended earlier failed, and is not retried at once."""
PATIENCE = 300.0
"""The seconds for which a server may be unreachable before its error is raised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Generic[T]):
    """An object in its present state or, where it was `deleted`, in its last one."""

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
    """Yield the existing objects, all of them in the first batch (which may be empty), then each change, without end.

    A watch that ends, goes silent or is cut is resumed at its position; where the server has dropped that version
    (410), the objects are listed and compared, deletions included. A deletion precedes the creation of an object of the
    same name. Raises `ApiError` for a rejected request, and for a server that is unreachable for `patience` seconds;
    until then `on_trouble` is called after each failed retry.
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
                    expired = True  # the server answers: no delay is needed, unless the list fails in the same way
                    continue
            elif not error.transient or clock.monotonic() - working >= patience:
                raise
            elif failures and on_trouble is not None:
                on_trouble(error)
            retry_after = error.retry_after
        failures += 1
        await clock.sleep(max(_RECONNECT.delay(failures, random), retry_after or 0.0))


def _compared(known: dict[str, T], items: Iterable[T]) -> Iterator[Change[T]]:
    """The differences between a list and the known objects; `known` is updated."""
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
    """Closes the stream at the end of the block. An `Api` returns a generator, although the type doesn't guarantee
    it."""
    return cast("AbstractAsyncContextManager[Any]", aclosing(events))
