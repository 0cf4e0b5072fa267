"""`@task`: a function, with the options of its job."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import update_wrapper
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypedDict, TypeVar, Unpack, cast, overload

from vcbatch.api import names
from vcbatch.api.loose import Json
from vcbatch.api.phases import Action, Event
from vcbatch.interfaces import interpreter
from vcbatch.sdk.errors import VcbatchError
from vcbatch.sdk.frameworks import env as env_plugin
from vcbatch.sdk.functions.folder import Call, CallFolder, SharedFolder
from vcbatch.sdk.models.job import Job, Task
from vcbatch.sdk.models.parts import Policy, Resources, Volume
from vcbatch.sdk.models.wire import Quantity
from vcbatch.sdk.real_nodes import off_virtual_nodes

P = ParamSpec("P")
R = TypeVar("R")

_LOCAL_IMAGE = "vcbatch.dev/this-machine"
"""The placeholder for an image where containers are processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOptions:
    """How a function runs.

    Attributes:
        cpu, memory, gpus: the requests of one call.
        queue: the job's queue.
        image: on a cluster: an image that has the same version of Python, cloudpickle, and what the function imports.
        python: the interpreter in the image; on this machine the present one is used.
        shared: on a cluster: the directory through which calls and results are transferred.
        env: environment variables; they are part of the job.
        export: on this machine: the variables of the present process that calls get, in the format of `vcbatch run
        --export` ("ALL", "NONE", "HF_TOKEN,SEED=7"). Their values aren't part of the job.
        retries: how often a failed call is retried, each on its own. Losses by the infrastructure are retried in any
        case.
        at_most: the maximum of calls that run at the same time; without it, capacity is the only limit.
        time_limit: the maximum duration of one call with all its retries, from the start of its pod: in seconds, or in
        the format of `vcbatch run --time-limit` ("90s", "2h30m", "3d", "12:00:00"). A call that runs longer is
        terminated.
        extra: other fields of the job's manifest.
    """

    cpu: Quantity | None = None
    memory: Quantity | None = None
    gpus: int | None = None
    queue: str | None = None
    image: str | None = None
    python: str = "python3"
    shared: SharedFolder | None = None
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    export: str = "ALL"
    retries: int = 0
    at_most: int | None = None
    time_limit: float | str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        if self.retries < 0:
            raise ValueError(f"retries={self.retries}: want 0 or more")
        if self.at_most is not None and self.at_most < 1:
            raise ValueError(f"at_most={self.at_most}: want 1 or more")
        _ = self.seconds

    @property
    def seconds(self) -> int | None:
        """The time limit, rounded up; None without one. Raises `ValueError` where it is malformed."""
        given = self.time_limit
        if given is None:
            return None
        from vcbatch.api.time_limit import LONGEST
        from vcbatch.sdk.compose.request import time_limit_seconds

        try:
            seconds = time_limit_seconds(given) if isinstance(given, str) else math.ceil(given)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"time_limit={given!r}: {error}") from None
        if not 0 < seconds <= LONGEST:
            raise ValueError(f"time_limit={given!r}: want more than 0 and at most {LONGEST} seconds")
        return seconds


class Changes(TypedDict, total=False):
    """A subset of `TaskOptions`."""

    cpu: Quantity | None
    memory: Quantity | None
    gpus: int | None
    queue: str | None
    image: str | None
    python: str
    shared: SharedFolder | None
    env: Mapping[str, str]
    export: str
    retries: int
    at_most: int | None
    time_limit: float | str | None
    extra: Mapping[str, Any]


class TaskFunction(Generic[P, R]):
    """A function that runs in this process when it is called, and as a job when it is submitted:
    `client.submit(fn, 1, 2)`, `client.map(fn, [1, 2, 3])`."""

    def __init__(self, function: Callable[P, R], settings: TaskOptions) -> None:
        _check(function)
        self.function = function
        self.settings = settings
        update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def options(self, **changes: Unpack[Changes]) -> TaskFunction[P, R]:
        """Return the same function with changed `TaskOptions`. Raises `TypeError` for an unknown option."""
        return TaskFunction(self.function, replace(self.settings, **changes))

    def check(self, calls: Iterable[Call]) -> None:
        """Raises `TypeError` for arguments that don't match the function's signature."""
        try:
            signature = inspect.signature(self.function)
        except (TypeError, ValueError):  # functions written in C often have none
            return
        for args, kwargs in calls:
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{self.name}(): {error}") from None

    def __repr__(self) -> str:
        return f"<task {self.name}>"

    @property
    def name(self) -> str:
        """The name of the function; `function` where it has none."""
        return getattr(self.function, "__name__", "function")


