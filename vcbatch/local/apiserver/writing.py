"""Create, update and patch: the order of steps of k8s.io/apiserver `pkg/registry/generic/registry/store.go`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from vcbatch.api.name_rules import path_segment
from vcbatch.api.resources import NAMESPACES
from vcbatch.local.apiserver import apply
from vcbatch.local.apiserver import metadata as rules
from vcbatch.local.apiserver.engine import Engine
from vcbatch.local.apiserver.errors import (
    DecodeError,
    FieldError,
    StatusError,
    already_exists,
    bad_request,
    conflict,
    invalid,
    invalid_value,
)
from vcbatch.local.apiserver.patch.transform import Patch
from vcbatch.local.apiserver.record import Record
from vcbatch.local.apiserver.registry import RequestContext, Served
from vcbatch.local.apiserver.request import Body, missing_kind, summary
from vcbatch.seams.api import PatchKind

Json = dict[str, Any]

encode_object = msgspec.json.Encoder().encode

OTHER_NAMESPACE = "the namespace of the provided object does not match the namespace sent on the request"
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
_EVERYWHERE = frozenset(
    {"CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "Status", "UpdateOptions",
     "WatchEvent"}
)  # fmt: skip
_SCHEME = 'in scheme "pkg/runtime/scheme.go:111"'


class Writer:
    """Carries out writes on an `Engine`. Nothing here waits; callers wait for `store.settled()` before they answer."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    # -- create -----------------------------------------------------------------------------------------------------

    def create(self, entry: Served, body: Body, ctx: RequestContext, *, managed: Sequence[Json] = ()) -> Record:
        """Store a new object, with the `managed` fields of an apply; answers what is stored."""
        obj: Json = body.value
        engine = self._engine
        self.decode(entry, body, ctx)
        metadata: Json = obj["metadata"]
        self._place(entry, metadata, ctx)
        prefix = metadata.get("generateName", "")
        engine.require_namespace(entry, ctx, metadata.get("name") or prefix)
        if not metadata.get("name") and prefix:
            metadata["name"] = rules.generated_name(prefix, engine.random.random)
        if metadata.get("resourceVersion") and not ctx.dry_run:  # It is etcd that refuses it.
            raise StatusError(500, "", "resourceVersion should not be set on objects to be created")
        for key in ("deletionTimestamp", "deletionGracePeriodSeconds"):
            metadata.pop(key, None)
        if metadata.get("generation", 0) >= 0:
            metadata.pop("generation", None)
        metadata["uid"] = engine.random.uid()
        metadata["creationTimestamp"] = rules.timestamp(ctx.now)
        rules.tidy(metadata)
        if entry.strategy.changes_generation(obj, None):
            metadata["generation"] = 1
        entry.strategy.default(obj, None, ctx)
        engine.admit(engine.admission.mutate, "CREATE", entry, obj, None, ctx)
        entry.strategy.default(obj, None, ctx)
        self._check_create(entry, obj, ctx)
        engine.admit(engine.admission.validate, "CREATE", entry, obj, None, ctx)
        name = metadata["name"]
        if engine.store.get(entry.stored_as, ctx.namespace if entry.resource.namespaced else None, name):
            raise already_exists(group=entry.resource.group, plural=entry.resource.plural, name=name)
        if managed:
            metadata["managedFields"] = list(managed)
        return engine.write(entry, obj, None, ctx)

    def decode(self, entry: Served, body: Body, ctx: RequestContext) -> None:
        """Check version and kind, types and unknown fields of a whole object that a client sent."""
        kind, version = entry.resource.kind, entry.resource.version
        prefix = f'{kind} in version "{version}" cannot be handled as a {kind}: '
        obj: Json = body.value
        self._check_type(entry, obj, ctx, raw=body.raw)
        try:
            found = self._fields(entry, obj, body.faults, ctx)
        except DecodeError as error:
            raise bad_request(prefix + str(error)) from None
        if found:
            raise bad_request(f"{prefix}strict decoding error: {', '.join(found)}")

    def _fields(
        self, entry: Served, obj: Json, faults: Sequence[str], ctx: RequestContext, *, ordered: bool = False
    ) -> list[str]:
        """The faults that refuse the request; others become warnings as the request's fieldValidation says."""
        unknown = entry.strategy.fields(obj, ctx)
        if ordered:
            unknown.sort()
        if entry.generated:
            # Kubernetes reads the metadata of a custom object first.
            unknown.sort(key=lambda fault: not fault.startswith('unknown field "metadata.'))
        found = [*faults, *unknown]
        rules.check_types(obj, built_in=not entry.generated)
        if ctx.field_validation == "Strict":
            return found
        if ctx.field_validation == "Warn":
            ctx.warnings.extend(fault for fault in found if fault not in ctx.warnings)
        return []

    def _check_type(self, entry: Served, obj: Json, ctx: RequestContext, *, raw: bytes = b"") -> None:
        resource = entry.resource
        kind, api_version = obj.get("kind"), obj.get("apiVersion")
        if entry.generated:
            self._check_custom_type(entry, obj, ctx, raw)
            return
        for name, value in (("kind", kind), ("apiVersion", api_version)):
            if value is not None and not isinstance(value, str):
                raise bad_request(f"{resource.kind} has a {name} that is no string")
        obj["kind"] = kind = kind or resource.kind
        obj["apiVersion"] = api_version = api_version or resource.api_version
        if kind == resource.kind and api_version == resource.api_version:
            return
        if api_version.count("/") > 1:
            raise bad_request(
                f"the object provided is unrecognized (must be of type {resource.kind}): "
                f"unexpected GroupVersion string: {api_version} ({summary(raw)})"
            )
        version = api_version.rpartition("/")[2]
        prefix = f'{kind} in version "{version}" cannot be handled as a {resource.kind}: '
        if not self._registered(api_version, kind):
            raise bad_request(f'{prefix}no kind "{kind}" is registered for version "{api_version}" {_SCHEME}')
        internal = (resource.group or "core").partition(".")[0]
        raise bad_request(f"{prefix}converting ({version}.{kind}) to ({internal}.{resource.kind}): unknown conversion")

    def _registered(self, api_version: str, kind: str) -> bool:
        """Whether Kubernetes knows such a kind: served ones, their lists, and those that every version has."""
        served = self._engine.served
        if served.of_kind(api_version, kind) or served.of_kind(api_version, kind.removesuffix("List")):
            return True
        return kind in _EVERYWHERE and any(entry.resource.api_version == api_version for entry in served.all)

    def _check_custom_type(self, entry: Served, obj: Json, ctx: RequestContext, raw: bytes) -> None:
        resource = entry.resource
        if not isinstance(obj.get("kind"), str) or not obj["kind"]:
            raise missing_kind(resource.kind, raw or msgspec.json.encode(obj))
        given = obj.get("apiVersion") or ""
        if given != resource.api_version:
            # No schema is known for that version, so all but the common fields are unknown.
            extra = [key for key in obj if key not in ("apiVersion", "kind", "metadata")]
            if ctx.field_validation == "Warn":
                ctx.warnings.extend(f'unknown field "{key}"' for key in extra)
            raise bad_request(
                f"the API version in the data ({given}) does not match the expected API version "
                f"({resource.api_version})"
            )

    @staticmethod
    def _place(entry: Served, metadata: Json, ctx: RequestContext) -> None:
        """The namespace of the request becomes the object's; another one is refused."""
        namespace = metadata.get("namespace", "")
        if not entry.resource.namespaced:
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
                invalid_value("metadata.name", metadata["name"], fault) for fault in path_segment(metadata["name"])
            ]
        self._refuse(entry, obj, errors)

    @staticmethod
    def _refuse(entry: Served, obj: Json, errors: Sequence[FieldError]) -> None:
        if errors:
            name = obj["metadata"].get("name", "")
            kind = obj.get("kind") or entry.resource.kind
            raise invalid(group=entry.resource.group, kind=kind, name=name, errors=errors)

    # -- update -----------------------------------------------------------------------------------------------------

    def update(self, entry: Served, name: str, body: Body, ctx: RequestContext) -> tuple[Record, bool]:
        """PUT. Answers what is stored and whether it was created."""
        obj: Json = body.value
        self.decode(entry, body, ctx)
        self._check_address(entry, name, obj["metadata"], ctx)
        if entry.create_on_update and not ctx.subresource:
            namespace = ctx.namespace if entry.resource.namespaced else None
            if self._engine.store.get(entry.stored_as, namespace, name) is None:
                obj["metadata"].pop("resourceVersion", None)
                return self.create(entry, body, ctx), True
        record = self._engine.find(entry, ctx.namespace, name)
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
        if uid and uid != record.uid:
            raise self._wrong_uid(entry, record, uid)
        return self.replace(entry, record, self._engine.decode(entry, record), obj, ctx), False

    def patch(self, entry: Served, name: str, patch: Patch, ctx: RequestContext) -> Record:
        record = self._engine.find(entry, ctx.namespace, name)
        old = self._engine.decode(entry, record)
        obj, shown = patch.apply(self._engine.decode(entry, record), entry)
        self._decode_patched(entry, obj, shown, patch, ctx)
        self._check_address(entry, name, obj["metadata"], ctx)
        return self.replace(entry, record, old, obj, ctx)

    def apply(self, entry: Served, name: str, body: Body, ctx: RequestContext, *, force: bool) -> tuple[Record, bool]:
        """Server-side apply. Answers what is stored and whether it was created."""
        config: Json = body.value
        apply.check_config(config, body.faults, entry=entry, ctx=ctx)
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
            return self.create(entry, Body(config), ctx, managed=managed), True
        record = self._engine.find(entry, ctx.namespace, name)
        old = self._engine.decode(entry, record)
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
        self.decode(entry, Body(obj), ctx)
        return self.replace(entry, record, old, obj, ctx, managed=applied.managed), False

    def _decode_patched(self, entry: Served, obj: Json, shown: str, patch: Patch, ctx: RequestContext) -> None:
        """A patched object that doesn't decode is the patch's fault: 422 with what came out."""
        if not entry.generated:
            obj.setdefault("kind", entry.resource.kind)
            obj.setdefault("apiVersion", entry.resource.api_version)
        resource = entry.resource
        if entry.generated and obj.get("apiVersion") not in (None, "", resource.api_version):
            detail = f"must be {resource.api_version}"
            self._refuse(entry, obj, [invalid_value("apiVersion", obj["apiVersion"], detail)])
        if not entry.generated:
            self._keep_type(entry, obj, shown, patch)
        self._check_type(entry, obj, ctx)
        try:
            # What a patch makes is read with its keys in order.
            found = self._fields(entry, obj, patch.faults, ctx, ordered=True)
            message = f"strict decoding error: {', '.join(found)}" if found else ""
        except DecodeError as error:
            message = str(error)
        if message:
            raise invalid(group="", kind="", name="", errors=[invalid_value("patch", shown, message)])

    def _keep_type(self, entry: Served, obj: Json, shown: str, patch: Patch) -> None:
        """A patch can't make another kind of an object: a strategic one is of this type whatever it says, the others
        make a text that is read again."""
        resource = entry.resource
        kind, version = obj.get("kind"), obj.get("apiVersion")
        if (kind, version) == (resource.kind, resource.api_version):
            return
        if patch.kind is PatchKind.STRATEGIC:
            obj.update(kind=resource.kind, apiVersion=resource.api_version)
        elif isinstance(kind, str) and isinstance(version, str):
            fault = f"{version}, Kind={kind} is not {resource.api_version}, Kind={resource.kind}"
            raise invalid(group="", kind="", name="", errors=[invalid_value("patch", shown, fault)])

    @staticmethod
    def _check_address(entry: Served, name: str, metadata: Json, ctx: RequestContext) -> None:
        if not metadata.get("name"):
            raise bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
        if metadata["name"] != name:
            raise bad_request(
                f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})"
            )
        namespace = metadata.get("namespace", "")
        if entry.resource.namespaced and namespace and namespace != ctx.namespace:
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

    def replace(
        self,
        entry: Served,
        record: Record,
        old: Json,
        obj: Json,
        ctx: RequestContext,
        *,
        managed: Sequence[Json] | None = None,
    ) -> Record:
        """Write `obj` over `old` (decoded from `record`) after all checks; nothing is written if nothing changed.
        An object whose last finalizer goes while it is being deleted is removed. `managed`: the fields' managers after
        an apply; any other write makes its writer the manager of what it changed."""
        engine = self._engine
        claims = apply.given_claims(obj, old)
        metadata: Json = obj["metadata"]
        version = metadata.get("resourceVersion", "")
        if version and not version.isdecimal():
            raise StatusError(500, "", f'strconv.ParseUint: parsing "{version}": invalid syntax')
        if version and version != str(record.version):
            raise conflict(group=entry.resource.group, plural=entry.resource.plural, name=record.name, message=MODIFIED)
        metadata["resourceVersion"] = str(record.version)
        if entry.generated and ctx.subresource == "status":
            obj["metadata"] = metadata = dict(old["metadata"])
        rules.keep_system_fields(metadata, old["metadata"])
        rules.tidy(metadata)
        entry.strategy.default(obj, old, ctx)
        engine.admit(engine.admission.mutate, "UPDATE", entry, obj, old, ctx)
        entry.strategy.default(obj, old, ctx)
        if entry.strategy.changes_generation(obj, old):
            metadata["generation"] = old["metadata"].get("generation", 0) + 1
        self._check_update(entry, obj, old, ctx)
        engine.admit(engine.admission.validate, "UPDATE", entry, obj, old, ctx)
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
        """Write what passed the checks: not at all where it is the same, as a deletion where it is the end."""
        if _same(obj, old):
            return record
        if _finished(entry, obj):
            if ctx.dry_run:
                return self._engine.write(entry, obj, record, ctx)
            final = self._engine.stored_form(entry, obj)
            shown = encode_object({**final, "metadata": {**final["metadata"], "resourceVersion": str(record.version)}})
            # Watchers see the object as it was, with the version of its end, and who ended it what he made of it.
            removed = self._engine.store.remove(entry.stored_as, record)
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
    """Equal as JSON: Python alone would take true for 1."""
    if left != right:
        return False
    encode = msgspec.json.Encoder(order="sorted").encode
    return encode(left) == encode(right)


def _finished(entry: Served, obj: Json) -> bool:
    """Whether an object that is being deleted has nothing left to wait for. A namespace waits for its contents too."""
    metadata = obj["metadata"]
    held = metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds")
    if entry.resource == NAMESPACES:
        held = held or obj.get("spec", {}).get("finalizers")
    return "deletionTimestamp" in metadata and not held
