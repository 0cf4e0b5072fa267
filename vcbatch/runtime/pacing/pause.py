"""Waiting that something may cut short."""

from __future__ import annotations

import asyncio

from vcbatch.seams.clock import Clock


async def pause(clock: Clock, seconds: float, *, woken: asyncio.Event) -> None:
    """Return after so many seconds of that clock, or as soon as `woken` is set."""
    timer = asyncio.ensure_future(clock.sleep(seconds))
    event = asyncio.ensure_future(woken.wait())
    try:
        await asyncio.wait((timer, event), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (timer, event):
            task.cancel()
        await asyncio.gather(timer, event, return_exceptions=True)
