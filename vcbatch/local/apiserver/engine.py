"""The verbs over stored objects, for HTTP and in-process callers alike.

A write reads, decides and writes without waiting, so no other request runs in between; only then does it wait for the
disk. Callers get `Record`s: encoded objects, so that a response needs no second encoding.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from vcbatch.api.resources import NAMESPACES, PODS, Resource
from vcbatch.interfaces import Clock, Random
from vcbatch.local.apiserver.admission import Admission, AdmissionRequest, NoAdmission
from vcbatch.local.apiserver.apierrors import StatusError, not_found
from vcbatch.local.apiserver.kinds.pods.ledger import PodLedger
from vcbatch.local.apiserver.offload import Inline, Offload
from vcbatch.local.apiserver.quota_usage import QuotaUsage
from vcbatch.local.apiserver.record import Record
from vcbatch.local.apiserver.registry import RequestContext, Served
from vcbatch.local.apiserver.served import ServedSet
from vcbatch.local.apiserver.store import Store, check_size

Json = dict[str, Any]


class Engine:
    """The state that all verbs share: the store, the served kinds, the clock, the random source, and admission."""

    def __init__(self, *, store: Store, served: ServedSet, clock: Clock, random: Random) -> None:
        self.store = store
        self.ledger = PodLedger(store)
        self._usage = QuotaUsage(store)
        self.served = served
        self.clock = clock
        self.random = random
        self.admission: Admission = NoAdmission()
        self.offload: Offload = Inline()

    def now(self) -> datetime:
        return self.clock.now()

    def context(
        self,
        *,
        namespace: str | None = None,
        user: str = "system:apiserver",
        groups: Sequence[str] = ("system:masters",),
        subresource: str = "",
        dry_run: bool = False,
        field_validation: str = "Ignore",
        unadmitted: bool = False,
    ) -> RequestContext:
        """A request's context; by default that of the server's own tasks."""
        return RequestContext(
            user=user,
            groups=groups,
            now=self.clock.now(),
            namespace=namespace,
            subresource=subresource,
            dry_run=dry_run,
            field_validation=field_validation,
            field_manager=user,
            unadmitted=unadmitted,
            lookup=self.lookup,
            listed=self.listed,
            used=self.ledger.used,
        )

    def entry(self, resource: Resource) -> Served:
        """The entry that serves `resource`; `StatusError` 404 where there is none."""
        entry = self.served.at(resource.group, resource.version, resource.plural)
        if entry is None:
            raise not_found(group=resource.group, plural=resource.plural, name="")
        return entry

    def lookup(self, resource: Resource, namespace: str | None, name: str) -> Json | None:
        """A stored object in the form that `resource` serves, uncommitted writes included."""
        entry = self.served.at(resource.group, resource.version, resource.plural)
        if entry is None:
            return None
        record = self.store.get(entry.stored_as, namespace if resource.namespaced else None, name)
        return self.decode(entry, record) if record else None

    def listed(self, resource: Resource, namespace: str | None) -> Sequence[Json]:
        entry = self.served.at(resource.group, resource.version, resource.plural)
        if entry is None:
            return ()
        return [self.decode(entry, record) for record in self.store.collection(entry.stored_as).sorted(namespace)]

    def find(self, entry: Served, namespace: str | None, name: str) -> Record:
        """The stored record, uncommitted writes included; `StatusError` 404 where there is none."""
        record = self.store.get(entry.stored_as, namespace if entry.resource.namespaced else None, name)
        if record is None:
            raise not_found(group=entry.resource.group, plural=entry.resource.plural, name=name)
        return record

    @staticmethod
    def decode(entry: Served, record: Record) -> Json:
        """The object in the version that `entry` serves; a fresh copy."""
        obj = record.decode()
        if entry.from_storage:
            return entry.from_storage(obj)
        obj["apiVersion"] = entry.resource.api_version
        return obj

    @staticmethod
    def body(entry: Served, record: Record) -> bytes:
        """The encoded object in the version that `entry` serves, without decoding where that is the stored one."""
        if entry.storage is None and entry.from_storage is None:
            return record.body
        return msgspec.json.encode(Engine.decode(entry, record))

    @staticmethod
    def stored_form(entry: Served, obj: Json) -> Json:
        """The object as it is stored: version and kind first, where lists cut them off."""
        if entry.to_storage:
            obj = entry.to_storage(obj)
        rest = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")}
        kind = obj.get("kind") or entry.resource.kind
        return {"apiVersion": entry.stored_as.api_version, "kind": kind, **rest}

    def write(self, entry: Served, obj: Json, old: Record | None, ctx: RequestContext) -> Record:
        """Write `obj` to the store, or for a dry run only create its record."""
        stored = self.stored_form(entry, obj)
        if ctx.dry_run:
            return dry_record(stored, old)
        namespace: str = stored["metadata"].get("namespace") or ""
        if not self._counts_for_quotas(entry, namespace):
            return self.store.put(entry.stored_as, stored, old)
        before = None if old is None else old.decode()
        return self._usage.kept(namespace, before, stored, lambda: self.store.put(entry.stored_as, stored, old))

    def remove(self, entry: Served, record: Record) -> Record:
        """Remove the object from the store; returns it with the deletion's resourceVersion."""
        if not self._counts_for_quotas(entry, record.namespace):
            return self.store.remove(entry.stored_as, record)
        return self._usage.kept(
            record.namespace, record.decode(), None, lambda: self.store.remove(entry.stored_as, record)
        )

    def _counts_for_quotas(self, entry: Served, namespace: str) -> bool:
        return entry.stored_as == PODS and self._usage.watched(namespace)

    async def mutate(
        self,
        operation: str,
        entry: Served,
        obj: Json | None,
        old: Json | None,
        ctx: RequestContext,
        *,
        named: bool = True,
    ) -> Json | None:
        """The object after mutating admission; `obj` itself where nothing changes it. Other writes may run meanwhile.
        Not `named`: the request was for a whole collection."""
        if ctx.unadmitted:
            return obj
        return await self.admission.mutate(_request(operation, entry, obj, old, ctx, named=named))

    async def validate(
        self,
        operation: str,
        entry: Served,
        obj: Json | None,
        old: Json | None,
        ctx: RequestContext,
        *,
        named: bool = True,
    ) -> None:
        """Run validating admission. Raises `StatusError`. Other writes may run meanwhile."""
        if not ctx.unadmitted:
            await self.admission.validate(_request(operation, entry, obj, old, ctx, named=named))

    def is_current(self, entry: Served, record: Record) -> bool:
        """Whether the object is unchanged since `record` was read."""
        namespace = record.namespace if entry.resource.namespaced else None
        return self.store.get(entry.stored_as, namespace, record.name) is record

    def require_namespace(self, entry: Served, ctx: RequestContext, name: str) -> None:
        """404 for a namespace that doesn't exist, 403 for one that is being deleted: no object may be created there."""
        if not entry.resource.namespaced or not self.served.at("", "v1", "namespaces"):
            return
        namespace = ctx.namespace or ""
        record = self.store.get(NAMESPACES, None, namespace)
        if record is None:
            raise not_found(group="", plural="namespaces", name=namespace)
        if record.deleting:
            resource = entry.resource
            message = f"unable to create new content in namespace {namespace} because it is being terminated"
            qualified = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
            raise StatusError(
                403,
                "Forbidden",
                f'{qualified} "{name}" is forbidden: {message}',
                {
                    key: value
                    for key, value in {
                        "name": name,
                        "group": resource.group,
                        "kind": resource.plural,
                        "causes": [
                            {
                                "reason": "NamespaceTerminating",
                                "message": f"namespace {namespace} is being terminated",
                                "field": "metadata.namespace",
                            }
                        ],
                    }.items()
                    if value
                },
            )


