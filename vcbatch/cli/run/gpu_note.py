"""A note about GPUs that a job leaves unused."""

from __future__ import annotations

from typing import Any

from vcbatch.api import names
from vcbatch.api.pod import TERMINAL_PHASES
from vcbatch.api.quantity import MalformedQuantity, parse_quantity
from vcbatch.api.resources import NODES, PODS
from vcbatch.cli.base.access import Access
from vcbatch.cli.base.fields import words
from vcbatch.cli.base.output import CliError, note
from vcbatch.local.kubelet.devices import gpu_count

Json = dict[str, Any]


def note_free_gpus(access: Access) -> None:
    """Print how many GPUs of the real nodes are free, for a job that requests none; nothing where none is. A server
    that doesn't answer is reported by the submission itself."""
    try:
        nodes = access.once(lambda api: api.list(NODES)).items
        machines = [node for node in nodes if words(node, "metadata", "labels").get(names.VIRTUAL_NODE) != "true"]
        total = sum(map(_gpus_of, machines))
        if not total:
            return
        pods = access.once(lambda api: api.list(PODS)).items
    except CliError:
        return
    here = {node["metadata"]["name"] for node in machines}
    free = total - sum(_used(pod) for pod in pods if pod["spec"].get("nodeName") in here)
    if free > 0:
        are = "1 GPU is" if free == 1 else f"{free} GPUs are"
        note(f"note: {are} free on this machine and the job requests none; add --gpus N")


def _gpus_of(node: Json) -> int:
    try:
        return parse_quantity(words(node, "status", "allocatable").get(names.GPU_RESOURCE, "0")).value()
    except MalformedQuantity:
        return 0


def _used(pod: Json) -> int:
    """The GPUs that a pod holds: those of its containers, or of an init container where one requests more."""
    if (pod.get("status") or {}).get("phase") in TERMINAL_PHASES:
        return 0
    spec = pod["spec"]
    main = sum(gpu_count(container) for container in spec.get("containers") or ())
    return max([main, *(gpu_count(container) for container in spec.get("initContainers") or ())])
