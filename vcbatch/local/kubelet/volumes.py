"""A pod's volumes as directories of this machine, and their mounts in containers.

ConfigMaps, Secrets and the downward API are written as Kubernetes writes them: into a directory of its own behind the
symbolic link `..data`, so that an update replaces all files in one step. (Source: `pkg/volume/util/atomic_writer.go`.)
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vcbatch.interfaces.processes import BindMount
from vcbatch.local.kubelet.environment import ConfigError, Lookup, PodFacts, expand, field_value, resource_value

Json = dict[str, Any]

_DATA = "..data"
_PROJECTED = ("configMap", "secret", "downwardAPI", "projected")
_TOKEN_VOLUME = "kube-api-access-"  # noqa: S105 - the prefix of a name
_INSTEAD = "use configMap, secret, downwardAPI, projected, emptyDir, hostPath or persistentVolumeClaim"


class VolumeError(Exception):
    """A volume can't be set up now; it may be possible later (a ConfigMap that isn't created yet)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One file of a projected volume; `path` is relative."""

    path: str
    data: bytes
    mode: int


BytesLookup = Callable[[str], Mapping[str, bytes] | None]
"""Returns the keys and values of a ConfigMap or Secret of the pod's namespace; None where there is no such object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The sources of the contents of projected volumes."""

    config_map: BytesLookup
    secret: BytesLookup
    facts: PodFacts


class Binary(bytes):
    """A value of a ConfigMap's `binaryData`: for files only, never for the environment."""


def config_map_contents(obj: Json) -> dict[str, bytes]:
    """All keys of a ConfigMap, `data` and `binaryData`."""
    found: dict[str, bytes] = {key: value.encode() for key, value in (obj.get("data") or {}).items()}
    return found | {key: Binary(b64decode(value)) for key, value in (obj.get("binaryData") or {}).items()}


def secret_contents(obj: Json) -> dict[str, bytes]:
    """All keys of a Secret."""
    return {key: b64decode(value) for key, value in (obj.get("data") or {}).items()}


def as_text(lookup: BytesLookup) -> Lookup:
    """The same lookup with text values, for the environment."""

    def find(name: str) -> Mapping[str, str] | None:
        found = lookup(name)
        if found is None:
            return None
        return {key: value.decode(errors="replace") for key, value in found.items() if not isinstance(value, Binary)}

    return find


def without_account_token(pod: Json) -> Json:
    """The pod without the volume that admission adds for its service account's token. In local mode service accounts
    have no permissions, and the pods are processes of a user with a kubeconfig."""
    spec = pod["spec"]
    added = {
        volume["name"]
        for volume in spec.get("volumes") or ()
        if volume["name"].startswith(_TOKEN_VOLUME)
        and any("serviceAccountToken" in part for part in (volume.get("projected") or {}).get("sources") or ())
    }
    if not added:
        return pod
    kept: Json = {**spec, "volumes": [volume for volume in spec["volumes"] if volume["name"] not in added]}
    for group in ("containers", "initContainers"):
        if spec.get(group):
            kept[group] = [_without_mounts(container, added) for container in spec[group]]
    return {**pod, "spec": kept}


def _without_mounts(container: Json, names: set[str]) -> Json:
    mounts = [mount for mount in container.get("volumeMounts") or () if mount["name"] not in names]
    return {**container, "volumeMounts": mounts}


def is_projected(volume: Json) -> bool:
    """Whether the volume's contents come from objects of the API and are updated with them."""
    return any(kind in volume for kind in _PROJECTED)


def project(pod: Json, volume: Json, sources: Sources) -> list[File]:
    """The files of a configMap, secret, downwardAPI or projected volume; raises `VolumeError`, `ConfigError`."""
    if "configMap" in volume:
        source = volume["configMap"] or {}
        return _keys("configmap", source.get("name", ""), source, sources.config_map, source.get("defaultMode"))
    if "secret" in volume:
        source = volume["secret"] or {}
        return _keys("secret", source.get("secretName", ""), source, sources.secret, source.get("defaultMode"))
    if "downwardAPI" in volume:
        source = volume["downwardAPI"] or {}
        return _downward(pod, source, sources.facts, source.get("defaultMode"))
    projected = volume["projected"] or {}
    mode = projected.get("defaultMode")
    files: list[File] = []
    for part in projected.get("sources") or ():
        files += _project_part(pod, part, sources, mode)
    return files


def _project_part(pod: Json, part: Json, sources: Sources, mode: int | None) -> list[File]:
    if "configMap" in part:
        return _keys("configmap", part["configMap"].get("name", ""), part["configMap"], sources.config_map, mode)
    if "secret" in part:
        return _keys("secret", part["secret"].get("name", ""), part["secret"], sources.secret, mode)
    if "downwardAPI" in part:
        return _downward(pod, part["downwardAPI"], sources.facts, mode)
    raise ConfigError(
        f"projected volume source {', '.join(sorted(part)) or '(empty)'} is not available in local mode;"
        " use configMap, secret or downwardAPI"
    )


