"""Pod specs inside other objects: what defaults there and what is refused there."""

from __future__ import annotations

from vcbatch.api import name_rules
from vcbatch.local.apiserver import faults
from vcbatch.local.apiserver.errors import FieldError
from vcbatch.local.apiserver.kinds import selectors
from vcbatch.local.apiserver.kinds.pods.defaults import spec_defaults
from vcbatch.local.apiserver.kinds.pods.spec import spec_faults
from vcbatch.local.apiserver.registry import Json


def template_defaults(template: Json) -> None:
    """Defaults of a PodTemplateSpec, in place."""
    template.setdefault("metadata", {})
    spec_defaults(template.setdefault("spec", {}))


def template_faults(template: Json, path: str) -> list[FieldError]:
    """Faults of a PodTemplateSpec at `path`."""
    metadata = template.get("metadata") or {}
    found = selectors.label_faults(metadata.get("labels"), f"{path}.labels")
    for key in sorted(metadata.get("annotations") or {}):
        found += faults.invalid_each(f"{path}.annotations", key, name_rules.qualified_name(key.lower()))
    found += spec_faults(template.get("spec") or {}, f"{path}.spec", pod_name="")
    if (template.get("spec") or {}).get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        found.append(faults.forbidden(f"{path}.spec.ephemeralContainers", detail))
    return found
