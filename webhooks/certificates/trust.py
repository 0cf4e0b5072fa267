"""Our webhook configurations on the cluster, and the authorities in them.

A watch follows them, so that one that was recreated without a bundle gets it at once. Only configurations with the
names of `PATHS` are written, and only `caBundle`.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import copy
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from vcbatch.api.resources import Resource
from vcbatch.interfaces.api import Api, ApiError
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.caches.informers import Informers
from webhooks.certificates.issue import fingerprints
from webhooks.configurations import MUTATING, NAMES, VALIDATING

Json = dict[str, Any]
Seen = tuple[Resource, Json]
log = logging.getLogger(__name__)


class TrustError(Exception):
    """Writing the bundle into a configuration failed; the message names it and the reason."""


class Trust:
    """`changed` is set when a configuration differs from the last write."""

    def __init__(self, api: Api, informers: Informers) -> None:
        self._api = api
        self._informers = informers
        self._caches: dict[Resource, Cache[Json]] = {
            resource: informers.follow(resource) for resource in (MUTATING, VALIDATING)
        }
        self.changed = asyncio.Event()
        for cache in self._caches.values():
            cache.listen(lambda _change: self.changed.set())

    def listen(self, changed: Callable[[], None]) -> None:
        """Also call `changed` when a configuration has changed."""
        for cache in self._caches.values():
            cache.listen(lambda _change: changed())

    @property
    def exist(self) -> bool:
        """Whether any configuration of ours exists, with webhooks or without."""
        return any(self.configuration(resource, name) for resource, names in NAMES.items() for name in names)

    def configuration(self, resource: Resource, name: str) -> Json | None:
        """A configuration in its present state, with webhooks or without."""
        return self._caches[resource].by_key(name)

    def remember(self, resource: Resource, written: Json) -> None:
        """Adopt the object that another part of this process wrote."""
        self._caches[resource].put(written)

    async def synced(self) -> None:
        """Return once the configurations are listed."""
        await self._informers.synced()

    def carries(self, fingerprint: str) -> bool:
        """Whether every webhook of ours has that authority in its bundle."""
        return all(fingerprint in fingerprints(_bundle(webhook)) for webhook in self._webhooks())

    def seen(self) -> Sequence[Seen]:
        """Our configurations in their present state."""
        return list(self._ours())

    async def put(self, bundle: bytes, *, seen: Sequence[Seen]) -> None:
        """Write the bundle into those configurations. `seen` has to be older than the bundle: then older contents are
        replaced by newer ones, and a configuration that has changed since is left for the next check. Raises
        `TrustError` where a write failed, after all of them were tried."""
        wanted, refused = base64.b64encode(bundle).decode(), list[str]()
        for resource, stored in seen:
            if all(webhook["clientConfig"].get("caBundle") == wanted for webhook in stored["webhooks"]):
                continue
            if error := await self._patch(resource, stored, wanted):
                refused.append(error)
        if refused:
            raise TrustError("; ".join(refused))

    async def _patch(self, resource: Resource, stored: Json, wanted: str) -> str:
        name, webhooks = stored["metadata"]["name"], copy.deepcopy(stored["webhooks"])
        for webhook in webhooks:
            webhook["clientConfig"]["caBundle"] = wanted
        # The version is a precondition: a replica that read the Secret earlier doesn't undo a later replica's write.
        patch = {"metadata": {"resourceVersion": stored["metadata"]["resourceVersion"]}, "webhooks": webhooks}
        try:
            self._caches[resource].put(await self._api.patch(resource, name, patch))
        except ApiError as error:
            if error.conflict or error.not_found:
                return ""  # the watch will report the change
            return f"{resource.kind} {name}: {error}"
        log.info("the CA bundle of a webhook configuration was replaced", extra={"configuration": name})
        return ""

    def _ours(self) -> Iterator[Seen]:
        for resource, names in NAMES.items():
            for name in names:
                stored = self._caches[resource].by_key(name)
                if stored is not None and stored.get("webhooks"):
                    yield resource, stored

    def _webhooks(self) -> Iterator[Json]:
        for _, stored in self._ours():
            yield from stored["webhooks"]


def _bundle(webhook: Json) -> bytes:
    try:
        return base64.b64decode(webhook["clientConfig"].get("caBundle") or "", validate=True)
    except (binascii.Error, ValueError):
        return b""
