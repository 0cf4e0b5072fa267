"""Errors of the spec of a PersistentVolumeClaim. Source: kubernetes `pkg/apis/core/validation`."""

from __future__ import annotations

from collections.abc import Sequence

from vcbatch.api import field_errors, name_rules, quantities, selectors
from vcbatch.api.field_errors import FieldError
from vcbatch.api.loose import listed, part
from vcbatch.api.model import Json

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


def claim_spec_errors(spec: Json, path: str) -> list[FieldError]:
    """Errors of a PersistentVolumeClaimSpec."""
    found: list[FieldError] = []
    modes = listed(spec, "accessModes")
    if not modes:
        found.append(field_errors.required(f"{path}.accessModes", "at least 1 access mode is required"))
    if spec.get("selector") is not None:
        found += selectors.selector_errors(spec["selector"], f"{path}.selector")
    found += access_mode_errors(modes, f"{path}.accessModes")
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        detail = "may not use ReadWriteOncePod with other access modes"
        found.append(field_errors.forbidden(f"{path}.accessModes", detail))
    found += _storage_errors(spec, path)
    name = spec.get("storageClassName")
    if name:
        found += field_errors.invalid_each(f"{path}.storageClassName", name, name_rules.dns_subdomain(name))
    for key in ("dataSource", "dataSourceRef"):
        if spec.get(key) is not None:
            found += _source_errors(spec[key], f"{path}.{key}")
    mode = spec.get("volumeMode")
    if mode is not None and mode not in ("Block", "Filesystem"):
        found.append(field_errors.unsupported(f"{path}.volumeMode", mode, ["Block", "Filesystem"]))
    return found


def _source_errors(source: Json, path: str) -> list[FieldError]:
    """Errors of the data source of a claim."""
    found = [field_errors.required(f"{path}.{key}") for key in ("name", "kind") if not source.get(key)]
    group, kind = source.get("apiGroup") or "", source.get("kind", "")
    if not group and kind != "PersistentVolumeClaim":
        detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        found.append(field_errors.invalid(path, kind, detail))
    if group:
        found += field_errors.invalid_each(f"{path}.apiGroup", group, name_rules.dns_subdomain(group))
    return found


def access_mode_errors(modes: Sequence[str], path: str) -> list[FieldError]:
    """Errors of access modes, all reported at `path`."""
    return [field_errors.unsupported(path, mode, _MODES) for mode in modes if mode not in _MODES]


def _storage_errors(spec: Json, path: str) -> list[FieldError]:
    place = f"{path}.resources[storage]"
    size = part(part(spec, "resources"), "requests").get("storage")
    if size is None:
        return [field_errors.required(place)]
    if quantities.compare(size, "0") <= 0:
        return [field_errors.invalid(place, str(size), "must be greater than zero")]
    return []
