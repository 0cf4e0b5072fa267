"""vcbatch: gang-scheduled batch jobs for machine-learning training, on a laptop or on Kubernetes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vcbatch._version import __version__

if TYPE_CHECKING:
    from vcbatch.api.phases import Action, Event, JobPhase, QueueState
    from vcbatch.api.reasons import LossCause, WaitReason
    from vcbatch.core.waiting import Waiting
    from vcbatch.sdk.async_client import AsyncClient
    from vcbatch.sdk.async_job import AsyncJobHandle
    from vcbatch.sdk.client import Client
    from vcbatch.sdk.errors import (
        AdmissionDenied,
        AlreadyExists,
        Conflict,
        Forbidden,
        JobEnded,
        JobFailed,
        NotConfigured,
        NotFound,
        ResultUnavailable,
        ServerError,
        TaskFailed,
        Unavailable,
        VcbatchError,
        WaitTimeout,
    )
    from vcbatch.sdk.frameworks import env, mpi, pytorch, ray, ssh, svc, tensorflow
    from vcbatch.sdk.functions.async_calls import AsyncFunctionHandle, AsyncMapHandle
    from vcbatch.sdk.functions.calls import FunctionHandle, MapHandle
    from vcbatch.sdk.functions.folder import SharedFolder
    from vcbatch.sdk.functions.task import TaskFunction, TaskOptions, task
    from vcbatch.sdk.job import JobHandle
    from vcbatch.sdk.log_reader import LogLine
    from vcbatch.sdk.models.job import Job, Task
    from vcbatch.sdk.models.parts import DependsOn, NetworkTopology, Partitions, Policy, Resources, Volume
    from vcbatch.sdk.models.queue import Queue
    from vcbatch.sdk.models.status import JobStatus, PodLoss, QueueStatus
    from vcbatch.sdk.records import JobEvent

_PLACES = {
    "vcbatch.api.phases": ("Action", "Event", "JobPhase", "QueueState"),
    "vcbatch.api.reasons": ("LossCause", "WaitReason"),
    "vcbatch.core.waiting": ("Waiting",),
    "vcbatch.sdk.async_client": ("AsyncClient",),
    "vcbatch.sdk.async_job": ("AsyncJobHandle",),
    "vcbatch.sdk.client": ("Client",),
    "vcbatch.sdk.errors": (
        "AdmissionDenied",
        "AlreadyExists",
        "Conflict",
        "Forbidden",
        "JobEnded",
        "JobFailed",
        "NotConfigured",
        "NotFound",
        "ResultUnavailable",
        "ServerError",
        "TaskFailed",
        "Unavailable",
        "VcbatchError",
        "WaitTimeout",
    ),
    "vcbatch.sdk.frameworks": ("env", "mpi", "pytorch", "ray", "ssh", "svc", "tensorflow"),
    "vcbatch.sdk.functions.async_calls": ("AsyncFunctionHandle", "AsyncMapHandle"),
    "vcbatch.sdk.functions.calls": ("FunctionHandle", "MapHandle"),
    "vcbatch.sdk.functions.folder": ("SharedFolder",),
    "vcbatch.sdk.functions.task": ("TaskFunction", "TaskOptions", "task"),
    "vcbatch.sdk.job": ("JobHandle",),
    "vcbatch.sdk.log_reader": ("LogLine",),
    "vcbatch.sdk.models.job": ("Job", "Task"),
    "vcbatch.sdk.models.parts": ("DependsOn", "NetworkTopology", "Partitions", "Policy", "Resources", "Volume"),
    "vcbatch.sdk.models.queue": ("Queue",),
    "vcbatch.sdk.models.status": ("JobStatus", "PodLoss", "QueueStatus"),
    "vcbatch.sdk.records": ("JobEvent",),
}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names}

__all__ = [
    "Action",
    "AdmissionDenied",
    "AlreadyExists",
    "AsyncClient",
    "AsyncFunctionHandle",
    "AsyncJobHandle",
    "AsyncMapHandle",
    "Client",
    "Conflict",
    "DependsOn",
    "Event",
    "Forbidden",
    "FunctionHandle",
    "Job",
    "JobEnded",
    "JobEvent",
    "JobFailed",
    "JobHandle",
    "JobPhase",
    "JobStatus",
    "LogLine",
    "LossCause",
    "MapHandle",
    "NetworkTopology",
    "NotConfigured",
    "NotFound",
    "Partitions",
    "PodLoss",
    "Policy",
    "Queue",
    "QueueState",
    "QueueStatus",
    "Resources",
    "ResultUnavailable",
    "ServerError",
    "SharedFolder",
    "Task",
    "TaskFailed",
    "TaskFunction",
    "TaskOptions",
    "Unavailable",
    "VcbatchError",
    "Volume",
    "WaitReason",
    "WaitTimeout",
    "Waiting",
    "__version__",
    "env",
    "mpi",
    "pytorch",
    "ray",
    "ssh",
    "svc",
    "task",
    "tensorflow",
]


def __getattr__(name: str) -> Any:
    """Each name is imported when it is first used: most programs of vcbatch need none of these."""
    place = _PLACE_OF.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(place), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
