"""`vcbatch job top`: the requests of jobs, and their usage where a metrics server measures it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import click

from vcbatch.api import names
from vcbatch.api.names import GPU_RESOURCE
from vcbatch.api.pod_usage import Amounts, add, pod_usage
from vcbatch.api.quantity import ZERO, Quantity
from vcbatch.api.resources import POD_USAGES, PODS
from vcbatch.cli.base.access import Access, access_options
from vcbatch.cli.base.fields import NONE, name_of, namespace_of, objects, quantities, text, words
from vcbatch.cli.base.names import job_names
from vcbatch.cli.base.output import note, say
from vcbatch.cli.base.table import Row, table
from vcbatch.cli.base.terminal import Terminal, terminal_of
from vcbatch.cli.resources.nodes_table import ENDED
from vcbatch.cli.resources.queue.tree import shown
from vcbatch.interfaces.api import Api, ApiError

Json = dict[str, Any]

_RESOURCES = ("cpu", "memory")


@dataclass(slots=True)
class Use:
    """The data of one line: its pods, their requests, and their usage; None where it isn't measured."""

    pods: int = 0
    asked: Amounts = field(default_factory=dict[str, Quantity])
    used: Amounts | None = None


@click.command("top")
@click.argument("name", required=False, shell_complete=job_names)
@click.option("-A", "--all-namespaces", is_flag=True, help="All namespaces.")
@access_options
def command(access: Access, name: str | None, all_namespaces: bool) -> int:
    """Show resource requests and usage of jobs with active pods, or of each pod of job NAME."""
    if name is not None and all_namespaces:
        raise click.UsageError("-A and NAME are mutually exclusive")
    namespace = None if all_namespaces else access.namespace
    selector = names.JOB_NAME if name is None else f"{names.JOB_NAME}={name}"

    async def fetch(api: Api) -> tuple[Sequence[Json], Mapping[tuple[str, str], Amounts] | None]:
        pods = (await api.list(PODS, namespace=namespace, label_selector=selector)).items
        try:
            measured = (await api.list(POD_USAGES, namespace=namespace, label_selector=selector)).items
        except ApiError as error:
            if error.code not in (403, 404, 503):
                raise
            why = "metrics API not installed" if error.code == 404 else error.sentence
            note(f"usage unavailable: {why}")
            return pods, None
        return pods, {(namespace_of(one), name_of(one)): _measured(one) for one in measured}

    pods, used = access.once(fetch)
    lines = top_text(pods, used, terminal_of(), by_pod=name is not None, namespaces=all_namespaces)
    if not lines:
        note("No jobs with active pods." if name is None else f"No active pods in job {name}.")
        return 0
    say(lines)
    return 0


def top_text(
    pods: Sequence[Json],
    used: Mapping[tuple[str, str], Amounts] | None,
    terminal: Terminal,
    *,
    by_pod: bool = False,
    namespaces: bool = False,
) -> str:
    """A line for each job, or each pod, the largest first. Empty where there are none."""
    uses: dict[tuple[str, str], Use] = {}
    for pod in pods:
        if text(pod, "status", "phase") in ENDED:
            continue
        label = name_of(pod) if by_pod else words(pod, "metadata", "labels").get(names.JOB_NAME, "")
        use = uses.setdefault((namespace_of(pod), label), Use())
        use.pods += 1
        add(use.asked, pod_usage(pod.get("spec") or {}), times=1)
        if used is not None and (measured := used.get((namespace_of(pod), name_of(pod)))) is not None:
            use.used = use.used or {}
            add(use.used, measured, times=1)
    if not uses:
        return ""
    gpus = any(use.asked.get(GPU_RESOURCE) for use in uses.values())
    used_too = any(use.used is not None for use in uses.values())
    header = ["POD"] if by_pod else ["JOB", "PODS"]
    for resource in _RESOURCES:
        header += [f"{resource.upper()} USED"] * used_too + [f"{resource.upper()} REQ"]
    rows: list[Row] = [["NAMESPACE", *header] if namespaces else header]
    for (namespace, label), use in sorted(uses.items(), key=lambda item: (-_weight(item[1]), item[0])):
        row = [label] if by_pod else [label, str(use.pods)]
        for resource in _RESOURCES:
            if used_too:
                row.append(NONE if use.used is None else shown(use.used.get(resource, ZERO), resource))
            row.append(shown(use.asked.get(resource, ZERO), resource))
        rows.append([namespace, *row] if namespaces else row)
        if gpus:
            rows[-1] = [*rows[-1], shown(use.asked.get(GPU_RESOURCE, ZERO), GPU_RESOURCE)]
    if gpus:
        rows[0] = [*rows[0], "GPU REQ"]
    first = 2 if namespaces else 1
    return table(rows, terminal=terminal, right=range(first, len(rows[0])))


def _weight(use: Use) -> int:
    quantities = use.asked if use.used is None else use.used
    return quantities.get("cpu", ZERO).nano


def _measured(metrics: Json) -> Amounts:
    """The usage of all containers of a pod."""
    total: Amounts = {}
    for container in objects(metrics, "containers"):
        add(total, quantities(container, "usage"), times=1)
    return total
