"""Nodes with the requests of their pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vcbatch.api.names import GPU_RESOURCE
from vcbatch.api.pod_usage import pod_usage
from vcbatch.api.quantity import NANO, ZERO, Quantity
from vcbatch.cli.base.fields import dig, name_of, objects, quantities, text
from vcbatch.cli.base.table import Cell, Row, table
from vcbatch.cli.base.terminal import PLAIN, Terminal, Tone

Json = dict[str, Any]

ENDED = ("Succeeded", "Failed")
"""Phases of pods that no longer use capacity."""


@dataclass(slots=True)
class Load:
    """The sum of requests and the number of pods, of one node or of all."""

    cpu: Quantity = ZERO
    memory: Quantity = ZERO
    gpus: Quantity = ZERO
    pods: int = 0

    def add(self, pod: Json) -> None:
        """Add a pod."""
        usage = pod_usage(dig(pod, "spec") or {})
        self.cpu = self.cpu + usage.get("cpu", ZERO)
        self.memory = self.memory + usage.get("memory", ZERO)
        self.gpus = self.gpus + usage.get(GPU_RESOURCE, ZERO)
        self.pods += 1

    def __add__(self, other: Load) -> Load:
        return Load(
            cpu=self.cpu + other.cpu,
            memory=self.memory + other.memory,
            gpus=self.gpus + other.gpus,
            pods=self.pods + other.pods,
        )


def on_node(pod: Json) -> str:
    """The node whose capacity the pod uses; empty for an unscheduled or finished pod."""
    return "" if text(pod, "status", "phase") in ENDED else text(pod, "spec", "nodeName")


def loads_of(pods: Sequence[Json]) -> dict[str, Load]:
    """The loads by node, of unfinished pods."""
    found: dict[str, Load] = {}
    for pod in pods:
        if node := on_node(pod):
            found.setdefault(node, Load()).add(pod)
    return found


def node_state(node: Json) -> Cell:
    """Whether it is ready and schedulable."""
    ready = any(
        text(one, "type") == "Ready" and text(one, "status") == "True" for one in objects(node, "status", "conditions")
    )
    cordoned = ",cordoned" if dig(node, "spec", "unschedulable") is True else ""
    return Cell(f"{'Ready' if ready else 'NotReady'}{cordoned}", Tone.GOOD if ready and not cordoned else Tone.BAD)


def nodes_table(
    nodes: Sequence[Json],
    loads: Mapping[str, Load],
    *,
    most: int | None = None,
    indent: str = "",
    terminal: Terminal = PLAIN,
) -> str:
    """A line for each node, at most `most`: requested and allocatable quantities. GPUs only where there are any."""
    rows: list[Row] = [("NODE", "STATUS", "CPU REQ", "MEMORY REQ", "GPU REQ", "PODS")]
    shown = nodes if most is None else nodes[:most]
    gpus = False
    for node in shown:
        load, has = loads.get(name_of(node), Load()), quantities(node, "status", "allocatable")
        gpus = gpus or bool(has.get(GPU_RESOURCE))
        rows.append(
            (
                name_of(node),
                node_state(node),
                asked_of(load.cpu, has.get("cpu", ZERO)),
                f"{gibibytes(load.memory)}/{gibibytes(has.get('memory', ZERO))} GiB",
                asked_of(load.gpus, has.get(GPU_RESOURCE, ZERO)),
                f"{load.pods}/{has.get('pods', ZERO).value()}",
            )
        )
    if not gpus:
        rows = [[*row[:4], row[5]] for row in rows]
    lines = table(rows, indent=indent, terminal=terminal)
    hidden = len(nodes) - len(shown)
    return f"{lines}\n{indent}... and {hidden} more (--all)" if hidden else lines


def asked_of(asked: Quantity, has: Quantity) -> str:
    """Requested and total number of a countable resource: `7.5/96`."""
    return f"{asked.milli() / 1000:g}/{has.value()}"


def gibibytes(quantity: Quantity) -> str:
    """The quantity in GiB with one digit, without the unit."""
    return f"{quantity.nano / NANO / 2**30:.1f}"
