"""`vcbatch hypernode tree`: the hierarchy of network topology domains."""

from __future__ import annotations

import click

from vcbatch.api.names import GPU_RESOURCE
from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.output import note, say
from vcbatch.cli.base.table import Row, table
from vcbatch.cli.base.terminal import Terminal, Tone, terminal_of, wrap
from vcbatch.cli.resources.hypernode.members import patterns
from vcbatch.cli.resources.hypernode.network import Network, flaw_of, read_network, tier_of
from vcbatch.cli.resources.nodes_table import asked_of
from vcbatch.cli.resources.sections import document, width_of
from vcbatch.cli.resources.tree_lines import branch

_NAMED = 5


@click.command("tree")
@access_options
def command(access: Access) -> int:
    """Show the tree of HyperNodes with tier, number of nodes and requested resources."""
    network = access.once(lambda api: read_network(api))
    if not network.hypernodes:
        note("No HyperNodes: flat topology.")
        return 0
    say(tree_text(network, terminal_of()))
    return 0


def tree_text(network: Network, terminal: Terminal) -> str:
    """The tree, its errors, and the nodes outside of it."""
    return document([_tree(network, terminal), "\n".join(_flaws(network, terminal)), _outside(network)])


def _tree(network: Network, terminal: Terminal) -> str:
    inside = {child for name, place in network.places.items() for child in place.children if child != name}
    rows: list[Row] = [("HYPERNODE", "TIER", "NODES", "CPU REQ", "GPU REQ", "MEMBERS")]
    shown: set[str] = set()

    def walk(name: str, lasts: tuple[bool, ...]) -> None:
        again = name in shown
        shown.add(name)
        hypernode, load = network.hypernodes[name], network.asked(name)
        rows.append(
            (
                branch(lasts, terminal)[0] + name,
                tier_of(hypernode),
                str(network.size(name)),
                asked_of(load.cpu, network.has(name, "cpu")),
                asked_of(load.gpus, network.has(name, GPU_RESOURCE)),
                "see above" if again else ", ".join(patterns(hypernode)),
            )
        )
        children = network.places[name].children
        for child in () if again else children:
            walk(child, (*lasts, child == children[-1]))

    for name in [*sorted(network.places.keys() - inside), *sorted(network.places)]:
        if name not in shown:  # a cycle shows by "see above"
            walk(name, ())
    left_out = ({3, 4} if not network.nodes else set[int]()) | (set[int]() if network.has_gpus else {4})
    kept = [at for at in range(len(rows[0])) if at not in left_out]
    right = [place for place, at in enumerate(kept) if at in (2, 3, 4)]
    return table([[row[at] for at in kept] for row in rows], terminal=terminal, right=right, flexible=[len(kept) - 1])


def _flaws(network: Network, terminal: Terminal) -> list[str]:
    return [
        terminal.paint(line, Tone.BAD)
        for name, hypernode in sorted(network.hypernodes.items())
        if (flaw := flaw_of(hypernode))
        for line in wrap(f"{name}: {flaw}", width_of(terminal), hang="  ")
    ]


def _outside(network: Network) -> str:
    names = network.outside()
    if not names:
        return ""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"Nodes without a HyperNode: {', '.join(names[:_NAMED])}{more}"
