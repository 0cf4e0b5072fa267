"""Errors in custom plugins and actions: which one raised the error, and for which gang it was called."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import FrameType, TracebackType
from typing import NamedTuple

from vcbatch.scheduler.framework.policy import Extensions
from vcbatch.scheduler.model.objects import Job, Task
from vcbatch.scheduler.model.result import PluginFailure
from vcbatch.scheduler.plugins.checked import WrongAnswer

_LONGEST = 200
_OWN = "vcbatch."


def blame(error: BaseException, extensions: Extensions) -> PluginFailure | None:
    """The custom plugin or action that raised the error, the innermost one if they called each other; None if none was
    being called."""
    names = _names(extensions)
    frames = list(_frames(error.__traceback__))
    if isinstance(error, WrongAnswer):
        return PluginFailure(
            name=_name(error.plugin, names),
            hook=error.hook,
            place=error.place,
            did="returned",
            error=str(error)[:_LONGEST],
            gang=_first_gang(error.asked) or _gang([frame for frame, _ in frames]),
        )
    called = _called(frames, names)
    return called and PluginFailure(
        name=called.name,
        hook=called.hook,
        place=called.place,
        error=f"{type(error).__name__}: {error}"[:_LONGEST],
        gang=_gang([outer for outer, _ in frames[: called.at + 1]]),
    )


def busy(innermost: FrameType | None, extensions: Extensions) -> tuple[str, str]:
    """The custom plugin or action that is being called, and its location as text; empty if none is."""
    frames: list[tuple[FrameType, int]] = []
    frame = innermost
    while frame is not None:
        frames.append((frame, frame.f_lineno))
        frame = frame.f_back
    called = _called(frames[::-1], _names(extensions))
    return ("", "") if called is None else (called.name, f"{called.name}.{called.hook} ({called.place})")


class _Called(NamedTuple):
    """`at` is the index of the frame in which the call began."""

    name: str
    hook: str
    place: str
    at: int


def _called(frames: Sequence[tuple[FrameType, int]], names: Mapping[object, str]) -> _Called | None:
    """The innermost call of a custom plugin or action; the frames begin with the outermost. None if there is no such
    call."""
    files = _files(names)
    owners = [
        _name(frame.f_locals.get("self"), names) or files.get(frame.f_code.co_filename, "") for frame, _ in frames
    ]
    at = next((at for at in range(len(owners) - 1, -1, -1) if owners[at]), None)
    if at is None:
        return None
    name = owners[at]
    while at and owners[at - 1] == name:
        at -= 1
    code = frames[at][0].f_code
    line = next(line for inner, line in reversed(frames) if inner.f_code.co_filename == code.co_filename)
    return _Called(name, code.co_name, f"{code.co_filename}:{line}", at)


def _names(extensions: Extensions) -> Mapping[object, str]:
    """The names of custom plugins and actions, by class."""
    plugins: dict[object, str] = {cls: name for name, cls in extensions.plugins.items()}
    return {**plugins, **{type(action): name for name, action in extensions.actions.items()}}


def _name(called: object, names: Mapping[object, str]) -> str:
    """The name of the class of this object, or of one of its base classes, in the scheduler configuration; empty if
    none."""
    return next((names[cls] for cls in type(called).__mro__ if cls in names), "")


def _files(names: Mapping[object, str]) -> Mapping[str, str]:
    """By file that defines such classes, the name of one of them: other code in the file, such as a class that a plugin
    returns, is attributed to it. Files of this package are left out."""
    found: dict[str, str] = {}
    for cls, name in names.items():
        module = getattr(cls, "__module__", "")
        file = getattr(sys.modules.get(module), "__file__", None)
        if file is not None and not module.startswith(_OWN):
            found.setdefault(file, name)
    return found


def _frames(traceback: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next


def _gang(frames: list[FrameType]) -> str:
    """The gang that the innermost call was for: only the arguments of the hook are searched."""
    for frame in reversed(frames):
        arguments = frame.f_code.co_varnames[: frame.f_code.co_argcount]
        gang = _first_gang(frame.f_locals.get(name) for name in arguments)
        if gang:
            return gang
    return ""


def _first_gang(values: Iterable[object]) -> str:
    for value in values:
        job = value.job if isinstance(value, Task) else value
        if isinstance(job, Job):
            return job.key
    return ""
