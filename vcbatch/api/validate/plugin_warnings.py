"""Warnings about job plugins: arguments that aren't parsed, and commands of the author that a plugin replaces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, cast

from vcbatch.api.flags import PLUGIN_FLAGS, parse_flags
from vcbatch.api.job import JobSpec, TaskSpec
from vcbatch.api.loose import listed
from vcbatch.api.model import Json
from vcbatch.api.names import Plugin

_LONGEST_SHOWN: Final = 40


def argument_warnings(spec: JobSpec, path: str) -> Iterator[str]:
    """Arguments that a plugin ignores. Go's flag package stops parsing at the first one that is unknown, that has a
    wrong value or that is no flag, and Volcano continues with those before it."""
    for name, arguments in spec.plugins.items():
        if name not in PLUGIN_FLAGS:
            continue
        flags = parse_flags(arguments, PLUGIN_FLAGS[name])
        if not flags.ignored:
            continue
        more = len(flags.ignored) - 1
        ignored = "it is ignored" if not more else f"it and the {more} after it are ignored"
        error = flags.error or f"{flags.ignored[0][:_LONGEST_SHOWN]!r} is no flag"
        yield f"{path}.plugins[{name}]: {error}; {ignored}"


def ray_warnings(spec: JobSpec, path: str) -> Iterator[str]:
    """The author's commands that the plugin ray replaces, as Volcano's does."""
    arguments = spec.plugins.get(Plugin.RAY)
    if arguments is None:
        return
    flags = parse_flags(arguments, PLUGIN_FLAGS[Plugin.RAY])
    containers = {flags.text("head"): flags.text("headContainer")}
    containers.setdefault(flags.text("worker"), flags.text("workerContainer"))
    found = [
        f"{path}.tasks[{index}].template.spec.{field}"
        for index, task in enumerate(spec.tasks)
        if task.name in containers
        for field in _commands(task, containers[task.name])
    ]
    if found:
        others = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        text = "the plugin ray replaces it by 'ray start'; run the program in another container, or by 'ray job submit'"
        yield f"{found[0]}{others}: {text}"


def _commands(task: TaskSpec, container: str) -> Iterator[str]:
    """The first field with a command, of each container of this name."""
    for index, given in enumerate(listed(task.pod_spec, "containers")):
        if isinstance(given, dict) and cast(Json, given).get("name") == container:
            written = next((key for key in ("command", "args") if cast(Json, given).get(key)), None)
            if written is not None:
                yield f"containers[{index}].{written}"