def _check(function: Any) -> None:
    if not callable(function):
        raise TypeError(f"want a function, got {function!r}")
    if inspect.iscoroutinefunction(function):
        raise TypeError(f"{function!r} is asynchronous: want a plain function, which may call asyncio.run()")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{function!r} is a generator, which can't be sent back: want a function that returns a list")


def as_task(work: Callable[P, R]) -> TaskFunction[P, R]:
    """The function with the options of its job. Raises `TypeError` where `work` is no function."""
    return cast("TaskFunction[P, R]", work) if isinstance(work, TaskFunction) else TaskFunction(work, TaskOptions())


@overload
def task(function: Callable[P, R], /) -> TaskFunction[P, R]: ...


@overload
def task(
    *,
    cpu: Quantity | None = None,
    memory: Quantity | None = None,
    gpus: int | None = None,
    queue: str | None = None,
    image: str | None = None,
    python: str = "python3",
    shared: SharedFolder | None = None,
    env: Mapping[str, str] | None = None,
    export: str = "ALL",
    retries: int = 0,
    at_most: int | None = None,
    time_limit: float | str | None = None,
    extra: Mapping[str, Any] | None = None,
) -> Callable[[Callable[P, R]], TaskFunction[P, R]]: ...


def task(function: Callable[..., Any] | None = None, /, **settings: Any) -> Any:
    """Declare that a function can run as a job: `@task`, or with `TaskOptions`: `@task(gpus=1, memory="16Gi")`.

    The function is sent by value, with the objects that it refers to in the program or notebook where it is defined.
    Modules that it imports have to be installed where it runs. Returns a `TaskFunction`; raises `TypeError` for an
    unknown option.
    """
    given = {key: value for key, value in settings.items() if value is not None}
    options = TaskOptions(**given)
    if function is not None:
        return TaskFunction(function, options)
    return lambda decorated: TaskFunction(decorated, options)


def job_of(function: TaskFunction[..., Any], *, count: int, token: str, folder: CallFolder) -> Job:
    """The job that makes `count` calls, each in a pod of its own: they start as capacity allows, a failed one doesn't
    stop the others, and the job fails in the end. Raises `VcbatchError` where a cluster has no image for it."""
    settings = function.settings
    if folder.remote and not settings.image:
        hint = "Name one with the same version of Python, and cloudpickle: fn.options(image=...)."
        raise VcbatchError(f"{function.name}() needs an image to run on a cluster", hint=hint)
    asked = Resources.of(cpu=settings.cpu, memory=settings.memory, gpus=settings.gpus)
    shared = settings.shared
    spec: Json = {} if folder.remote else {"affinity": off_virtual_nodes()}
    if settings.seconds is not None:
        spec["activeDeadlineSeconds"] = settings.seconds
    work = Task(
        name="call",
        replicas=count,
        min_available=1,
        image=settings.image or _LOCAL_IMAGE,
        command=[*([settings.python] if folder.remote else interpreter.python()), f"{folder.there}/run.py"],
        env={"PYTHONUNBUFFERED": "1", **settings.env},
        resources=asked if asked.requests else None,
        working_dir=None if folder.remote else str(Path.cwd()),
        extra={"template": {"spec": spec}} if spec else {},
    )
    slug = re.sub(r"[^a-z0-9]+", "-", function.name.lower()).strip("-")[:30] or "function"
    annotations = {names.CALL_FOLDER: token}
    if settings.at_most is not None:
        annotations[names.MAX_PARALLEL_PODS] = str(settings.at_most)
    return Job(
        extra=settings.extra,
        name=f"{slug}-{token[:8]}",
        queue=settings.queue,
        min_available=1,
        min_success=count,
        tasks=[work],
        policies=[Policy(event=Event.POD_EVICTED, action=Action.RESTART_POD)],
        plugins=env_plugin(),
        annotations=annotations,
        volumes=[Volume(mount_path=shared.mount_path, claim_name=shared.claim)] if shared is not None else (),
    )