def _keys(kind: str, name: str, source: Json, lookup: BytesLookup, default_mode: int | None) -> list[File]:
    optional = bool(source.get("optional"))
    data = lookup(name)
    if data is None:
        if optional:
            return []
        raise VolumeError(f'{kind} "{name}" not found')
    mode = 0o644 if default_mode is None else default_mode
    items = source.get("items")
    if not items:
        return [File(path=key, data=value, mode=mode) for key, value in data.items()]
    files: list[File] = []
    for item in items:
        key = item["key"]
        if key not in data:
            if optional:
                continue
            raise VolumeError(f"{kind} references non-existent config key: {key}")
        files.append(File(path=_relative(item["path"]), data=data[key], mode=item.get("mode") or mode))
    return files


def _downward(pod: Json, source: Json, facts: PodFacts, default_mode: int | None) -> list[File]:
    mode = 0o644 if default_mode is None else default_mode
    files: list[File] = []
    for item in source.get("items") or ():
        if "fieldRef" in item:
            text = field_value(pod, item["fieldRef"].get("fieldPath", ""), facts)
        else:
            text = resource_value(pod, item.get("resourceFieldRef") or {}, facts)
        files.append(File(path=_relative(item["path"]), data=text.encode(), mode=item.get("mode") or mode))
    return files


def _relative(path: str) -> str:
    parts = path.split("/")
    if not path or path.startswith("/") or ".." in parts or parts[0].startswith(".."):
        raise ConfigError(f"volume item path {path!r} must be relative and stay inside the volume")
    return path


def write_files(directory: Path, files: Sequence[File]) -> bool:
    """Write exactly these files to `directory`, in one step for its readers; returns whether anything changed."""
    files = list({file.path: file for file in files}.values())  # the last one of several with one path
    directory.mkdir(mode=0o755, parents=True, exist_ok=True)
    link = directory / _DATA
    if link.is_symlink() and _holds(directory / link.readlink(), files):
        return False
    fresh = directory / f"..{secrets.token_hex(6)}"
    try:
        fresh.mkdir(mode=0o755)
        for file in files:
            path = fresh / file.path
            path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            path.write_bytes(file.data)
            path.chmod(file.mode)
    except OSError:
        shutil.rmtree(fresh, ignore_errors=True)  # the write is retried: left-over files would use more and more space
        raise
    former = directory / link.readlink() if link.is_symlink() else None
    temporary = directory / "..data_tmp"
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(fresh.name)
    temporary.replace(link)
    _link_top_level(directory, {file.path.split("/", 1)[0] for file in files})
    if former is not None:
        shutil.rmtree(former, ignore_errors=True)
    return True


def _link_top_level(directory: Path, names: set[str]) -> None:
    for name in names:
        entry = directory / name
        if not entry.is_symlink():
            entry.symlink_to(f"{_DATA}/{name}")
    for entry in directory.iterdir():
        if entry.is_symlink() and not entry.name.startswith("..") and entry.name not in names:
            entry.unlink()


def _holds(directory: Path, files: Sequence[File]) -> bool:
    wanted = {file.path: file for file in files}
    present = {str(path.relative_to(directory)): path for path in directory.rglob("*") if path.is_file()}
    if wanted.keys() != present.keys():
        return False
    return all(
        path.read_bytes() == wanted[name].data and stat.S_IMODE(path.stat().st_mode) == wanted[name].mode
        for name, path in present.items()
    )


def prepare(volume: Json, *, pod_directory: Path, memory_directory: Path) -> Path:
    """The path on this machine of a volume that isn't projected, created where needed; raises `ConfigError` for
    unsupported volumes and `VolumeError` for those that don't exist (yet)."""
    if "hostPath" in volume:
        return _host_path(volume["hostPath"] or {})
    kinds = sorted(key for key in volume if key != "name")
    if kinds not in ([], ["emptyDir"]):
        raise ConfigError(
            f"volume {volume['name']!r}: {', '.join(kinds)} volumes are not available in local mode; {_INSTEAD}"
        )
    in_memory = (volume.get("emptyDir") or {}).get("medium") == "Memory"
    base = memory_directory if in_memory else pod_directory
    path = base / "volumes" / volume["name"]
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o777)
    return path


def _host_path(source: Json) -> Path:
    path = Path(source.get("path", ""))
    if not path.is_absolute():
        raise ConfigError(f"hostPath {str(path)!r} must be absolute")
    kind = source.get("type") or ""
    if kind == "DirectoryOrCreate":
        path.mkdir(mode=0o755, parents=True, exist_ok=True)
    elif kind == "FileOrCreate" and not path.exists():
        path.touch(mode=0o644)
    if not path.exists():
        raise VolumeError(f"hostPath {path}: no such file or directory")
    checks = {
        "Directory": (path.is_dir, "a directory"),
        "DirectoryOrCreate": (path.is_dir, "a directory"),
        "File": (path.is_file, "a file"),
        "FileOrCreate": (path.is_file, "a file"),
        "Socket": (path.is_socket, "a socket file"),
        "CharDevice": (path.is_char_device, "a character device"),
        "BlockDevice": (path.is_block_device, "a block device"),
    }
    if kind:
        check, what = checks[kind]
        if not check():
            raise VolumeError(f"hostPath type check failed: {path} is not {what}")
    return path


