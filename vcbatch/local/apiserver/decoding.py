"""Decodes the objects that clients, patches and webhooks send: version and kind, types of fields, unknown fields.
Errors have Kubernetes' messages.

Source: k8s.io/apiserver `pkg/endpoints/handlers`, k8s.io/apimachinery `pkg/runtime`.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import msgspec

from vcbatch.interfaces.api import PatchKind
from vcbatch.local.apiserver import metadata as rules
from vcbatch.local.apiserver.apierrors import (
    DecodeError,
    StatusError,
    bad_request,
    internal,
    invalid,
    invalid_value,
)
from vcbatch.local.apiserver.patch.transform import Patch
from vcbatch.local.apiserver.registry import RequestContext, Served
from vcbatch.local.apiserver.request import Body, missing_kind, summary
from vcbatch.local.apiserver.schema.builtin import decode_as
from vcbatch.local.apiserver.schema.types import kind_struct
from vcbatch.local.apiserver.served import ServedSet

Json = dict[str, Any]

_EVERYWHERE = frozenset(
    {"CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "Status", "UpdateOptions",
     "WatchEvent"}
)  # fmt: skip
_SCHEME = 'in scheme "pkg/runtime/scheme.go:111"'


class Decoder:
    """Decodes objects of the `served` kinds."""

    def __init__(self, served: ServedSet) -> None:
        self._served = served

    def decode(self, entry: Served, body: Body, ctx: RequestContext) -> None:
        """Check version and kind, types and unknown fields of a whole object that a client sent."""
        kind, version = entry.resource.kind, entry.resource.version
        prefix = f'{kind} in version "{version}" cannot be handled as a {kind}: '
        obj: Json = body.value
        self._check_type(entry, obj, ctx, raw=body.raw)
        try:
            found = self._fields(entry, obj, body.errors, ctx)
        except DecodeError as error:
            raise bad_request(prefix + str(error)) from None
        if found:
            raise bad_request(f"{prefix}strict decoding error: {', '.join(found)}")

    @staticmethod
    def decode_subresource(obj: Json, *, group: str, version: str, kind: str) -> None:
        """Check the types of the body of a subresource, such as a Binding or an Eviction; 400. Unknown fields are left
        to its handler."""
        known = kind_struct(api_version=f"{group}/{version}".removeprefix("/"), kind=kind)
        try:
            if known is not None:
                decode_as(known, copy.deepcopy(obj))
            rules.check_types(obj, built_in=True)
        except DecodeError as error:
            raise bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {error}') from None

    def _fields(
        self, entry: Served, obj: Json, errors: Sequence[str], ctx: RequestContext, *, ordered: bool = False
    ) -> list[str]:
        """The errors that refuse the request; others become warnings, depending on the request's fieldValidation."""
        unknown = entry.strategy.fields(obj, ctx)
        if ordered:
            unknown.sort()
        if entry.generated:
            # Kubernetes reads the metadata of a custom object first.
            unknown.sort(key=lambda error: not error.startswith('unknown field "metadata.'))
        found = [*errors, *unknown]
        rules.check_types(obj, built_in=not entry.generated)
        if ctx.field_validation == "Strict":
            return found
        if ctx.field_validation == "Warn":
            known = set(ctx.warnings)
            ctx.warnings.extend(error for error in found if error not in known)
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
        served = self._served
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

    def decode_patched(self, entry: Served, obj: Json, shown: str, patch: Patch, ctx: RequestContext) -> None:
        """Check a patched object. One that doesn't decode is an error of the patch: 422 with the patched object."""
        if not entry.generated:
            obj.setdefault("kind", entry.resource.kind)
            obj.setdefault("apiVersion", entry.resource.api_version)
        resource = entry.resource
        if entry.generated and obj.get("apiVersion") not in (None, "", resource.api_version):
            detail = f"must be {resource.api_version}"
            errors = [invalid_value("apiVersion", obj["apiVersion"], detail)]
            kind, metadata = obj.get("kind") or resource.kind, obj.get("metadata")
            name = metadata.get("name", "") if isinstance(metadata, dict) else ""
            raise invalid(group=resource.group, kind=kind, name=name, errors=errors)
        if not entry.generated:
            self._keep_type(entry, obj, shown, patch)
        self._check_type(entry, obj, ctx)
        try:
            # A patched object is decoded with its keys in order.
            found = self._fields(entry, obj, patch.errors, ctx, ordered=True)
            message = f"strict decoding error: {', '.join(found)}" if found else ""
        except DecodeError as error:
            message = str(error)
        if message:
            raise invalid(group="", kind="", name="", errors=[invalid_value("patch", shown, message)])

    def _keep_type(self, entry: Served, obj: Json, shown: str, patch: Patch) -> None:
        """Check that a patch doesn't change the kind of an object: the result of a strategic one has this type whatever
        it says, the others result in a text that is decoded again."""
        resource = entry.resource
        kind, version = obj.get("kind"), obj.get("apiVersion")
        if (kind, version) == (resource.kind, resource.api_version):
            return
        if patch.kind is PatchKind.STRATEGIC:
            obj.update(kind=resource.kind, apiVersion=resource.api_version)
        elif isinstance(kind, str) and isinstance(version, str):
            error = f"{version}, Kind={kind} is not {resource.api_version}, Kind={resource.kind}"
            raise invalid(group="", kind="", name="", errors=[invalid_value("patch", shown, error)])

    @staticmethod
    def reread(entry: Served, obj: Json, ctx: RequestContext) -> Json:
        """Decode an object that webhooks changed, as if a client had sent it. Raises 500, as Kubernetes does."""
        obj.setdefault("metadata", {})
        resource = entry.resource
        group, _, version = str(obj.get("apiVersion")).rpartition("/")
        if (group, version, obj.get("kind")) != (resource.group, resource.version, resource.kind):
            own = f"{(resource.group or 'core').partition('.')[0]}.{resource.kind}"
            raise StatusError(500, "", f"converting ({version}.{obj.get('kind')}) to ({own}): unknown conversion")
        try:
            entry.strategy.fields(obj, ctx)
            rules.check_types(obj, built_in=not entry.generated)
        except (DecodeError, StatusError) as error:
            raise internal(str(error)) from error
        return obj
