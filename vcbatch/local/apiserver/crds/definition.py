"""The CustomResourceDefinition kind itself: its defaults, the fields that an update may change, its columns.

Source: apiextensions-apiserver `pkg/registry/customresourcedefinition` and `pkg/apis/apiextensions/v1/defaults.go`.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

from vcbatch.api.resources import CRDS
from vcbatch.local.apiserver import tables
from vcbatch.local.apiserver.apierrors import FieldError
from vcbatch.local.apiserver.crds.checks import definition_errors, update_errors
from vcbatch.local.apiserver.registry import Json, RequestContext, Served
from vcbatch.local.apiserver.schema import builtin

_TYPE = "apiextensions/v1.CustomResourceDefinition"


class DefinitionStrategy:
    """A `Strategy` for definitions."""

    def fields(self, obj: Json, ctx: RequestContext) -> list[str]:
        return builtin.decode(_TYPE, obj)

    def default(self, obj: Json, old: Json | None, ctx: RequestContext) -> None:
        spec = obj.setdefault("spec", {})
        if ctx.subresource == "status" and old is not None:
            obj["spec"] = copy.deepcopy(old.get("spec") or {})
            return
        names = spec.setdefault("names", {})
        kind = names.get("kind") or ""
        if not names.get("singular") and kind:
            names["singular"] = kind.lower()
        if not names.get("listKind") and kind:
            names["listKind"] = f"{kind}List"
        conversion = spec.setdefault("conversion", {"strategy": "None"})
        webhook = conversion.get("webhook")
        if webhook is not None and not webhook.get("conversionReviewVersions") and webhook.get("clientConfig") is None:
            del conversion["webhook"]
        if old is None:
            obj["status"] = {"acceptedNames": {"kind": "", "plural": ""}, "conditions": None, "storedVersions": None}
        else:
            obj["status"] = copy.deepcopy(old.get("status") or {})
        _record_storage_version(obj)

    def validate(self, obj: Json, old: Json | None, ctx: RequestContext) -> list[FieldError]:
        if ctx.subresource == "status":
            return []
        if old is None:
            return definition_errors(obj)
        return update_errors(obj, old)

    def admit_create(self, obj: Json, ctx: RequestContext) -> None:
        return None

    def changes_generation(self, obj: Json, old: Json | None) -> bool:
        return old is None or obj.get("spec") != old.get("spec")


def _record_storage_version(obj: Json) -> None:
    """Add the storage version to `storedVersions`: objects may be stored in it from now on."""
    status = obj["status"]
    stored = list(status.get("storedVersions") or ())
    for version in obj["spec"].get("versions") or ():
        if version.get("storage") and version.get("name") not in stored:
            stored.append(version.get("name"))
    status["storedVersions"] = stored


def served() -> Sequence[Served]:
    """The entry of CustomResourceDefinitions."""
    return [
        Served(
            resource=CRDS,
            singular="customresourcedefinition",
            strategy=DefinitionStrategy(),
            columns=(tables.NAME, tables.CREATED_AT),
            short_names=("crd", "crds"),
            categories=("api-extensions",),
            subresources={"status": ("get", "patch", "update")},
            list_kind="CustomResourceDefinitionList",
            merge_keys={"metadata.finalizers": "", "metadata.ownerReferences": "uid"},
            strategic=True,
            returns_deleted=True,
        )
    ]
