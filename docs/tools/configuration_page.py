"""The page of the scheduler configuration: its default, and the arguments of plugins and actions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from docs.tools.page import code, page, table
from docs.tools.source import class_of
from vcbatch.scheduler.actions import ACTIONS
from vcbatch.scheduler.framework.arguments import Argument, ArgumentSpec
from vcbatch.scheduler.plugins import PLUGINS
from vcbatch.scheduler.policy.reader import DEFAULT_POLICY


def configuration_pages() -> dict[str, str]:
    """File name -> text."""
    parts = [
        (
            "The scheduler configuration is Volcano's `volcano-scheduler.conf`. [The scheduler](../scheduler.md) "
            "explains what its plugins and actions do, and [Queues and quotas](../queues.md) those for queues. Check a "
            "file with `vcbatch config check FILE`. The values of the Helm chart are in its "
            "[README](../../helm/vcbatch/README.md), and the options of the programs at "
            "[Operate a cluster](cli-operate-a-cluster.md).\n"
        ),
        f"## Default\n\n```yaml\n{DEFAULT_POLICY.strip()}\n```\n",
        "## Actions\n",
    ]
    for name, action in sorted(ACTIONS.items()):
        kind = type(action)
        parts += [f"### {name}\n", f"{_summary(kind)}\n", _arguments(action.arguments)]
    parts.append("## Plugins\n")
    for name, plugin in sorted(PLUGINS.items()):
        parts += [f"### {name}\n", f"{_summary(plugin)}\n", _arguments(plugin.ARGUMENTS)]
    return {"configuration.md": page("Scheduler configuration", *(part + "\n" for part in parts))}


def _summary(kind: type[object]) -> str:
    """The first paragraph of the class's docstring."""
    docstring = ast.get_docstring(class_of(kind.__module__, kind.__name__)) or ""
    return " ".join(docstring.partition("\n\n")[0].split())


def _arguments(spec: ArgumentSpec) -> str:
    rows = [*_rows(spec)]
    return table(("Argument", "Type", "Default"), rows) if rows else "No arguments.\n"


def _rows(spec: ArgumentSpec) -> Iterator[list[str]]:
    for name, argument in sorted(spec.named.items()):
        yield [code(name), _type(argument), code(_shown(argument.default))]
    for prefix, argument in sorted(spec.prefixed.items()):
        yield [code(f"{prefix}NAME"), _type(argument), code(_shown(argument.default))]
    for name in sorted(spec.structured):
        yield [code(name), "list or mapping", ""]


def _type(argument: Argument) -> str:
    kind = {bool: "boolean", int: "integer", float: "number", str: "string"}[type(argument.default)]
    return kind if argument.minimum is None else f"{kind}, at least {argument.minimum:g}"


def _shown(value: bool | float | str) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return value
        case _:
            return f"{value:g}"
