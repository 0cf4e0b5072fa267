"""The manifest of a request."""

from __future__ import annotations

import re
from typing import Any, Final

from vcbatch.api import names
from vcbatch.api.job import Action, Event
from vcbatch.api.model import Json
from vcbatch.api.name_rules import dns_label, dns_subdomain
from vcbatch.api.names import Plugin
from vcbatch.api.quantity import ZERO, MalformedQuantity, parse_quantity
from vcbatch.api.queue import DEFAULT
from vcbatch.api.resources import JOBS
from vcbatch.api.time_limit import LONGEST
from vcbatch.api.validate.job import MOST_PODS
from vcbatch.sdk.compose.notice import Notice
from vcbatch.sdk.compose.program import Program, literal
from vcbatch.sdk.compose.request import CannotCompose, Framework, JobRequest, Volume, VolumeKind
from vcbatch.sdk.compose.tasks import Role, Shape, shape_of

_LOCAL_IMAGE: Final = "local"
"""Containers must name an image; without a container engine it isn't used."""
_LONGEST_LABEL: Final = 63
_LEAST_MEMORY: Final = parse_quantity("1Mi")
"""The minimum: no program starts below it, so that a smaller value was meant in another unit."""
_SUFFIX: Final = "-xxxxx"
"""A suffix with the length of the one that a server appends to a `generateName`."""
_ENV_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*", re.ASCII)


def compose(request: JobRequest) -> Json:
    """The Job for the request, in a form that admission accepts.

    A failure fails the whole job and uses one of `max_retries`, with which it restarts; in an array only the member
    restarts, and each has its own retries. Losses by the infrastructure are restarted without using retries. Raises
    `CannotCompose`.
    """
    _check(request)
    program = Program.of(request.command)
    shape = shape_of(request, program)
    array = request.array
    count = sum(role.replicas for role in shape.roles)
    if count > MOST_PODS:
        raise CannotCompose("nodes", f"{count} pods in total: must be at most {MOST_PODS}")
    spec: Json = {
        "schedulerName": names.DEFAULT_SCHEDULER,
        "queue": request.queue or DEFAULT,
        "minAvailable": count if array is None else 1,
        "maxRetry": request.max_retries + 1 if array is None else 1,
        "plugins": {plugin.value: arguments for plugin, arguments in ({Plugin.ENV: []} | shape.plugins).items()},
        "policies": _policies(request),
        "tasks": [_task(request, program, role) for role in shape.roles],
    }
    if request.priority_class:
        spec["priorityClassName"] = request.priority_class
    if array is not None:
        spec["minSuccess"] = count
    if not spec["policies"]:
        del spec["policies"]
    metadata: Json = _name(request, program, shape)
    annotations: dict[str, str] = {}
    if request.time_limit is not None:
        notice = 0 if request.signal is None else request.signal.seconds
        annotations[names.MAX_RUN_SECONDS] = str(request.time_limit - notice)
    if array is not None and array.parallel is not None and array.parallel < count:
        annotations[names.MAX_PARALLEL_PODS] = str(array.parallel)
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": metadata, "spec": spec}


def _check(request: JobRequest) -> None:
    if not request.command or not request.command[0]:
        raise CannotCompose("command", "program is required")
    if not request.local and not request.image:
        raise CannotCompose("image", "a container image is required on a cluster")
    for option, given, least in (
        ("nodes", request.nodes, 1),
        ("processes", 1 if request.processes is None else request.processes, 1),
        ("gpus", request.gpus, 0),
        ("max_retries", request.max_retries, 0),
        ("time_limit", 1 if request.time_limit is None else request.time_limit, 1),
    ):
        if given < least:
            raise CannotCompose(option, f"must be at least {least}, got {given}")
    if request.time_limit is not None and request.time_limit > LONGEST:
        raise CannotCompose("time_limit", f"must be at most {LONGEST} s, got {request.time_limit} s")
    if request.signal is not None:
        _check_signal(request, request.signal)
    if request.max_retries > 1000:
        raise CannotCompose("max_retries", f"must be at most 1000, got {request.max_retries}")
    for option, text in (("cpus", request.cpus), ("memory", request.memory)):
        if text and not _is_amount(text):
            example = "4 or 500m" if option == "cpus" else "16Gi"
            raise CannotCompose(option, f"invalid quantity {text!r} (e.g. {example})")
    if request.memory and parse_quantity(request.memory) < _LEAST_MEMORY:
        raise CannotCompose("memory", f"must be at least 1Mi (e.g. 16Gi), got {request.memory!r}")
    for name in request.env:
        if not _ENV_NAME.fullmatch(name):
            raise CannotCompose("env", f"invalid environment variable name {name!r}")
    if request.work_dir and not request.work_dir.startswith("/"):
        raise CannotCompose("work_dir", f"must be an absolute path, got {request.work_dir!r}")
    if request.image != request.image.strip():
        raise CannotCompose("image", f"invalid image {request.image!r}: leading or trailing spaces")
    for volume in request.volumes:
        _check_volume(volume)
    paths = [volume.path for volume in request.volumes]
    twice = next((path for path in paths if paths.count(path) > 1), None)
    if twice is not None:
        raise CannotCompose("volumes", f"several volumes at {twice}")


def _check_signal(request: JobRequest, signal: Notice) -> None:
    if request.framework in (Framework.MPI, Framework.RAY):
        text = f"is not available with framework {request.framework}, whose processes are started by other pods"
        raise CannotCompose("signal", text)
    if request.array is not None and request.max_retries:
        raise CannotCompose("signal", "is not available for an array with retries")
    if request.time_limit is not None and request.time_limit <= signal.seconds:
        text = f"{signal.seconds} s must be less than the time limit of {request.time_limit} s"
        raise CannotCompose("signal", text)


