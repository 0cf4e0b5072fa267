"""The caches of one program. Each resource is watched once, however many components read it."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

from vcbatch.api.resources import Resource
from vcbatch.hosting.supervise import Part
from vcbatch.interfaces.api import Api
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.caches.watch import OWN, Patience, Reflector
from vcbatch.runtime.metrics.meter import Meter, NoMeter

T = TypeVar("T")


class Informers:
    """Creates caches and keeps them equal to the server by a list and a watch.

    A resource read as two models has two caches: the scheduler's model of a PodGroup omits the fields that the
    controllers write.
    """

    def __init__(self, api: Api, *, clock: Clock, random: Random, meter: Meter | None = None) -> None:
        self._api = api
        self._clock = clock
        self._random = random
        self._meter = meter or NoMeter()
        self._reflectors: dict[tuple[Resource, type[Any]], Reflector[Any]] = {}

    def follow(self, resource: Resource, model: type[T] = dict, *, optional: bool = False) -> Cache[T]:
        """The cache of that resource with that model. It stays empty as long as the server doesn't know an `optional`
        resource."""
        key = (resource, model)
        if key not in self._reflectors:
            cache: Cache[T] = Cache(model=model)
            self._reflectors[key] = Reflector(
                self._api,
                resource,
                cache,
                clock=self._clock,
                random=self._random,
                on_relist=lambda changed: self._meter.count("relists", resource=resource.plural),
                optional=optional,
            )
        elif not optional:
            self._reflectors[key].optional = False
        return self._reflectors[key].cache

    def parts(self) -> list[Part]:
        """The background tasks that keep the caches up to date."""
        return [
            Part(name=f"following {resource.plural} as {model.__name__}", run=reflector.run)
            for (resource, model), reflector in self._reflectors.items()
        ]

    def error(self, patience: Patience = OWN) -> str:
        """Which caches may be out of date and why, "" where none is."""
        return "; ".join(filter(None, (reflector.error(patience) for reflector in list(self._reflectors.values()))))

    async def synced(self) -> None:
        """Return once every cache has its first list."""
        await asyncio.gather(*(reflector.synced.wait() for reflector in self._reflectors.values()))
