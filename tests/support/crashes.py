"""Crashes of running tasks: the current await of a task raises an exception."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


class InjectedError(RuntimeError):
    """An unexpected defect."""


def crash(name: str) -> bool:
    """Raise in the tasks of that name at their current awaits; False where none of them waits now."""
    found = [task for task in asyncio.all_tasks() if task.get_name() == name]
    assert found, f"no task is called {name}"
    failed = [_fail(task) for task in found]
    return any(failed)


async def until(holds: Callable[[], bool]) -> None:
    """Return once `holds` is true, within a minute."""
    for _ in range(6000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never held")


def _fail(task: asyncio.Task[Any]) -> bool:
    """Raise in the task; one that waits for a task group fails through a task of that group."""
    awaited: Any = task.get_coro()
    while (inner := getattr(awaited, "cr_await", None)) is not None and hasattr(inner, "cr_frame"):
        awaited = inner
    owner = awaited.cr_frame.f_locals.get("self") if awaited.cr_frame is not None else None
    if isinstance(owner, asyncio.TaskGroup):
        members: Any = vars(owner)["_tasks"]
        return any(_fail(member) for member in sorted(members, key=asyncio.Task.get_name))
    waiter: Any = getattr(task, "_fut_waiter", None)
    if waiter is None or waiter.done():
        return False
    if isinstance(waiter, asyncio.Task):
        return _fail(waiter)
    waiter.set_exception(InjectedError("injected"))
    return True
