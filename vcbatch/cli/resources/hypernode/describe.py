"""`vcbatch hypernode describe`: a network topology domain, its nodes, and the gangs that are placed in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import click

from vcbatch.api.names import JOB_ALLOCATED_HYPERNODE, NETWORK_TOPOLOGY_SOURCE
from vcbatch.api.resources import HYPERNODES, PODGROUPS
from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.fields import moment, words
from vcbatch.cli.base.names import hypernode_names
from vcbatch.cli.base.output import say
from vcbatch.cli.base.table import Cell
from vcbatch.cli.base.terminal import Terminal, Tone, terminal_of
from vcbatch.cli.resources.gangs import gangs_table
from vcbatch.cli.resources.hypernode.members import in_full
from vcbatch.cli.resources.hypernode.network import Network, flaw_of, read_network, tier_of
from vcbatch.cli.resources.nodes_table import node_state, nodes_table
from vcbatch.cli.resources.reading import events_of, priorities_in_reach, within_reach
from vcbatch.cli.resources.sections import document, events_text, facts, labels_text, moment_text, section
from vcbatch.core.waiting import Gang, gang_of
from vcbatch.interfaces.api import Api

Json = dict[str, Any]

_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainScreen:
    """A HyperNode and its network, with the gangs that are placed within it."""

    name: str
    network: Network
    gangs: Sequence[Gang] = ()
    events: Sequence[Json] = ()


@click.command("describe")
@click.argument("name", shell_complete=hypernode_names)
@click.option("--all", "-a", "show_all", is_flag=True, help="Show all nodes.")
@access_options
def command(name: str, access: Access, show_all: bool) -> int:
    """Show details of a HyperNode: position in the topology, nodes, gangs and events."""

    async def fetch(api: Api) -> DomainScreen:
        hypernode = await api.get(HYPERNODES, name)
        network = await read_network(api, hypernode)
        within = network.lineage(name)
        groups = [
            group
            for group in await within_reach(api, PODGROUPS)
            if words(group, "metadata", "annotations").get(JOB_ALLOCATED_HYPERNODE) in within
        ]
        priorities = await priorities_in_reach(api) if groups else {}
        gangs = [gang_of(group, priorities) for group in groups]
        return DomainScreen(name=name, network=network, gangs=gangs, events=await events_of(api, hypernode))

    say(described(access.once(fetch), terminal_of(), now=access.now(), show_all=show_all))
    return 0


def described(screen: DomainScreen, terminal: Terminal, *, now: datetime, show_all: bool = False) -> str:
    """The text of the screen."""
    network = screen.network
    nodes = [network.nodes[node] for node in sorted(network.places[screen.name].nodes)]
    running = sorted((gang for gang in screen.gangs if gang.holds), key=lambda gang: (gang.created or now, gang.key))
    members = "\n".join(f"  {line}" for line in in_full(network.hypernodes[screen.name]))
    most = None if show_all else _SHOWN
    return document(
        [
            facts(_facts(screen, now), terminal),
            section("Members", members, terminal),
            section("Nodes", nodes_table(nodes, network.loads, most=most, indent="  ", terminal=terminal), terminal)
            if nodes
            else "",
            section("Gangs", gangs_table(running, terminal, queue="", now=now, most=_SHOWN), terminal),
            section("Events", events_text(screen.events, terminal, now=now), terminal),
        ]
    )


def _facts(screen: DomainScreen, now: datetime) -> Iterator[tuple[str, str | Cell]]:
    name, network = screen.name, screen.network
    hypernode = network.hypernodes[name]
    yield "Name", name
    yield "Tier", tier_of(hypernode)
    yield "Parents", ", ".join(network.parents(name))
    yield "Children", ", ".join(network.places[name].children)
    yield "Nodes", _nodes(screen)
    yield "Error", Cell(flaw_of(hypernode), Tone.BAD)
    labels = words(hypernode, "metadata", "labels")
    yield "Source", labels.pop(NETWORK_TOPOLOGY_SOURCE, "manual")
    yield "Created", moment_text(moment(hypernode, "metadata", "creationTimestamp"), now)
    yield "Labels", labels_text(labels)


def _nodes(screen: DomainScreen) -> str:
    network, size = screen.network, screen.network.size(screen.name)
    if not network.nodes:
        return str(size)
    inside = network.places[screen.name].nodes
    ready = sum(node_state(network.nodes[node]).text == "Ready" for node in inside)
    return f"{ready} of {size} ready" if size else "none"
