"""Pod specs inside other objects: their defaults and validation."""

from __future__ import annotations

from typing import Any, cast

from vcbatch.api import field_errors, name_rules, selectors
from vcbatch.api.crd.schemas import core_type
from vcbatch.api.crd.shape import shape_errors
from vcbatch.api.field_errors import FieldError
from vcbatch.api.loose import part
from vcbatch.api.model import Json
from vcbatch.api.podspec.defaults import spec_defaults
from vcbatch.api.podspec.spec import spec_errors


def template_defaults(template: Json) -> None:
    """Defaults of a PodTemplateSpec, in place."""
    template.setdefault("metadata", {})
    spec_defaults(template.setdefault("spec", {}))


def written_template_errors(template: Json, path: str) -> list[FieldError]:
    """Errors of a PodTemplateSpec as its author wrote it: without its defaults, which are set in a copy. Values of a
    wrong type are the only errors reported, since the other rules need the right types."""
    misshapen = shape_errors(template, core_type("PodTemplateSpec"), path)
    if misshapen:
        return misshapen
    copied = _copied(template)
    template_defaults(copied)
    return template_errors(copied, path)


def _copied(value: Any) -> Any:
    """A deep copy without nulls, which mean the same as absent fields."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in cast(Json, value).items() if item is not None}
    return [_copied(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def template_errors(template: Json, path: str) -> list[FieldError]:
    """Errors of a PodTemplateSpec at `path`, which has its defaults."""
    metadata = part(template, "metadata")
    found = selectors.label_errors(metadata.get("labels"), f"{path}.labels")
    for key in sorted(part(metadata, "annotations")):
        found += field_errors.invalid_each(f"{path}.annotations", key, name_rules.qualified_name(key.lower()))
    found += spec_errors(part(template, "spec"), f"{path}.spec", pod_name="")
    if part(template, "spec").get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        found.append(field_errors.forbidden(f"{path}.spec.ephemeralContainers", detail))
    return found
