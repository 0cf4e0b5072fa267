"""Validation of the volumes of a new Job (volcano-sh/volcano `pkg/webhooks/admission/jobs/validate`).

Volcano checks names and paths only. A claim that every API server rejects, or a path that a container mounts already,
would leave the job without pods for ever, so these are rejected as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from vcbatch.api import names
from vcbatch.api.job import JobSpec, VolumeSpec
from vcbatch.api.loose import listed
from vcbatch.api.model import Json
from vcbatch.api.name_rules import dns_subdomain
from vcbatch.api.names import Plugin
from vcbatch.api.podspec.claims import claim_spec_errors
from vcbatch.api.validate.errors import Cause, ValidationError


def volume_errors(spec: JobSpec, path: str) -> Iterator[ValidationError]:
    """All errors that keep the volumes from working."""
    taken = dict(_mounted(spec)) if spec.volumes else {}
    seen: set[str] = set()
    for index, volume in enumerate(spec.volumes):
        at = f"{path}.volumes[{index}]"
        yield from _path_errors(volume.mount_path, f"{at}.mountPath", seen, taken)
        seen.add(volume.mount_path)
        yield from _claim_errors(volume, at)


def _path_errors(mount_path: str, at: str, seen: set[str], taken: dict[str, str]) -> Iterator[ValidationError]:
    if not mount_path:
        yield ValidationError(at, "mountPath is required", Cause.REQUIRED)
    elif mount_path in seen:
        yield ValidationError(at, f"duplicated mountPath: {mount_path}", Cause.DUPLICATE)
    elif ":" in mount_path:
        yield ValidationError(at, f"{at}: Invalid value: \"{mount_path}\": must not contain ':'")
    elif mount_path in taken:
        text = f'{at}: Invalid value: "{mount_path}": {taken[mount_path]} mounts another volume there'
        yield ValidationError(at, text, Cause.DUPLICATE)


def _claim_errors(volume: VolumeSpec, at: str) -> Iterator[ValidationError]:
    if volume.volume_claim is None and not volume.volume_claim_name:
        yield ValidationError(at, "either VolumeClaim or VolumeClaimName must be specified", Cause.REQUIRED)
    if volume.volume_claim is not None and volume.volume_claim_name:
        yield ValidationError(
            at,
            "conflict: If you want to use an existing PVC, just specify VolumeClaimName."
            "If you want to create a new PVC, you do not need to specify VolumeClaimName",
        )
    elif volume.volume_claim_name:
        for complaint in dns_subdomain(volume.volume_claim_name):
            yield ValidationError(
                f"{at}.volumeClaimName", f"invalid VolumeClaimName {volume.volume_claim_name}: {complaint}"
            )
    elif volume.volume_claim is not None:
        for error in claim_spec_errors(volume.volume_claim, f"{at}.volumeClaim"):
            yield ValidationError(error.field, str(error), Cause(error.reason))


def _mounted(spec: JobSpec) -> Iterator[tuple[str, str]]:
    """The paths at which a container mounts volumes of its own, with the name of the container."""
    if Plugin.SVC in spec.plugins:
        yield names.SVC_MOUNT_PATH, "the plugin svc"
    for task in spec.tasks:
        for container in _objects(task.pod_spec, "containers"):
            for mount in _objects(container, "volumeMounts"):
                if isinstance(mount.get("mountPath"), str):
                    yield mount["mountPath"], f"container {container.get('name')} of task {task.name}"


def _objects(parent: Json, key: str) -> list[Json]:
    return [cast(Json, item) for item in listed(parent, key) if isinstance(item, dict)]
