"""The operations of subresource handlers and of the server's own controllers on stored objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from vcbatch.api.resources import Resource
from vcbatch.local.apiserver.deleting import Deleter, parse_delete_options
from vcbatch.local.apiserver.engine import Engine
from vcbatch.local.apiserver.reading import Reader
from vcbatch.local.apiserver.registry import RequestContext
from vcbatch.local.apiserver.request import Body
from vcbatch.local.apiserver.writing import Writer

Json = dict[str, Any]


class StoreOperations:
    """Implements `registry.Operations`."""

    def __init__(self, engine: Engine, reader: Reader, writer: Writer, deleter: Deleter) -> None:
        self._engine = engine
        self._reader = reader
        self._writer = writer
        self._deleter = deleter

    def now(self) -> datetime:
        return self._engine.now()

    def get(self, resource: Resource, namespace: str | None, name: str) -> Json:
        entry = self._engine.entry(resource)
        return self._engine.decode(entry, self._reader.get(entry, namespace, name))

    def list(self, resource: Resource, namespace: str | None) -> Sequence[Json]:
        self._engine.store.flush()
        return self._engine.listed(resource, namespace)

    async def create(self, resource: Resource, namespace: str | None, obj: Json, ctx: RequestContext) -> Json:
        entry = self._engine.entry(resource)
        record = await self._writer.create(entry, Body(obj), replace(ctx, namespace=namespace, subresource=""))
        await self._engine.store.settled()
        return self._engine.decode(entry, record)

    async def change(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        change: Callable[[Json], None],
        ctx: RequestContext,
    ) -> Json:
        entry = self._engine.entry(resource)
        record = self._writer.change(entry, name, change, replace(ctx, namespace=namespace))
        await self._engine.store.settled()
        return self._engine.decode(entry, record)

    async def delete(
        self, resource: Resource, namespace: str | None, name: str, options: Json, ctx: RequestContext
    ) -> Json:
        entry = self._engine.entry(resource)
        parsed = parse_delete_options(options, {})
        context = replace(
            ctx, namespace=namespace, subresource="", dry_run=ctx.dry_run or parsed.dry_run, unadmitted=True
        )
        record, _ = await self._deleter.delete(entry, name, parsed, context)
        await self._engine.store.settled()
        return self._engine.decode(entry, record)