def _request(
    operation: str, entry: Served, obj: Json | None, old: Json | None, ctx: RequestContext, *, named: bool
) -> AdmissionRequest:
    metadata: Json = (obj if obj is not None else old or {}).get("metadata") or {}
    resource = entry.resource
    name = metadata.get("name", "") if named else ""
    return AdmissionRequest(
        operation=operation,
        resource=resource,
        kind=entry.subresource_kinds.get(ctx.subresource) or (resource.group, resource.version, resource.kind),
        subresource=ctx.subresource,
        namespace=name if resource == NAMESPACES else ctx.namespace or "",
        name=name,
        object=obj,
        old=old,
        ctx=ctx,
    )


def dry_record(stored: Json, old: Record | None) -> Record:
    """The response to a dry run: as it would be stored, without a new resourceVersion."""
    metadata = stored["metadata"]
    if old is not None:
        metadata["resourceVersion"] = str(old.version)
    else:
        metadata.pop("resourceVersion", None)
    body = msgspec.json.encode(stored)
    check_size(body, old)
    return Record(
        "",
        metadata.get("namespace", ""),
        metadata.get("name", ""),
        metadata.get("uid", ""),
        old.version if old else 0,
        body,
        metadata.get("labels"),
        (),
        "deletionTimestamp" in metadata,
    )
