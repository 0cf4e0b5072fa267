"""The report of a server that is ready."""

from __future__ import annotations

from typing import Any

from vcbatch.api.names import GPU_RESOURCE
from vcbatch.api.quantity import parse_quantity
from vcbatch.api.resources import NODES
from vcbatch.cli.base.lost_state import warnings_of
from vcbatch.cli.local.kubelets import Kubelets
from vcbatch.cli.local.options import LocalOptions
from vcbatch.cli.local.unfinished import continued
from vcbatch.local.apiserver.server import EmbeddedServer

Report = dict[str, Any]


async def report_of(server: EmbeddedServer, kubelets: Kubelets, options: LocalOptions) -> Report:
    """The address, the kubeconfig, the capacity for pods and warnings, as text."""
    virtual_nodes = options.virtual_nodes
    machine = "no local pods"
    if kubelets.node_name is not None:
        machine = _size((await server.api.get(NODES, kubelets.node_name))["status"]["allocatable"])
        machine += f"; pods run as local processes ({kubelets.mode})"
    if virtual_nodes:
        machine += f"; {_count(virtual_nodes, 'virtual node')}"
    warnings = warnings_of(options.state, losses=server.losses, pods=kubelets.unaccounted)
    return {
        "server": server.url,
        "kubeconfig": str(server.kubeconfig),
        "machine": machine,
        "warnings": warnings,
        "jobs": await continued(server.api),
    }


def _size(capacity: dict[str, str]) -> str:
    text = f"{_count(parse_quantity(capacity['cpu']).value(), 'CPU')}, {_memory(capacity['memory'])}"
    gpus = int(capacity.get(GPU_RESOURCE, "0"))
    return f"{text}, {_count(gpus, 'GPU')}" if gpus else text


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _memory(quantity: str) -> str:
    return f"{parse_quantity(quantity).value() / 2**30:.0f} GiB"
