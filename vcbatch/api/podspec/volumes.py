"""Errors of a pod's volumes. Source: kubernetes `pkg/apis/core/validation`, `ValidateVolumes`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from vcbatch.api import field_errors, name_rules, quantities
from vcbatch.api.field_errors import FieldError
from vcbatch.api.loose import listed, part
from vcbatch.api.model import Json
from vcbatch.api.podspec import values
from vcbatch.api.podspec.claims import claim_spec_errors

_HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_SECOND = "may not specify more than 1 volume type"


def volumes_errors(volumes: list[Json], path: str, *, pod_name: str) -> tuple[dict[str, Json], list[FieldError]]:
    """The valid volumes by name, and the errors of the others."""
    sound: dict[str, Json] = {}
    found: list[FieldError] = []
    made = {f"{pod_name}-{item.get('name')}" for item in volumes if item.get("ephemeral") is not None and pod_name}
    for index, volume in enumerate(volumes):
        place = f"{path}[{index}]"
        name = volume.get("name", "")
        faulty = _source_errors(volume, place, pod_name)
        faulty += values.label_errors(f"{place}.name", name) if name else [field_errors.required(f"{place}.name")]
        if name in sound:
            faulty.append(field_errors.duplicate(f"{place}.name", name))
        if faulty:
            found += faulty
        else:
            sound[name] = volume
        claim = part(volume, "persistentVolumeClaim").get("claimName", "")
        if claim in made:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            found.append(field_errors.invalid(f"{place}.persistentVolumeClaim.claimName", claim, detail))
    return sound, found


def _source_errors(volume: Json, path: str, pod_name: str) -> list[FieldError]:
    found: list[FieldError] = []
    chosen = False
    for kind, check in _SOURCES.items():
        source = volume.get(kind)
        if source is None:
            continue
        if chosen:
            found.append(field_errors.forbidden(f"{path}.{_MISNAMED.get(kind, kind)}", _SECOND))
            continue
        chosen = True
        found += check(source, f"{path}.{kind}")
        if kind == "ephemeral" and pod_name and volume.get("name"):
            claim = f"{pod_name}-{volume['name']}"
            for error in name_rules.dns_subdomain(claim):
                detail = f"PVC name {field_errors.go_quote(claim)}: {error}"
                found.append(field_errors.invalid(f"{path}.name", volume["name"], detail))
    if not chosen:
        found.append(field_errors.required(path, "must specify a volume type"))
    return found


def _any(_source: Json, _path: str) -> list[FieldError]:
    return []


def _needs(*keys: str) -> Callable[[Json, str], list[FieldError]]:
    return lambda source, path: [field_errors.required(f"{path}.{key}") for key in keys if not source.get(key)]


def _empty_dir(source: Json, path: str) -> list[FieldError]:
    limit = source.get("sizeLimit")
    if limit is not None and quantities.compare(limit, "0") < 0:
        return [field_errors.forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")]
    return []


def _host_path(source: Json, path: str) -> list[FieldError]:
    if not source.get("path"):
        return [field_errors.required(f"{path}.path")]
    found = values.backstep_errors(f"{path}.path", source["path"])
    kind = source.get("type")
    if kind is not None and kind not in _HOST_PATH_TYPES:
        found.append(field_errors.unsupported(f"{path}.type", kind, _HOST_PATH_TYPES))
    return found


def _keys(items: list[Json] | None, path: str) -> list[FieldError]:
    """Errors of `KeyToPath` items."""
    found: list[FieldError] = []
    for index, item in enumerate(items or ()):
        place = f"{path}[{index}]"
        if not item.get("key"):
            found.append(field_errors.required(f"{place}.key"))
        if not item.get("path"):
            found.append(field_errors.required(f"{place}.path"))
        found += values.file_path_errors(f"{place}.path", item.get("path", ""))
        found += values.mode_errors(f"{place}.mode", item.get("mode"))
    return found


def _secret(source: Json, path: str) -> list[FieldError]:
    found = [] if source.get("secretName") else [field_errors.required(f"{path}.secretName")]
    found += values.mode_errors(f"{path}.defaultMode", source.get("defaultMode"))
    return found + _keys(source.get("items"), f"{path}.items")


def _config_map(source: Json, path: str) -> list[FieldError]:
    found = [] if source.get("name") else [field_errors.required(f"{path}.name")]
    found += values.mode_errors(f"{path}.defaultMode", source.get("defaultMode"))
    return found + _keys(source.get("items"), f"{path}.items")


def _nfs(source: Json, path: str) -> list[FieldError]:
    found = [field_errors.required(f"{path}.{key}") for key in ("server", "path") if not source.get(key)]
    if not source.get("path", "").startswith("/"):
        found.append(field_errors.invalid(f"{path}.path", source.get("path", ""), "must be an absolute path"))
    return found


def _downward(source: Json, path: str) -> list[FieldError]:
    found = values.mode_errors(f"{path}.defaultMode", source.get("defaultMode"))
    for item in listed(source, "items"):
        found += _downward_file(item, path)
    return found


def _downward_file(item: Json, path: str) -> list[FieldError]:
    found = [] if item.get("path") else [field_errors.required(f"{path}.path")]
    found += values.file_path_errors(f"{path}.path", item.get("path", ""))
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if field is not None:
        found += values.field_ref_errors(field, f"{path}.fieldRef", values.VOLUME_FIELDS)
        if resource is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            found.append(field_errors.invalid(path, "resource", detail))
    elif resource is not None:
        found += values.resource_ref_errors(resource, f"{path}.resourceFieldRef", volume=True)
    else:
        found.append(field_errors.required(path, "one of fieldRef and resourceFieldRef is required"))
    return found + values.mode_errors(f"{path}.mode", item.get("mode"))


def _projected(source: Json, path: str) -> list[FieldError]:
    found = values.mode_errors(f"{path}.defaultMode", source.get("defaultMode"))
    taken: set[str] = set()
    for index, projection in enumerate(listed(source, "sources")):
        found += _projection(projection, path, f"{path}.sources[{index}]", taken)
    return found


def _projection(projection: Json, path: str, place: str, taken: set[str]) -> list[FieldError]:
    found: list[FieldError] = []
    kinds = [kind for kind in projection if projection[kind] is not None]
    for kind in ("secret", "configMap"):
        source = projection.get(kind)
        if source is None:
            continue
        if not source.get("name"):
            found.append(field_errors.required(f"{place}.{kind}.name"))
        found += _keys(source.get("items"), f"{place}.{kind}.items")
        for item in listed(source, "items"):
            found += _claimed(item.get("path", ""), taken, path, shown=source.get("name", ""))
    for item in listed(part(projection, "downwardAPI"), "items"):
        found += _downward_file(item, f"{place}.downwardAPI")
        found += _claimed(item.get("path", ""), taken, path, shown=item.get("path", ""))
    token = projection.get("serviceAccountToken")
    if token is not None:
        found += _token(token, path, f"{place}.serviceAccountToken")
    if len(kinds) > 1:
        found.append(field_errors.forbidden(place, "may not specify more than 1 volume type per source"))
    return found


def _claimed(file: str, taken: set[str], path: str, *, shown: str) -> list[FieldError]:
    """Errors where two sources write the same file."""
    if not file:
        return []
    if file in taken:
        return [field_errors.invalid(path, shown, "conflicting duplicate paths")]
    taken.add(file)
    return []


def _token(token: Json, path: str, place: str) -> list[FieldError]:
    found: list[FieldError] = []
    seconds = token.get("expirationSeconds") or 0
    if seconds < 600:
        detail = "may not specify a duration less than 10 minutes"
        found.append(field_errors.invalid(f"{place}.expirationSeconds", seconds, detail))
    if seconds > 1 << 32:
        detail = "may not specify a duration larger than 2^32 seconds"
        found.append(field_errors.invalid(f"{place}.expirationSeconds", seconds, detail))
    if not token.get("path"):
        found.append(field_errors.required(f"{path}.path"))
    else:
        found += values.file_path_errors(f"{path}.path", token["path"])
    return found


def _ephemeral(source: Json, path: str) -> list[FieldError]:
    template = source.get("volumeClaimTemplate")
    if template is None:
        return [field_errors.required(f"{path}.volumeClaimTemplate")]
    return claim_spec_errors(part(template, "spec"), f"{path}.volumeClaimTemplate.spec")


def _csi(source: Json, path: str) -> list[FieldError]:
    if not source.get("driver"):
        return [field_errors.required(f"{path}.driver")]
    reference = source.get("nodePublishSecretRef")
    if reference is not None and not reference.get("name"):
        return [field_errors.required(f"{path}.nodePublishSecretRef.name")]
    return []


_SOURCES: Mapping[str, Callable[[Any, str], list[FieldError]]] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "gitRepo": _needs("repository"),
    "gcePersistentDisk": _needs("pdName"),
    "awsElasticBlockStore": _needs("volumeID"),
    "secret": _secret,
    "nfs": _nfs,
    "iscsi": _needs("targetPortal", "iqn"),
    "glusterfs": _needs("endpoints", "path"),
    "flocker": _any,
    "persistentVolumeClaim": _needs("claimName"),
    "rbd": _needs("monitors", "image"),
    "cinder": _needs("volumeID"),
    "cephfs": _needs("monitors"),
    "quobyte": _needs("registry", "volume"),
    "downwardAPI": _downward,
    "fc": _any,
    "flexVolume": _needs("driver"),
    "configMap": _config_map,
    "azureFile": _needs("secretName", "shareName"),
    "vsphereVolume": _needs("volumePath"),
    "photonPersistentDisk": _needs("pdID"),
    "portworxVolume": _needs("volumeID"),
    "azureDisk": _needs("diskName", "diskURI"),
    "storageos": _needs("volumeName"),
    "projected": _projected,
    "scaleIO": _needs("gateway", "system", "volumeName"),
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _needs("reference"),
}
"""Every volume type, in the order in which Kubernetes validates them."""

_MISNAMED = {"downwardAPI": "downwarAPI", "cephfs": "cephFS"}
"""Paths that Kubernetes itself spells differently in this place."""


def selector_key_errors(reference: Json, path: str) -> list[FieldError]:
    """Errors of a reference to a key of a ConfigMap or a Secret."""
    name, key = reference.get("name", ""), reference.get("key", "")
    found = values.subdomain_errors(f"{path}.name", name)
    if not key:
        return [*found, field_errors.required(f"{path}.key")]
    return found + field_errors.invalid_each(f"{path}.key", key, name_rules.config_key(key))
