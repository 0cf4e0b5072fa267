"""Faults of the spec of a PersistentVolumeClaim. Source: kubernetes `pkg/apis/core/validation`."""

from __future__ import annotations

from collections.abc import Sequence

from vcbatch.api import faults, name_rules, quantities, selectors
from vcbatch.api.faults import FieldError
from vcbatch.api.loose import listed, part
from vcbatch.api.model import Json

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


def claim_spec_faults(spec: Json, path: str) -> list[FieldError]:
    """Faults of a PersistentVolumeClaimSpec."""
    found: list[FieldError] = []
    modes = listed(spec, "accessModes")
    if not modes:
        found.append(faults.required(f"{path}.accessModes", "at least 1 access mode is required"))
    if spec.get("selector") is not None:
        found += selectors.selector_faults(spec["selector"], f"{path}.selector")
    found += access_mode_faults(modes, f"{path}.accessModes")
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        detail = "may not use ReadWriteOncePod with other access modes"
        found.append(faults.forbidden(f"{path}.accessModes", detail))
    found += _storage_faults(spec, path)
    name = spec.get("storageClassName")
    if name:
        found += faults.invalid_each(f"{path}.storageClassName", name, name_rules.dns_subdomain(name))
    for key in ("dataSource", "dataSourceRef"):
        if spec.get(key) is not None:
            found += _source_faults(spec[key], f"{path}.{key}")
    mode = spec.get("volumeMode")
    if mode is not None and mode not in ("Block", "Filesystem"):
        found.append(faults.unsupported(f"{path}.volumeMode", mode, ["Block", "Filesystem"]))
    return found


def _source_faults(source: Json, path: str) -> list[FieldError]:
    """Faults of what a claim's contents come from."""
    found = [faults.required(f"{path}.{key}") for key in ("name", "kind") if not source.get(key)]
    group, kind = source.get("apiGroup") or "", source.get("kind", "")
    if not group and kind != "PersistentVolumeClaim":
        detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        found.append(faults.invalid(path, kind, detail))
    if group:
        found += faults.invalid_each(f"{path}.apiGroup", group, name_rules.dns_subdomain(group))
    return found


def access_mode_faults(modes: Sequence[str], path: str) -> list[FieldError]:
    """Faults of access modes, all reported at `path`."""
    return [faults.unsupported(path, mode, _MODES) for mode in modes if mode not in _MODES]


def _storage_faults(spec: Json, path: str) -> list[FieldError]:
    place = f"{path}.resources[storage]"
    size = part(part(spec, "resources"), "requests").get("storage")
    if size is None:
        return [faults.required(place)]
    if quantities.compare(size, "0") <= 0:
        return [faults.invalid(place, str(size), "must be greater than zero")]
    return []
