"""`vcbatch cluster`: capacity, requests and pending jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import click

from vcbatch.api.names import GPU_RESOURCE
from vcbatch.api.pod_usage import pod_usage
from vcbatch.api.quantity import ZERO, Quantity
from vcbatch.api.resources import HYPERNODES, JOBS, NODES, PODS, QUEUES
from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.fields import quantities
from vcbatch.cli.base.output import say
from vcbatch.cli.base.table import Row, table
from vcbatch.cli.base.terminal import Terminal, terminal_of
from vcbatch.cli.resources.kinds import job_phase, queue_state
from vcbatch.cli.resources.nodes_table import loads_of, node_state, nodes_table, on_node
from vcbatch.cli.resources.queue.tree import shown
from vcbatch.cli.resources.reading import readable, within_reach
from vcbatch.cli.resources.sections import document, facts, section
from vcbatch.interfaces.api import Api

Json = dict[str, Any]

_NODES_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterScreen:
    """The data of the screen; None for parts that can't be read."""

    server: str
    nodes: Sequence[Json] | None = ()
    pods: Sequence[Json] = ()
    queues: Sequence[Json] | None = ()
    jobs: Sequence[Json] | None = ()
    hypernodes: Sequence[Json] = ()


@click.command("cluster")
@click.option("--all", "-a", "show_all", is_flag=True, help="Show all nodes.")
@access_options
def command(access: Access, show_all: bool) -> int:
    """Show nodes, requested resources, and the number of jobs by phase."""

    async def fetch(api: Api) -> ClusterScreen:
        return ClusterScreen(
            server=access.connection().server,
            nodes=await readable(api, NODES),
            pods=await within_reach(api, PODS),
            queues=await readable(api, QUEUES),
            jobs=await readable(api, JOBS),
            hypernodes=await within_reach(api, HYPERNODES),
        )

    say(cluster_text(access.once(fetch), terminal_of(), show_all=show_all))
    return 0


def cluster_text(screen: ClusterScreen, terminal: Terminal, *, show_all: bool = False) -> str:
    """The text of the screen."""
    loads = loads_of(screen.pods)
    nodes = screen.nodes or ()
    ready = sum(node_state(node).text == "Ready" for node in nodes)
    most = None if show_all else _NODES_SHOWN
    return document(
        [
            facts(
                [
                    ("Server", screen.server),
                    ("Nodes", f"{ready} of {len(nodes)} ready" if screen.nodes is not None else ""),
                    ("Queues", _counted(screen.queues, queue_state)),
                    ("Network", _network(screen.hypernodes)),
                    ("Jobs", _counted(screen.jobs, job_phase)),
                ],
                terminal,
            ),
            section("Resources", _totals(nodes, screen.pods, terminal), terminal),
            nodes_table(nodes, loads, most=most, terminal=terminal) if nodes else "",
        ]
    )


def _network(hypernodes: Sequence[Json]) -> str:
    if not hypernodes:
        return ""
    from vcbatch.cli.resources.hypernode.network import flaw_of, tiers_text

    flawed = sum(bool(flaw_of(one)) for one in hypernodes)
    return f"{tiers_text(hypernodes)}{f'; {flawed} invalid' if flawed else ''}"


def _counted(objects: Sequence[Json] | None, word: Callable[[Json], str]) -> str:
    """The number of objects in each state; empty where that isn't known."""
    if objects is None:
        return ""
    counts = Counter(map(word, objects))
    return ", ".join(f"{count} {word}" for word, count in sorted(counts.items())) or "none"


def _totals(nodes: Sequence[Json], pods: Sequence[Json], terminal: Terminal) -> str:
    has: dict[str, Quantity] = {}
    for node in nodes:
        for name, quantity in quantities(node, "status", "allocatable").items():
            has[name] = has.get(name, ZERO) + quantity
    asked: dict[str, Quantity] = {}
    for pod in pods:
        if on_node(pod):
            for name, quantity in pod_usage(pod["spec"]).items():
                asked[name] = asked.get(name, ZERO) + quantity
    rows: list[Row] = [("RESOURCE", "CAPACITY", "REQUESTED", "FREE")]
    names = [name for name in ("cpu", "memory", GPU_RESOURCE) if name in has]
    for name in names + sorted(name for name in has if "/" in name and name != GPU_RESOURCE and has[name]):
        used = asked.get(name, ZERO)
        rows.append((name, *(shown(quantity, name) for quantity in (has[name], used, has[name] - used))))
    return table(rows, indent="  ", terminal=terminal, right=(1, 2, 3)) if len(rows) > 1 else ""
