"""What an applied configuration must be, before it is merged."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from vcbatch.local.apiserver.errors import DecodeError, StatusError, bad_request
from vcbatch.local.apiserver.registry import Json, RequestContext, Served


def check_config(config: Json, faults: Sequence[str], *, entry: Served, ctx: RequestContext) -> None:
    """Whether `config` is of this resource and has no field that the resource doesn't have; `faults` are those of its
    text (duplicate keys). Apply is strict whatever the request's fieldValidation says. Raises `StatusError`."""
    resource = entry.resource
    kind, api_version = config.get("kind") or "", config.get("apiVersion") or ""
    group, _, version = str(api_version).rpartition("/")
    if kind != resource.kind or not isinstance(api_version, str):
        raise bad_request(f"invalid object type: {group}/{version}, Kind={kind}")
    if api_version != resource.api_version:
        raise bad_request(
            f"incorrect version specified in apply patch. Specified patch version: {api_version}, "
            f"expected: {resource.api_version}"
        )
    metadata = config.setdefault("metadata", {})
    if not isinstance(metadata, dict):
        raise bad_request("metadata must be an object")
    if metadata.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    unknown = [*_unknown(config, entry, ctx), *(_quoted(fault) + ": duplicate field" for fault in faults)]
    if unknown:
        where = f"{ctx.namespace or ''}/{metadata.get('name', '')}; {group}/{version}, Kind={kind}"
        listed = unknown[0] if len(unknown) == 1 else "errors:\n" + "\n".join(f"  {text}" for text in unknown)
        raise StatusError(500, "", f"failed to create typed patch object ({where}): {listed}")


def _unknown(config: Json, entry: Served, ctx: RequestContext) -> list[str]:
    try:
        found = entry.strategy.fields(copy.deepcopy(config), ctx)
    except DecodeError as error:
        raise bad_request(str(error)) from None
    return [_quoted(fault) + ": field not declared in schema" for fault in found]


def _quoted(fault: str) -> str:
    """The path in a fault such as `unknown field "spec.foo"`."""
    return "." + fault.partition('"')[2].rpartition('"')[0]
