"""`vcbatch hypernode tree`: which domains of the network lie in which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from vcbatch.api.hypernode import MemberType
from vcbatch.api.loose import part
from vcbatch.api.resources import HYPERNODES
from vcbatch.cli.access import Access, access_options
from vcbatch.cli.output import note, say
from vcbatch.cli.resources.branches import branch
from vcbatch.cli.resources.fields import name_of, number, objects, text
from vcbatch.cli.table import Row, table
from vcbatch.cli.terminal import Terminal, terminal_of
from vcbatch.seams.api import Api

Json = dict[str, Any]


@click.command("tree")
@access_options
def command(access: Access) -> int:
    """Show the HyperNodes below those that they are members of, with their tiers and how many nodes each has."""

    async def fetch(api: Api) -> Sequence[Json]:
        return (await api.list(HYPERNODES)).items

    domains = access.once(fetch)
    if not domains:
        note("No hypernodes: the scheduler takes all nodes for equally near to each other.")
        return 0
    say(tree_text({name_of(domain): domain for domain in domains}, terminal_of()))
    return 0


def tree_text(domains: Mapping[str, Json], terminal: Terminal) -> str:
    """Members that are named one by one are below their domain; those chosen by a pattern are told by it."""
    children = {name: [one for one in _named(domain) if one in domains] for name, domain in domains.items()}
    inside = {child for name, below in children.items() for child in below if child != name}
    rows: list[Row] = [("HYPERNODE", "TIER", "NODES", "MEMBERS")]
    shown: set[str] = set()

    def walk(name: str, lasts: tuple[bool, ...]) -> None:
        domain = domains[name]
        again = name in shown
        shown.add(name)
        tier = " ".join(filter(None, (str(number(domain, "spec", "tier")), text(domain, "spec", "tierName"))))
        members = "see above" if again else ", ".join(_patterns(domain))
        head = branch(lasts, terminal)[0] + name
        rows.append((head, tier, str(number(domain, "status", "nodeCount")), members))
        if not again:
            for child in children[name]:
                walk(child, (*lasts, child == children[name][-1]))

    for name in [*(name for name in domains if name not in inside), *domains]:
        if name not in shown:  # of a circle, that it is one shows by "see above"
            walk(name, ())
    return table(rows, terminal=terminal, right=(2,), flexible=(3,))


def _named(domain: Json) -> Iterator[str]:
    for member in objects(domain, "spec", "members"):
        if text(member, "type") == MemberType.HYPERNODE and (name := text(member, "selector", "exactMatch", "name")):
            yield name


def _patterns(domain: Json) -> Iterator[str]:
    """What it has beside HyperNodes by name."""
    by_name = 0
    for member in objects(domain, "spec", "members"):
        kind, selector = text(member, "type"), part(member, "selector")
        if pattern := text(selector, "regexMatch", "pattern"):
            yield f"{kind}s like /{pattern}/"
        elif selector.get("labelMatch"):
            yield f"{kind}s by labels"
        elif kind == MemberType.NODE:
            by_name += 1
    if by_name:
        yield f"{by_name} nodes by name"
