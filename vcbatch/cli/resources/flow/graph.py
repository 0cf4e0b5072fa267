"""`vcbatch jobflow graph`: the dependencies between a flow's jobs, and the state of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import click

from vcbatch.api.phases import JobPhase
from vcbatch.api.resources import JOBFLOWS
from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.fields import name_of, text
from vcbatch.cli.base.names import flow_names
from vcbatch.cli.base.output import say
from vcbatch.cli.base.table import Cell, Row, table
from vcbatch.cli.base.terminal import Terminal, Tone, terminal_of
from vcbatch.cli.resources.flow.nodes import Node, layers, nodes_of, tree
from vcbatch.cli.resources.kinds import flow_phase, toned
from vcbatch.cli.resources.tree_lines import branch
from vcbatch.interfaces.api import Api

Json = dict[str, Any]

_COLOURS: Final = {
    JobPhase.COMPLETED: "palegreen",
    JobPhase.RUNNING: "lightblue",
    JobPhase.FAILED: "lightcoral",
    JobPhase.TERMINATED: "lightcoral",
}


@click.command("graph")
@click.argument("name", shell_complete=flow_names)
@click.option(
    "-o", "--output", type=click.Choice(["text", "dot"]), default="text", show_default=True, help="Output format."
)
@access_options
def command(name: str, access: Access, output: str) -> int:
    """Show the dependency graph of a job flow.

    With -o dot, print it for Graphviz: vcbatch jobflow graph NAME -o dot | dot -Tsvg > flow.svg
    """

    async def fetch(api: Api) -> Json:
        return await api.get(JOBFLOWS, name, namespace=access.namespace)

    flow = access.once(fetch)
    say(dot(flow) if output == "dot" else graph(flow, terminal_of()))
    return 0


def graph(flow: Json, terminal: Terminal) -> str:
    """The tree, with each job once; its line lists the dependencies other than its parent in the tree."""
    nodes = nodes_of(flow)
    phase = toned(flow_phase(flow))
    done = sum(node.phase == JobPhase.COMPLETED for node in nodes.values())
    lines = [f"{name_of(flow)}: {terminal.paint(phase.text, phase.tone)}, {done} of {len(nodes)} jobs completed"]
    if message := text(flow, "status", "state", "message"):
        lines.append(message)
    rows: list[Row] = []
    above: list[str] = []
    for node, lasts in tree(nodes):
        del above[len(lasts) :]
        others = [target for target in node.targets if not above or target != above[-1]]
        above.append(node.name)
        rows.append((branch(lasts, terminal)[0] + node.name, _word(node), _remark(node, others)))
    if rows:
        lines.append(table(rows, terminal=terminal, flexible=[2]))
    _, circle = layers(nodes)
    if circle:
        lines.append(f"never start (cyclic dependency): {', '.join(circle)}")
    return "\n".join(lines)


def _word(node: Node) -> Cell:
    return Cell(node.word, Tone.BAD) if node.broken else toned(node.word)


def _remark(node: Node, others: list[str]) -> str:
    parts = [f"also after {', '.join(others)}"] if others else []
    if node.probes and not node.phase:
        parts.append("waits for its probe" if node.probes == 1 else "waits for its probes")
    return "; ".join(parts)


def dot(flow: Json) -> str:
    """The graph in the language of Graphviz."""
    return "\n".join(_dot(flow))


def _dot(flow: Json) -> Iterator[str]:
    nodes = nodes_of(flow)
    yield f"digraph {_quoted(name_of(flow))} {{"
    yield "  rankdir=LR;"
    yield "  node [shape=box, style=filled, fillcolor=white];"
    for node in nodes.values():
        colour = next((colour for phase, colour in _COLOURS.items() if phase == node.phase), "white")
        label = f"{node.name}\n{node.word}"
        yield f"  {_quoted(node.name)} [label={_quoted(label)}, fillcolor={colour}];"
    for node in nodes.values():
        for target in node.targets:
            style = ' [style=dashed, label="probe"]' if node.probes else ""
            yield f"  {_quoted(target)} -> {_quoted(node.name)}{style};"
    yield "}"


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
