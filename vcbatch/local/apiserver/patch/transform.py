"""A PATCH request as a function of the stored object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from vcbatch.interfaces.api import PatchKind
from vcbatch.local.apiserver.apierrors import (
    StatusError,
    bad_request,
    entity_too_large,
    unprocessable,
    unsupported_media_type,
)
from vcbatch.local.apiserver.gojson import kind_of, syntax_error
from vcbatch.local.apiserver.patch import json_patch
from vcbatch.local.apiserver.patch.merge import merge
from vcbatch.local.apiserver.patch.strategic import go_map, strategic_merge
from vcbatch.local.apiserver.registry import Served
from vcbatch.local.apiserver.request import check_depth, duplicates

Json = dict[str, Any]

_METADATA_ORDER = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
)


@dataclass(frozen=True, slots=True)
class Patch:
    """A decoded patch. `errors`: the errors of strict decoding in its text (duplicate keys)."""

    kind: PatchKind
    value: Any
    errors: Sequence[str] = ()
    size: int = 0
    """The size of its text in bytes."""

    def apply(self, old: Json, entry: Served) -> tuple[Json, str]:
        """The patched object, and its form in the message of a refusal. Neither `old` nor the patch is changed."""
        if self.kind is PatchKind.JSON:
            try:
                patched = json_patch.apply(old, self.value)
            except json_patch.TooExpensive as error:
                raise entity_too_large(str(error)) from None
            except json_patch.JsonPatchError:
                raise unprocessable() from None
            if not isinstance(patched, dict):
                raise unprocessable()
            check_depth(patched, what="the patched object")
        elif self.kind is PatchKind.MERGE:
            patched = merge(old, self.value)
        else:
            patched = strategic_merge(old, self.value, entry.merge_keys)
            return patched, go_map(self.value)
        return patched, _shown(patched, self.value if self.kind is PatchKind.MERGE else {})


def _shown(obj: Json, patch: Json) -> str:
    """The patched object as Go prints it: sorted keys in patched maps, metadata in the order of its type."""
    if "metadata" in obj and "metadata" not in patch and isinstance(obj["metadata"], dict):
        metadata = obj["metadata"]
        known = {key: metadata[key] for key in _METADATA_ORDER if key in metadata}
        obj = {**obj, "metadata": {**known, **{k: v for k, v in metadata.items() if k not in known}}}
    return msgspec.json.encode(_sorted_along(obj, patch)).decode()


def _sorted_along(obj: Any, patch: Any) -> Any:
    if not isinstance(obj, dict) or not isinstance(patch, dict):
        return obj
    return {key: _sorted_along(obj[key], patch.get(key)) for key in sorted(obj)}


def accepted_types(entry: Served) -> list[str]:
    kinds = [PatchKind.JSON, PatchKind.MERGE]
    if entry.strategic:
        kinds.append(PatchKind.STRATEGIC)
    return [*kinds]


def patch_kind(content_type: str, entry: Served) -> PatchKind:
    """The patch's format by its media type; 415 with Kubernetes' message."""
    media = content_type.partition(";")[0].strip().lower()
    try:
        kind = PatchKind(media)
    except ValueError:
        if entry.generated:
            raise unsupported_media_type([*accepted_types(entry), PatchKind.APPLY]) from None
        raise StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {"": None}) from None
    if kind is not PatchKind.APPLY and kind not in accepted_types(entry):
        raise unsupported_media_type([*accepted_types(entry), PatchKind.APPLY])
    return kind


def parse_patch(kind: PatchKind, body: bytes) -> Patch:
    """Decode a PATCH body; 400 with Kubernetes' message."""
    prefix = "" if kind is PatchKind.STRATEGIC else "error decoding patch: "
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_request(prefix + (syntax_error(body) or str(error))) from None
    check_depth(value, text=body)
    if value is None and kind is PatchKind.MERGE:
        raise bad_request("Invalid JSON Patch")
    if kind is PatchKind.JSON:
        return Patch(kind, _operations(value), size=len(body))
    if not isinstance(value, dict):
        raise bad_request(
            f"{prefix}json: cannot unmarshal {kind_of(value)} into Go value of type map[string]interface {{}}"
        )
    errors = duplicates(body) if msgspec.json.encode(value) != body else ()
    return Patch(kind, value, errors, len(body))


def _operations(value: Any) -> list[Any]:
    """A JSON patch whose operations have the right types; 400, and 413 for too many."""
    target = "Go value of type []handlers.jsonPatchOp"
    if not isinstance(value, list):
        raise bad_request(f"error decoding patch: json: cannot unmarshal {kind_of(value)} into {target}")
    if len(value) > json_patch.MAXIMUM_OPERATIONS:
        raise entity_too_large(
            f"The allowed maximum operations in a JSON patch is {json_patch.MAXIMUM_OPERATIONS}, got {len(value)}"
        )
    for operation in value:
        if not isinstance(operation, dict):
            target = "Go value of type handlers.jsonPatchOp"
            raise bad_request(f"error decoding patch: json: cannot unmarshal {kind_of(operation)} into {target}")
        for name in ("op", "from", "path"):
            if not isinstance(operation.get(name, ""), str):
                raise bad_request(
                    f"error decoding patch: json: cannot unmarshal {kind_of(operation[name])} into "
                    f"Go struct field jsonPatchOp.{name} of type string"
                )
    return value
