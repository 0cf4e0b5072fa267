"""Errors in plugins and actions of the user's own: whose they are, and on which gang's behalf they were asked."""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType, TracebackType

from vcbatch.scheduler.model import Job, Task
from vcbatch.scheduler.policy import Extensions
from vcbatch.scheduler.result import PluginFailure


def blame(error: BaseException, extensions: Extensions) -> PluginFailure | None:
    """Whose error it is; None where none of these plugins and actions was being called."""
    names: dict[object, str] = {cls: name for name, cls in extensions.plugins.items()}
    names.update({type(action): name for name, action in extensions.actions.items()})
    frames = list(_frames(error.__traceback__))
    for at, (frame, _) in enumerate(frames):
        called: object = frame.f_locals.get("self")
        name = names.get(called.__class__)
        if name is None:
            continue
        file = frame.f_code.co_filename
        line = next(line for inner, line in reversed(frames) if inner.f_code.co_filename == file)
        return PluginFailure(
            name=name,
            hook=frame.f_code.co_name,
            place=f"{file}:{line}",
            error=f"{type(error).__name__}: {error}"[:200],
            gang=_gang([outer for outer, _ in frames[: at + 1]]),
        )
    return None


def _frames(traceback: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next


def _gang(frames: list[FrameType]) -> str:
    """The gang that the innermost call was about: of a hook only what it was given counts."""
    for frame in reversed(frames):
        arguments = frame.f_code.co_varnames[: frame.f_code.co_argcount]
        for name in arguments:
            value: object = frame.f_locals.get(name)
            job = value.job if isinstance(value, Task) else value
            if isinstance(job, Job):
                return job.key
    return ""
