"""Validation of an applied configuration, before it is merged."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from vcbatch.local.apiserver.apierrors import DecodeError, StatusError, bad_request
from vcbatch.local.apiserver.apply import typed
from vcbatch.local.apiserver.apply.shapes import shape_of
from vcbatch.local.apiserver.registry import Json, RequestContext, Served


def check_config(config: Json, errors: Sequence[str], *, entry: Served, ctx: RequestContext) -> None:
    """Check that `config` is of this resource, has no unknown field and values of the right types, independently of the
    request's fieldValidation, which only applies to the `errors` of its text (duplicate keys). Raises `StatusError`."""
    resource = entry.resource
    kind, api_version = config.get("kind") or "", config.get("apiVersion") or ""
    group, _, version = str(api_version).rpartition("/")
    if kind != resource.kind or api_version != resource.api_version:
        raise bad_request(f"invalid object type: {group}/{version}, Kind={kind}")
    metadata = config.setdefault("metadata", {})
    if not isinstance(metadata, dict):
        raise bad_request("metadata must be an object")
    if metadata.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    unknown = _unknown(config, entry, ctx)
    if unknown:
        where = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {group}/{version}, Kind={kind}"
        listed = unknown[0] if len(unknown) == 1 else "errors:\n" + "\n".join(f"  {text}" for text in unknown)
        raise StatusError(500, "", f"failed to create typed patch object ({where}): {listed}")

    if errors and ctx.field_validation == "Strict":
        lines = "".join(f"\n  {error}" for error in errors)
        raise bad_request(f"error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:{lines}")
    if errors and ctx.field_validation == "Warn":
        ctx.warnings.extend(errors)


def _unknown(config: Json, entry: Served, ctx: RequestContext) -> list[str]:
    mistyped = list(typed.errors(config, shape_of(entry)))
    if mistyped:
        return mistyped
    try:
        found = entry.strategy.fields(copy.deepcopy(config), ctx)
    except DecodeError as error:
        raise bad_request(str(error)) from None
    return [_quoted(error) + ": field not declared in schema" for error in found]


def _quoted(error: str) -> str:
    """The path in an error such as `unknown field "spec.foo"`."""
    return "." + error.partition('"')[2].rpartition('"')[0]
