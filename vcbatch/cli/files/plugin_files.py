"""Scheduler plugins and actions of users: installed entry points, and files named on the command line."""

from __future__ import annotations

import difflib
import importlib.util
import logging
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import click

from vcbatch.cli.base.output import CliError
from vcbatch.scheduler.actions import ACTIONS
from vcbatch.scheduler.framework.action import Action
from vcbatch.scheduler.framework.arguments import ArgumentSpec
from vcbatch.scheduler.framework.plugin import Plugin
from vcbatch.scheduler.framework.policy import Extensions
from vcbatch.scheduler.plugins import PLUGINS

PLUGIN_GROUP: Final = "vcbatch.scheduler.plugins"
ACTION_GROUP: Final = "vcbatch.scheduler.actions"
log = logging.getLogger(__name__)

_ALIKE: Final = 0.8
"""The similarity (`difflib`) from which one name counts as a misspelling of the other."""

F = TypeVar("F", bound=Callable[..., object])


class UnusableExtension(Exception):
    """A plugin or an action that doesn't have the documented form; the message says what is wrong with it."""


def extensions_option(function: F) -> F:
    """Add `--plugin FILE`; the command gets `extensions`, which also has the installed ones."""

    def read(context: click.Context, parameter: click.Parameter, value: Sequence[Path]) -> Extensions:
        return load(value)

    return click.option(
        "--plugin", "extensions", multiple=True, callback=read, metavar="FILE",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Python file that defines custom scheduler PLUGINS or ACTIONS; may be repeated.",
    )(function)  # fmt: skip


def load(files: Sequence[Path]) -> Extensions:
    """The installed extensions, and those that the files define.

    An installed one that can't be used is logged and skipped, so that only a policy that names it is rejected.

    Raises:
        CliError: a file can't be executed, defines no extension, or an invalid one.
    """
    plugins: dict[str, type[Plugin]] = {}
    actions: dict[str, Action] = {}
    for entry in sorted(entry_points(group=PLUGIN_GROUP), key=lambda entry: entry.name):
        _installed(entry, lambda name, found: plugins.__setitem__(name, _plugin(name, found)))
    for entry in sorted(entry_points(group=ACTION_GROUP), key=lambda entry: entry.name):
        _installed(entry, lambda name, found: actions.__setitem__(name, _action(name, found)))
    for path in files:
        module = _module(path)
        found = (_registry(module, "PLUGINS", path), _registry(module, "ACTIONS", path))
        if not any(found):
            raise CliError(
                f"{path}: defines neither PLUGINS nor ACTIONS", hint='For example: PLUGINS = {"my-plugin": MyClass}'
            )
        try:
            plugins.update({name: _plugin(name, cls) for name, cls in found[0].items()})
            actions.update({name: _action(name, cls) for name, cls in found[1].items()})
        except UnusableExtension as error:
            raise CliError(f"{path}: {error}") from error
    return Extensions(plugins=plugins, actions=actions)


def _installed(entry: EntryPoint, add: Callable[[str, object], None]) -> None:
    try:
        add(entry.name, entry.load())
    except Exception as error:  # any exception of third-party code
        log.error("%s (%s) can't be used: %s: %s", entry.name, entry.value, type(error).__name__, error)


def _module(path: Path) -> Any:
    name = f"vcbatch_plugin_{path.stem}_{abs(hash(path.resolve())):x}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise CliError(f"{path}: not a Python file (*.py)")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses need their module there
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # any exception of third-party code
        del sys.modules[name]
        raise CliError(f"{path}{_line(error, path)}: {type(error).__name__}: {error}") from error
    return module


def _line(error: BaseException, path: Path) -> str:
    """The line of the file in which the exception was raised."""
    if isinstance(error, SyntaxError):
        return f":{error.lineno}"
    here = path.absolute()
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if Path(f.filename) == here]
    return f":{lines[-1]}" if lines else ""


def _registry(module: Any, name: str, path: Path) -> Mapping[str, object]:
    found = getattr(module, name, {})
    if not isinstance(found, Mapping) or not all(
        isinstance(key, str) for key in cast("Mapping[object, object]", found)
    ):
        raise CliError(f"{path}: {name} must be a dict keyed by name, got {found!r}")
    return cast("Mapping[str, object]", found)


def _plugin(name: str, found: object) -> type[Plugin]:
    if not (isinstance(found, type) and issubclass(found, Plugin)):
        raise UnusableExtension(
            f"plugin {name!r} must be a subclass of vcbatch.scheduler.framework.plugin.Plugin, got {found!r}"
        )
    if name in PLUGINS:
        raise UnusableExtension(f"plugin name {name!r} is reserved by vcbatch")
    _refuse_misspelt(name, found)
    if not isinstance(cast("object", found.ARGUMENTS), ArgumentSpec):
        raise UnusableExtension(f"plugin {name!r}: ARGUMENTS must be an ArgumentSpec, got {found.ARGUMENTS!r}")
    return found


def _refuse_misspelt(name: str, cls: type[Plugin]) -> None:
    """Raise `UnusableExtension` for a public method whose name is similar to one of a plugin's: it would never be
    called."""
    hooks = [hook for hook in dir(Plugin) if not hook.startswith("_")]
    ours = set(hooks).union(*(vars(base) for base in cls.__mro__ if base.__module__.startswith("vcbatch.")))
    for base in cls.__mro__:
        for attribute in vars(base).keys() - ours if base is not object else ():
            close = difflib.get_close_matches(attribute, hooks, n=1, cutoff=_ALIKE)
            if close and not attribute.startswith("_"):
                raise UnusableExtension(
                    f"plugin {name!r}: {cls.__name__} defines {attribute!r}, which isn't a plugin hook; "
                    f"did you mean {close[0]!r}? (Rename a helper method to _{attribute}.)"
                )


def _action(name: str, found: object) -> Action:
    try:
        action = found() if isinstance(found, type) else found
    except Exception as error:  # any exception of third-party code
        raise UnusableExtension(
            f"action {name!r} can't be instantiated without arguments: {type(error).__name__}: {error}"
        ) from error
    if not callable(getattr(action, "execute", None)) or not isinstance(
        getattr(action, "arguments", None), ArgumentSpec
    ):
        raise UnusableExtension(
            f"action {name!r} must have a method execute(cycle) and an ArgumentSpec `arguments`, got {found!r}"
        )
    if name in ACTIONS:
        raise UnusableExtension(f"action name {name!r} is reserved by vcbatch")
    return cast("Action", action)
