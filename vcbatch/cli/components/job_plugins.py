"""Job plugins that users install alongside vcbatch: entry points of the group `vcbatch.job_plugins`."""

from __future__ import annotations

import logging
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, cast

from vcbatch.core.job.plugins import Factory, register

GROUP: Final = "vcbatch.job_plugins"
log = logging.getLogger(__name__)


def add_job_plugins() -> list[str]:
    """Register the installed plugins and return their names. One that can't be loaded is logged and skipped; only jobs
    that use it are affected, and admission rejects them."""
    added: list[str] = []
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            _add(entry)
        except Exception as error:  # any exception of third-party code
            log.error("job plugin %s can't be used: %s: %s", entry.name, type(error).__name__, error)
        else:
            added.append(entry.name)
    return added


def _add(entry: EntryPoint) -> None:
    plugin: Any = entry.load()
    flags = getattr(plugin, "FLAGS", {})
    if not callable(plugin) or not isinstance(flags, dict):
        raise TypeError(f"{entry.value} must be a class that takes a plan and flags, with a dict FLAGS")
    register(entry.name, flags=flags, make=cast("Factory", plugin))
