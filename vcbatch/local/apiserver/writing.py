"""Create, update and patch: the order of steps of k8s.io/apiserver `pkg/registry/generic/registry/store.go`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from vcbatch.api.name_rules import path_segment
from vcbatch.api.resources import NAMESPACES
from vcbatch.local.apiserver import apply
from vcbatch.local.apiserver import metadata as rules
from vcbatch.local.apiserver.apierrors import (
    MODIFIED,
    FieldError,
    StatusError,
    already_exists,
    bad_request,
    conflict,
    invalid,
    invalid_value,
)
from vcbatch.local.apiserver.decoding import Decoder
from vcbatch.local.apiserver.engine import Engine
from vcbatch.local.apiserver.expressions import TooLong
from vcbatch.local.apiserver.offload import LARGE
from vcbatch.local.apiserver.patch.transform import Patch
from vcbatch.local.apiserver.record import Record
from vcbatch.local.apiserver.registry import RequestContext, Served
from vcbatch.local.apiserver.request import Body

Json = dict[str, Any]

encode_object = msgspec.json.Encoder().encode

OTHER_NAMESPACE = "the namespace of the provided object does not match the namespace sent on the request"
_MOST_TRIES = 5
"""How often a write is retried because another one was stored while webhooks were called; as a real server's
patches."""

T = TypeVar("T")
Made = tuple[Json, Sequence[Json] | None]
"""An object that replaces the stored one, and the managers of its fields after an apply."""


class Writer:
    """Executes writes on an `Engine`. Waits for webhooks only: after their last response no other write runs in
    between. Callers wait for `store.settled()` before they answer."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._decoder = Decoder(engine.served)

    # -- create -----------------------------------------------------------------------------------------------------

    async def create(self, entry: Served, body: Body, ctx: RequestContext, *, managed: Sequence[Json] = ()) -> Record:
        """Store a new object, with the `managed` fields of an apply; returns the stored record."""
        obj: Json = body.value
        engine = self._engine
        await self._at_length(len(body.raw), lambda ctx: self._decoder.decode(entry, body, ctx), ctx)
        metadata: Json = obj["metadata"]
        self._place(entry, metadata, ctx)
        engine.require_namespace(entry, ctx, metadata.get("name") or metadata.get("generateName", ""))
        if metadata.get("resourceVersion") and not ctx.dry_run:  # in Kubernetes, etcd refuses it
            raise StatusError(500, "", "resourceVersion should not be set on objects to be created")
        self._wipe(metadata)
        entry.strategy.default(obj, None, ctx)
        changed = await engine.mutate("CREATE", entry, obj, None, ctx)
        if changed is not None and changed is not obj:
            obj = self._decoder.reread(entry, changed, ctx)
            metadata = obj["metadata"]
            self._place(entry, metadata, ctx)
        self._fill(entry, obj, ctx)
        entry.strategy.default(obj, None, ctx)
        await self._at_length(len(body.raw), lambda ctx: self._check_create(entry, obj, ctx), ctx)
        await engine.validate("CREATE", entry, obj, None, ctx)
        entry.strategy.admit_create(obj, ctx)
        name = metadata["name"]
        if engine.store.get(entry.stored_as, ctx.namespace if entry.resource.namespaced else None, name):
            raise already_exists(group=entry.resource.group, plural=entry.resource.plural, name=name)
        if managed:
            metadata["managedFields"] = list(managed)
        return engine.write(entry, obj, None, ctx)

    async def _at_length(self, size: int, work: Callable[[RequestContext], T], ctx: RequestContext) -> T:
        """Run the work, whose duration grows with `size`, in bytes; off the event loop where that is long. Other writes
        may run meanwhile."""
        if size < LARGE:
            try:
                return work(ctx)
            except TooLong:
                pass
        offload = self._engine.offload
        context = offload.context(ctx)
        return await offload.run(lambda: work(context))

    @staticmethod
    def _wipe(metadata: Json) -> None:
        """Remove the fields that a client can't set on a new object."""
        for key in ("deletionTimestamp", "deletionGracePeriodSeconds", "uid", "creationTimestamp", "selfLink"):
            metadata.pop(key, None)
        if metadata.get("generation", 0) >= 0:
            metadata.pop("generation", None)
        rules.tidy(metadata)

    def _fill(self, entry: Served, obj: Json, ctx: RequestContext) -> None:
        """Set the server's fields of a new object."""
        metadata: Json = obj["metadata"]
        self._wipe(metadata)
        prefix = metadata.get("generateName", "")
        if not metadata.get("name") and prefix:
            metadata["name"] = rules.generated_name(prefix, self._engine.random.random)
        metadata["uid"] = self._engine.random.uid()
        metadata["creationTimestamp"] = rules.timestamp(ctx.now)
        if entry.strategy.changes_generation(obj, None):
            metadata["generation"] = 1

    @staticmethod
    def _place(entry: Served, metadata: Json, ctx: RequestContext) -> None:
        """Set the namespace of the request; another one in the object is refused, and that of a cluster-scoped object
        dropped."""
        namespace = metadata.get("namespace", "")
        if not entry.resource.namespaced:
            metadata.pop("namespace", None)
            return
        if namespace and namespace != ctx.namespace:
            raise bad_request(OTHER_NAMESPACE)
        metadata["namespace"] = ctx.namespace

    def _check_create(self, entry: Served, obj: Json, ctx: RequestContext) -> None:
        metadata = obj["metadata"]
        errors = rules.validate(
            metadata, namespaced=entry.resource.namespaced, rule=entry.name_rule, built_in=not entry.generated
        )
        errors += entry.strategy.validate(obj, None, ctx)
        if not errors:
            errors += [
                invalid_value("metadata.name", metadata["name"], error) for error in path_segment(metadata["name"])
            ]
        self._refuse(entry, obj, errors)

    @staticmethod
    def _refuse(entry: Served, obj: Json, errors: Sequence[FieldError]) -> None:
        if errors:
            name = obj["metadata"].get("name", "")
            kind = obj.get("kind") or entry.resource.kind
            raise invalid(group=entry.resource.group, kind=kind, name=name, errors=errors)

    # -- update -----------------------------------------------------------------------------------------------------

    async def update(self, entry: Served, name: str, body: Body, ctx: RequestContext) -> tuple[Record, bool]:
        """PUT. Returns the stored record and whether it was created."""
        obj: Json = body.value
        await self._at_length(len(body.raw), lambda ctx: self._decoder.decode(entry, body, ctx), ctx)
        self._check_address(entry, name, obj["metadata"], ctx)
        if entry.create_on_update and not ctx.subresource:
            namespace = ctx.namespace if entry.resource.namespaced else None
            if self._engine.store.get(entry.stored_as, namespace, name) is None:
                obj["metadata"].pop("resourceVersion", None)
                return await self.create(entry, body, ctx), True
        self._engine.find(entry, ctx.namespace, name)
        version = obj["metadata"].get("resourceVersion", "")
        if not version and not entry.unconditional_update:
            raise invalid(
                group=entry.resource.group,
                kind=entry.resource.plural,
                name=name,
                errors=[
                    FieldError(
                        reason="FieldValueInvalid",
                        field="metadata.resourceVersion",
                        message="Invalid value: 0: must be specified for an update",
                    )
                ],
            )
        uid = obj["metadata"].get("uid", "")
        self._place(entry, obj["metadata"], ctx)
        sent = encode_object(obj)

        def make(record: Record, _ctx: RequestContext) -> Made:
            if uid and uid != record.uid:
                raise self._wrong_uid(entry, record, uid)
            return msgspec.json.decode(sent), None

        return await self.replace(entry, name, make, ctx, size=len(sent)), False

    async def patch(self, entry: Served, name: str, patch: Patch, ctx: RequestContext) -> Record:
        def make(record: Record, ctx: RequestContext) -> Made:
            obj, shown = patch.apply(self._engine.decode(entry, record), entry)
            self._decoder.decode_patched(entry, obj, shown, patch, ctx)
            self._check_address(entry, name, obj["metadata"], ctx)
            return obj, None

        return await self.replace(entry, name, make, ctx, size=patch.size)

    async def apply(
        self, entry: Served, name: str, body: Body, ctx: RequestContext, *, force: bool
    ) -> tuple[Record, bool]:
        """Server-side apply. Returns the stored record and whether it was created."""
        config: Json = body.value
        apply.check_config(config, body.errors, entry=entry, ctx=ctx)
        namespace = ctx.namespace if entry.resource.namespaced else None
        record = self._engine.store.get(entry.stored_as, namespace, name)
        if record is None and not ctx.subresource:
            config["metadata"].setdefault("name", name)
            self._check_address(entry, name, config["metadata"], ctx)
            if uid := config["metadata"].get("uid"):
                message = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                raise conflict(group=entry.resource.group, plural=entry.resource.plural, name=name, message=message)
            config["metadata"].pop("resourceVersion", None)
            managed = apply.created(config=config, entry=entry, manager=ctx.field_manager, now=ctx.now)
            return await self.create(entry, Body(config), ctx, managed=managed), True

        def make(record: Record, ctx: RequestContext) -> Made:
            return self._applied(entry, name, record, config, ctx, force=force)

        return await self.replace(entry, name, make, ctx, size=len(body.raw)), False

    def _applied(
        self, entry: Served, name: str, record: Record, config: Json, ctx: RequestContext, *, force: bool
    ) -> Made:
        applied = apply.apply(
            live=self._engine.decode(entry, record),
            config=config,
            entry=entry,
            manager=ctx.field_manager,
            subresource=ctx.subresource,
            force=force,
            now=ctx.now,
        )
        config["metadata"].setdefault("name", name)
        self._check_address(entry, name, config["metadata"], ctx)
        applied.obj["metadata"]["uid"] = config["metadata"].get("uid") or record.uid
        version = config["metadata"].get("resourceVersion")
        if version and version != str(record.version):
            raise conflict(group=entry.resource.group, plural=entry.resource.plural, name=name, message=MODIFIED)
        obj = applied.obj
        self._decoder.decode(entry, Body(obj), ctx)
        return obj, applied.managed

    @staticmethod
    def _check_address(entry: Served, name: str, metadata: Json, ctx: RequestContext) -> None:
        if not metadata.get("name"):
            raise bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
        if metadata["name"] != name:
            raise bad_request(
                f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})"
            )
        namespace = metadata.get("namespace", "")
        if not entry.resource.namespaced:
            metadata.pop("namespace", None)
        elif namespace and namespace != ctx.namespace:
            raise bad_request(OTHER_NAMESPACE)

    @staticmethod
    def _wrong_uid(entry: Served, record: Record, uid: str) -> StatusError:
        key = "/".join(part for part in ("registry", entry.resource.plural, record.namespace, record.name) if part)
        return conflict(
            group=entry.resource.group,
            plural=entry.resource.plural,
            name=record.name,
            message=f"StorageError: invalid object, Code: 4, Key: /{key}, ResourceVersion: 0, AdditionalErrorMsg: "
            f"Precondition failed: UID in precondition: {uid}, UID in object meta: {record.uid}",
        )

    async def replace(
        self,
        entry: Served,
        name: str,
        make: Callable[[Record, RequestContext], Made],
        ctx: RequestContext,
        *,
        size: int = 0,
    ) -> Record:
        """Write the result of `make` for the stored object, after all checks; nothing is written if nothing changed. An
        object that is being deleted is removed with its last finalizer. Where another write was stored while webhooks
        were called, all is repeated. `size`: the bytes that the client sent."""
        for _ in range(_MOST_TRIES):
            record = self._engine.find(entry, ctx.namespace, name)
            obj, managed = await self._at_length(
                size + len(record.body), lambda ctx, record=record: make(record, ctx), ctx
            )
            written = await self._replace(entry, record, obj, ctx, managed, size=size + len(record.body))
            if written is not None:
                return written
        raise conflict(group=entry.resource.group, plural=entry.resource.plural, name=name, message=MODIFIED)

    async def _replace(
        self,
        entry: Served,
        record: Record,
        obj: Json,
        ctx: RequestContext,
        managed: Sequence[Json] | None,
        *,
        size: int,
    ) -> Record | None:
        """The record after the write; None where `record` isn't the stored one any more. `managed`: the fields'
        managers after an apply; any other write makes its writer the manager of the fields that it changed."""
        engine = self._engine
        old = engine.decode(entry, record)
        claims = apply.given_claims(obj, old)
        metadata: Json = obj["metadata"]
        version = metadata.get("resourceVersion", "")
        if version and not version.isdecimal():
            raise StatusError(500, "", f'strconv.ParseUint: parsing "{version}": invalid syntax')
        if version and version != str(record.version):
            raise conflict(group=entry.resource.group, plural=entry.resource.plural, name=record.name, message=MODIFIED)
        if entry.generated and ctx.subresource == "status":
            obj["metadata"] = dict(old["metadata"])
        entry.strategy.default(obj, old, ctx)
        changed = await engine.mutate("UPDATE", entry, obj, old, ctx)
        if changed is not None and changed is not obj:
            obj = self._decoder.reread(entry, changed, ctx)
        metadata = obj["metadata"]
        metadata["resourceVersion"] = str(record.version)
        rules.keep_system_fields(metadata, old["metadata"])
        rules.tidy(metadata)
        entry.strategy.default(obj, old, ctx)
        if ctx.subresource != "status" and entry.strategy.changes_generation(obj, old):
            metadata["generation"] = old["metadata"].get("generation", 0) + 1
        await self._at_length(size, lambda ctx: self._check_update(entry, obj, old, ctx), ctx)
        await engine.validate("UPDATE", entry, obj, old, ctx)
        if not engine.is_current(entry, record):
            return None
        if managed is None and claims:
            managed = apply.updated(
                obj=obj,
                old=old,
                claims=claims,
                entry=entry,
                manager=ctx.field_manager,
                subresource=ctx.subresource,
                now=ctx.now,
            )
        if managed:
            obj["metadata"]["managedFields"] = list(managed)
        return self.store_change(entry, record, old, obj, ctx)

    def store_change(self, entry: Served, record: Record, old: Json, obj: Json, ctx: RequestContext) -> Record:
        """Write an object that passed the checks: not at all where it is unchanged, as a deletion where its last
        finalizer was removed."""
        if _same(obj, old):
            return record
        if _finished(entry, obj):
            if ctx.dry_run:
                return self._engine.write(entry, obj, record, ctx)
            final = self._engine.stored_form(entry, obj)
            shown = encode_object({**final, "metadata": {**final["metadata"], "resourceVersion": str(record.version)}})
            # Watchers get the former object, with the version of its deletion, and the writer the object that it wrote.
            removed = self._engine.remove(entry, record)
            return msgspec.structs.replace(removed, version=record.version, body=shown)
        return self._engine.write(entry, obj, record, ctx)

    def _check_update(self, entry: Served, obj: Json, old: Json, ctx: RequestContext) -> None:
        metadata = obj["metadata"]
        whole = rules.validate(metadata, namespaced=entry.resource.namespaced, rule=lambda _n, _p: (), built_in=False)
        change = rules.validate_update(metadata, old["metadata"])
        # Kubernetes checks metadata for all kinds and then once more in each kind's own validation.
        errors = [*whole, *change]
        if errors:
            errors += change
            if entry.validates_whole_on_update:
                errors += whole
        if entry.validates_whole_on_update and not entry.generated:
            errors += 2 * _standard_finalizers(metadata, old["metadata"])
        errors += entry.strategy.validate(obj, old, ctx)
        self._refuse(entry, obj, errors)

    def change(self, entry: Served, name: str, edit: Callable[[Json], None], ctx: RequestContext) -> Record:
        """Let `edit` change the stored object, without strategy or validation (see `Operations.change`)."""
        record = self._engine.find(entry, ctx.namespace, name)
        old = self._engine.decode(entry, record)
        obj = self._engine.decode(entry, record)
        edit(obj)
        return self.store_change(entry, record, old, obj, ctx)


def _standard_finalizers(metadata: Json, old: Json) -> list[FieldError]:
    if metadata.get("finalizers") == old.get("finalizers"):
        return []
    errors = rules.validate(metadata, namespaced="namespace" in metadata, rule=lambda _n, _p: (), built_in=True)
    return [error for error in errors if "neither a standard finalizer" in error.message]


def _same(left: Json, right: Json) -> bool:
    """Whether they are equal as JSON: in Python, true is equal to 1."""
    if left != right:
        return False
    encode = msgspec.json.Encoder(order="sorted").encode
    return encode(left) == encode(right)


def _finished(entry: Served, obj: Json) -> bool:
    """Whether an object that is being deleted has nothing left to wait for. A namespace also waits for its contents."""
    metadata = obj["metadata"]
    held = metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds")
    if entry.resource == NAMESPACES:
        held = held or obj.get("spec", {}).get("finalizers")
    return "deletionTimestamp" in metadata and not held