def _check_volume(volume: Volume) -> None:
    steps = volume.source.split("/") if volume.kind is VolumeKind.FOLDER else ()
    errors = () if volume.kind is VolumeKind.FOLDER else dns_subdomain(volume.source)
    if ".." in (*steps, *volume.path.split("/")) or ":" in volume.path:
        raise CannotCompose("volumes", f"{volume.source} at {volume.path}: paths can't contain '..' or ':'")
    if errors:
        raise CannotCompose("volumes", f"{volume.source!r}: {errors[0]}")


def _is_amount(text: str) -> bool:
    try:
        return parse_quantity(text) > ZERO
    except MalformedQuantity:
        return False


def _policies(request: JobRequest) -> list[Json]:
    restart = Action.RESTART_JOB if request.array is None else Action.RESTART_POD
    policies: list[Json] = [{"event": Event.POD_EVICTED.value, "action": restart.value}]
    if request.array is None:
        # Without retries left, the restart that this policy requests is refused and the job fails at once.
        policies.append({"event": Event.POD_FAILED.value, "action": restart.value})
    return policies


def _name(request: JobRequest, program: Program, shape: Shape) -> Json:
    """The name, or the prefix for the server to generate one: short enough for the names of all pods and of the
    plugins' objects."""
    tails = [names.pod_name("", role.name, max(role.replicas - 1, 0)) for role in shape.roles]
    if Plugin.RAY in shape.plugins:
        tails.append(names.ray_head_service(""))
    room = _LONGEST_LABEL - max(map(len, tails))
    if request.name:
        errors = dns_label(request.name)
        if errors:
            raise CannotCompose("name", f"{request.name!r}: {errors[0]}")
        if len(request.name) > room:
            raise CannotCompose(
                "name", f"must be at most {room} characters long, got {len(request.name)} in {request.name!r}"
            )
        return {"name": request.name}
    words = re.sub(r"[^a-z0-9]+", "-", program.stem.lower())
    stem = words[: room - len(_SUFFIX)].strip("-") or "job"
    return {"generateName": f"{stem}-"}


def _task(request: JobRequest, program: Program, role: Role) -> Json:
    volumes, mounts = _volumes(request, role)
    container: Json = {"name": role.container, "image": request.image or _LOCAL_IMAGE}
    if role.command:
        container["command"] = role.command
    if request.work_dir:
        container["workingDir"] = request.work_dir
    env = dict(request.env)
    if program.python:
        env.setdefault("PYTHONUNBUFFERED", "1")  # or lines appear only when the buffer is full
    if env:
        container["env"] = [{"name": name, "value": literal(value)} for name, value in env.items()]
    resources = _resources(request) if role.equipped else {}
    if resources:
        container["resources"] = resources
    if mounts:
        container["volumeMounts"] = mounts
    pod: Json = {"restartPolicy": "Never", "containers": [container]}
    if request.signal is not None:
        request.signal.apply(pod)
    if volumes:
        pod["volumes"] = volumes
    task: Json = {
        "name": role.name,
        "replicas": role.replicas,
        "minAvailable": role.replicas if request.array is None else 1,
        "template": {"spec": pod},
    }
    if policies := role.policies():
        task["policies"] = policies
    return task


def _resources(request: JobRequest) -> Json:
    """The requests and limits: memory and GPUs are both, CPUs are requests only."""
    given = {
        "cpu": request.cpus,
        "memory": request.memory,
        names.GPU_RESOURCE: str(request.gpus) if request.gpus else "",
    }
    requests = {name: amount for name, amount in given.items() if amount}
    limits = {name: amount for name, amount in requests.items() if name != "cpu"}
    found: Json = {"requests": requests, "limits": limits}
    return {name: amounts for name, amounts in found.items() if amounts}


def _volumes(request: JobRequest, role: Role) -> tuple[list[Json], list[Json]]:
    volumes: list[Json] = []
    mounts: list[Json] = []
    for position, volume in enumerate(request.volumes):
        name = f"volume-{position}"
        volumes.append({"name": name, **_source(volume)})
        mount: dict[str, Any] = {"name": name, "mountPath": volume.path}
        mounts.append({**mount, "readOnly": True} if volume.read_only else mount)
    taken = {volume.path for volume in request.volumes}
    for name, path, source in _own_volumes(request, role):
        if path not in taken:
            volumes.append({"name": name, "emptyDir": source})
            mounts.append({"name": name, "mountPath": path})
    return volumes, mounts


def _own_volumes(request: JobRequest, role: Role) -> list[tuple[str, str, Json]]:
    found: list[tuple[str, str, Json]] = []
    if role.scratch:
        found.append(("scratch", role.scratch, {}))
    if role.equipped and not request.local:
        # The container runtime's default is 64 MiB, which the workers of a data loader exceed.
        found.append(("shared-memory", "/dev/shm", {"medium": "Memory"}))  # noqa: S108 - the kernel's name for it
    return found


def _source(volume: Volume) -> Json:
    match volume.kind:
        case VolumeKind.CLAIM:
            claim: Json = {"claimName": volume.source}
            return {"persistentVolumeClaim": {**claim, "readOnly": True} if volume.read_only else claim}
        case VolumeKind.FOLDER:
            return {"hostPath": {"path": volume.source}}
        case VolumeKind.CONFIG_MAP:
            return {"configMap": {"name": volume.source}}
        case VolumeKind.SECRET:
            return {"secret": {"secretName": volume.source}}
