"""`vcbatch queue tree`: the usage of queues as bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import click

from vcbatch.api.names import GPU_RESOURCE
from vcbatch.api.phases import QueueState
from vcbatch.api.quantity import NANO, ZERO, Quantity
from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.output import CliError, say
from vcbatch.cli.base.terminal import Terminal, Tone, cells, cut, terminal_of
from vcbatch.cli.resources.kinds import queue_state
from vcbatch.cli.resources.queue.usage import Entry, QueueUsage, usage_of
from vcbatch.cli.resources.reading import within_reach
from vcbatch.cli.resources.sections import width_of
from vcbatch.cli.resources.tree_lines import branch
from vcbatch.interfaces.api import Api

Json = dict[str, Any]

_BAR: Final = 30
_LONGEST_NAME: Final = 30
_GAP: Final = 2
_MEMORY_UNITS: Final = ((2**50, "Pi"), (2**40, "Ti"), (2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki"))
_IN_BYTES: Final = ("memory", "storage", "ephemeral-storage")


@click.command("tree")
@click.option(
    "--resource",
    metavar="NAME",
    help="Resource to show, e.g. cpu, memory or nvidia.com/gpu.  [default: GPUs if queues use any, else cpu]",
)
@access_options
def command(access: Access, resource: str | None) -> int:
    """Show the queue hierarchy with used, borrowed and pending resources.

    The length of a bar is the limit of the queue: its capability, that of the nearest ancestor, or cluster capacity.
    """
    from vcbatch.api.resources import NODES, PODGROUPS, QUEUES

    async def fetch(api: Api) -> tuple[QueueUsage, Sequence[Json]]:
        queues = (await api.list(QUEUES)).items
        return usage_of(queues, await within_reach(api, PODGROUPS)), await within_reach(api, NODES)

    usage, nodes = access.once(fetch)
    chosen = resource or default_resource(usage, nodes)
    total = cluster_total(nodes, chosen)
    known = {name for entry in usage.entries.values() for name in entry.resources()}
    if resource is not None and resource not in known and not total:
        raise CliError(
            f"unknown resource {resource}: no queue or node has it",
            hint=f"Available: {', '.join(sorted(known)) or 'none'}",
        )
    say("\n".join(tree_lines(usage, chosen, terminal_of(), total=total)))
    return 0


def default_resource(usage: QueueUsage, nodes: Sequence[Json]) -> str:
    """The scarce resource: GPUs where a queue uses them, or requests ones that exist; else cpu."""
    entries = usage.entries.values()
    held = {
        name
        for entry in entries
        for quantities in (entry.capability, entry.guarantee, entry.deserved, entry.allocated)
        for name, quantity in quantities.items()
        if quantity
    }
    wanted = {name for entry in entries for name in entry.resources()}
    known = held | {name for name in wanted if cluster_total(nodes, name)}
    gpus = sorted(name for name in known if name == GPU_RESOURCE or name.endswith(("/gpu", ".com/gpu")))
    return gpus[0] if gpus else "cpu"


def cluster_total(nodes: Sequence[Json], resource: str) -> Quantity:
    """The allocatable quantity of all nodes."""
    from vcbatch.cli.base.fields import quantities

    total = ZERO
    for node in nodes:
        total = total + quantities(node, "status", "allocatable").get(resource, ZERO)
    return total


def tree_lines(usage: QueueUsage, resource: str, terminal: Terminal, *, total: Quantity = ZERO) -> Iterator[str]:
    """The tree: for each queue a bar, with further information below it."""
    marks = _Marks.of(terminal)
    yield f"{resource}:  {marks.legend(terminal)}"
    rows = [(entry, branch(lasts, terminal)) for entry, lasts in usage.walk()]
    margin = min(max((cells(head + entry.name) for entry, (head, _) in rows), default=0), _LONGEST_NAME)
    for entry, (head, below) in rows:
        most = entry.capability.get(resource, ZERO) or max(total, entry.allocated.get(resource, ZERO))
        label = cut(head + entry.name, margin)
        blank = " " * (margin - cells(label) + _GAP)
        state = _state(entry, terminal)
        yield f"{label}{blank}{bar(entry, resource, most, terminal)}  {_numbers(entry, resource, most)}{state}".rstrip()
        details = list(_details(entry, resource))
        if details:
            indent = below + " " * (margin + _GAP - cells(below))
            yield from _wrapped(details, indent, width_of(terminal))


class _Marks:
    """The characters of a bar, and their tones."""

    def __init__(self, held: str, borrowed: str, admitted: str, free: str) -> None:
        self.held, self.borrowed, self.admitted, self.free = held, borrowed, admitted, free

    @staticmethod
    def of(terminal: Terminal) -> _Marks:
        return _Marks("█", "▓", "▒", "·") if terminal.unicode else _Marks("#", "+", "=", ".")

    def legend(self, terminal: Terminal) -> str:
        return (
            f"{terminal.paint(self.held, Tone.GOOD)} used  {terminal.paint(self.borrowed, Tone.WAITING)} borrowed  "
            f"{self.admitted} admitted  {self.free} free"
        )


def bar(entry: Entry, resource: str, most: Quantity, terminal: Terminal) -> str:
    """The bar: usage within the deserved share, borrowed usage, and quota reserved for admitted gangs."""
    marks = _Marks.of(terminal)
    if not most:
        return marks.free * _BAR
    held, borrowed = entry.allocated.get(resource, ZERO), entry.borrowed(resource)
    own = _length(held - borrowed, most)
    lent = max(_length(held, most) - own, 1 if borrowed and own < _BAR else 0)
    kept = min(_length(entry.admitted.get(resource, ZERO), most), _BAR - own - lent)
    free = _BAR - own - lent - kept
    return (
        terminal.paint(marks.held * own, Tone.GOOD)
        + terminal.paint(marks.borrowed * lent, Tone.WAITING)
        + marks.admitted * kept
        + marks.free * free
    )


def _length(quantity: Quantity, most: Quantity) -> int:
    """The length of a bar in cells: 0 for zero, at least one for a positive quantity, the whole bar only for all."""
    if quantity <= ZERO:
        return 0
    if quantity >= most:
        return _BAR
    return min(max(quantity.nano * _BAR // most.nano, 1), _BAR - 1)


def _numbers(entry: Entry, resource: str, most: Quantity) -> str:
    held = shown(entry.allocated.get(resource, ZERO), resource)
    return f"{held} of {shown(most, resource)}" if most else held


def _details(entry: Entry, resource: str) -> Iterator[str]:
    for word, quantity in (
        ("guaranteed", entry.guarantee.get(resource, ZERO)),
        ("deserved", entry.deserved.get(resource, ZERO)),
        ("borrowed", entry.borrowed(resource)),
        ("admitted", entry.admitted.get(resource, ZERO)),
        ("pending", entry.pending.get(resource, ZERO)),
    ):
        if quantity:
            yield f"{word} {shown(quantity, resource)}"


def _wrapped(details: Sequence[str], indent: str, width: int) -> Iterator[str]:
    line = indent
    for at, detail in enumerate(details):
        part = detail if at == 0 else f", {detail}"
        if cells(line + part) > width and line.strip(" │|") != "":
            yield f"{line},"
            line, part = indent, detail
        line += part
    yield line


def _state(entry: Entry, terminal: Terminal) -> str:
    if entry.queue is None:
        return "" if entry.children and entry.name == "root" else terminal.paint("  not found", Tone.BAD)
    state = queue_state(entry.queue)
    return "" if state == QueueState.OPEN else terminal.paint(f"  {state}", Tone.WAITING)


def shown(quantity: Quantity, resource: str) -> str:
    """A quantity in short form: `1.5Gi` for bytes, `12.5` for everything else."""
    if resource in _IN_BYTES:
        value = quantity.value()
        for size, suffix in _MEMORY_UNITS:
            if abs(value) >= size:
                return f"{value / size:.4g}{suffix}"
        return str(value)
    return f"{quantity.nano / NANO:.6g}"