def bind_mounts(container: Json, paths: Mapping[str, Path], variables: Mapping[str, str]) -> list[BindMount]:
    """The mounts of a container, shallow targets first; `paths` are its pod's volumes by name."""
    mounts: list[BindMount] = []
    for mount in container.get("volumeMounts") or ():
        name = mount["name"]
        if name not in paths:
            raise ConfigError(f"volumeMount {name!r} of container {container['name']!r}: the pod has no such volume")
        source = paths[name]
        sub_path = mount.get("subPath") or ""
        if mount.get("subPathExpr"):
            sub_path = expand(mount["subPathExpr"], variables)
        if sub_path:
            source = _inside(source, sub_path)
        target = os.path.normpath("/" + mount["mountPath"].lstrip("/"))
        if target == "/":
            raise ConfigError(f"volumeMount {name!r}: a volume can't be mounted at /")
        mounts.append(BindMount(source=source, target=target, read_only=bool(mount.get("readOnly"))))
    return sorted(mounts, key=lambda mount: mount.target.count("/"))


def _inside(source: Path, sub_path: str) -> Path:
    """`sub_path` below `source`, created as a directory where it doesn't exist; never outside of it, not even through a
    link."""
    if sub_path.startswith("/") or ".." in sub_path.split("/"):
        raise ConfigError(f"subPath {sub_path!r} must be relative and stay inside the volume")
    resolved = (source / sub_path).resolve()
    if not resolved.is_relative_to(source.resolve()):
        raise ConfigError(f"subPath {sub_path!r} leads outside the volume")
    if not resolved.exists():
        resolved.mkdir(parents=True, exist_ok=True)
    return resolved


def claim_names(spec: Json) -> set[str]:
    """The names of the claims that a pod mounts."""
    sources = (volume.get("persistentVolumeClaim") for volume in spec.get("volumes") or ())
    return {source.get("claimName", "") for source in sources if source is not None}


def bound_volume(claim: str, stored: Json | None) -> str:
    """The name of the volume of a claim; raises `VolumeError` where it has none."""
    if stored is None:
        raise VolumeError(f'persistentvolumeclaim "{claim}" not found')
    name = stored["spec"].get("volumeName")
    if not name or (stored.get("status") or {}).get("phase") != "Bound":
        raise VolumeError(f'persistentvolumeclaim "{claim}" isn\'t bound yet')
    return name


def volume_path(claim: str, volume: Json | None) -> Path:
    """The directory on this machine of a claim's volume; raises `VolumeError`, and `ConfigError` for a volume without
    one."""
    if volume is None:
        raise VolumeError(f'the volume of persistentvolumeclaim "{claim}" not found')
    spec = volume["spec"]
    if spec.get("volumeMode") == "Block":
        raise ConfigError(f"persistentvolumeclaim {claim}: block volumes are not available in local mode")
    if "hostPath" in spec:
        return _host_path(spec["hostPath"])
    if "local" in spec:
        return _host_path({"path": spec["local"].get("path", ""), "type": "Directory"})
    raise ConfigError(
        f"persistentvolumeclaim {claim}: its volume {volume['metadata']['name']} isn't of this machine;"
        " local mode mounts hostPath and local volumes, and those of its own class"
    )


def with_read_only_claims(container: Json, spec: Json) -> Json:
    """The container with read-only mounts of the claims that its pod declares as `readOnly`."""
    kept = {
        volume["name"]
        for volume in spec.get("volumes") or ()
        if (volume.get("persistentVolumeClaim") or {}).get("readOnly")
    }
    mounts = container.get("volumeMounts") or ()
    if not any(mount["name"] in kept for mount in mounts):
        return container
    return {**container, "volumeMounts": [m | {"readOnly": True} if m["name"] in kept else m for m in mounts]}


def references(spec: Json) -> set[tuple[str, str]]:
    """The ConfigMaps and Secrets that a pod reads, as (`configmap` or `secret`, name)."""
    found: set[tuple[str, str]] = set()
    for volume in spec.get("volumes") or ():
        for source in ({k: v for k, v in volume.items() if k != "name"}, *_parts(volume)):
            if source.get("configMap"):
                found.add(("configmap", source["configMap"].get("name", "")))
            if source.get("secret"):
                found.add(("secret", source["secret"].get("secretName") or source["secret"].get("name", "")))
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        for source in container.get("envFrom") or ():
            found |= _named(source, config_map="configMapRef", secret="secretRef")  # noqa: S106
        for entry in container.get("env") or ():
            found |= _named(entry.get("valueFrom") or {}, config_map="configMapKeyRef", secret="secretKeyRef")  # noqa: S106
    return found


def _parts(volume: Json) -> Sequence[Json]:
    return (volume.get("projected") or {}).get("sources") or ()


def _named(source: Json, *, config_map: str, secret: str) -> set[tuple[str, str]]:
    kinds = (("configmap", config_map), ("secret", secret))
    return {(kind, source[key].get("name", "")) for kind, key in kinds if source.get(key)}
