"""CPUs and GPUs of this machine, and their allocation to pods."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vcbatch.api.names import GPU_RESOURCE
from vcbatch.api.quantity import parse_quantity

Json = dict[str, Any]

_NVIDIA_SMI = ("nvidia-smi", "--query-gpu=index,uuid,name,memory.total", "--format=csv,noheader,nounits")
_NVIDIA_SMI_SECONDS = 10.0


class DevicesUnavailableError(Exception):
    """A pod requests more GPUs than are free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU as nvidia-smi names it."""

    index: int
    uuid: str
    name: str
    memory_mib: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Allotment:
    """The devices allocated to a pod, by container. A container that isn't listed may use every CPU and no GPU."""

    cpus: Mapping[str, Sequence[int]]
    gpus: Mapping[str, Sequence[str]]


def parse_gpus(text: str) -> list[Gpu]:
    """Parse nvidia-smi's CSV output for the query above; lines that aren't GPUs are skipped."""
    gpus: list[Gpu] = []
    for line in text.splitlines():
        fields = [part.strip() for part in line.split(",")]
        if len(fields) != 4 or not fields[0].isdigit() or not fields[1].startswith("GPU-"):
            continue
        memory = int(fields[3]) if fields[3].isdigit() else 0
        gpus.append(Gpu(index=int(fields[0]), uuid=fields[1], name=fields[2], memory_mib=memory))
    return sorted(gpus, key=lambda gpu: gpu.index)


async def find_gpus() -> list[Gpu]:
    """This machine's GPUs; none where nvidia-smi is missing, fails or doesn't answer. GPUs that an outer
    CUDA_VISIBLE_DEVICES hides from this process are not allocated."""
    try:
        process = await asyncio.create_subprocess_exec(
            *_NVIDIA_SMI, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
        )
    except OSError:
        return []
    try:
        output, _ = await asyncio.wait_for(process.communicate(), _NVIDIA_SMI_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
        return []
    if process.returncode != 0:
        return []
    return visible_gpus(parse_gpus(output.decode(errors="replace")), os.environ.get("CUDA_VISIBLE_DEVICES"))


def visible_gpus(gpus: Sequence[Gpu], visible: str | None) -> list[Gpu]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves, by CUDA's rule: the list ends at the first entry that names no GPU."""
    if visible is None:
        return list(gpus)
    chosen: list[Gpu] = []
    for entry in visible.split(","):
        name = entry.strip()
        match = next((g for g in gpus if name == str(g.index) or (name and g.uuid.startswith(name))), None)
        if match is None:
            break
        chosen.append(match)
    return chosen


class DeviceTable:
    """The allocation of CPUs and GPUs to pods. GPUs are exclusive; of the CPUs, those with the fewest users are
    chosen."""

    def __init__(self, *, cpus: Sequence[int], gpus: Sequence[Gpu]) -> None:
        self._cpus = sorted(cpus)
        self._gpus = list(gpus)
        self._allotted: dict[str, Allotment] = {}

    @property
    def has_gpus(self) -> bool:
        return bool(self._gpus)

    def restore(self, uid: str, allotment: Allotment) -> None:
        """Restore the allocation of a pod that a former kubelet made."""
        self._allotted[uid] = allotment

    def allot(self, pod: Json) -> Allotment:
        """Allocate devices to every container of a pod, once; raises `DevicesUnavailableError`."""
        uid = pod["metadata"]["uid"]
        if uid in self._allotted:
            return self._allotted[uid]
        busy = {gpu for allotment in self._allotted.values() for uuids in allotment.gpus.values() for gpu in uuids}
        free = [gpu.uuid for gpu in self._gpus if gpu.uuid not in busy]
        load = Counter(self._loads())
        cpus: dict[str, Sequence[int]] = {}
        gpus: dict[str, Sequence[str]] = {}
        main = list(pod["spec"].get("containers") or ())
        for container in (*main, *(pod["spec"].get("initContainers") or ())):
            name = container["name"]
            count = gpu_count(container)
            if count:
                gpus[name] = self._take_gpus(count, free, gpus, reuse=container not in main)
            chosen = self._choose_cpus(container, load)
            if chosen:
                cpus[name] = chosen
                load.update(chosen)
        allotment = Allotment(cpus=cpus, gpus=gpus)
        self._allotted[uid] = allotment
        return allotment

    def release(self, uid: str) -> None:
        self._allotted.pop(uid, None)

    def _take_gpus(
        self, count: int, free: list[str], given: Mapping[str, Sequence[str]], *, reuse: bool
    ) -> Sequence[str]:
        # Init containers run before the others and may use the same GPUs.
        mine = [uuid for uuids in given.values() for uuid in uuids] if reuse else []
        taken = (mine + free)[:count]
        if len(taken) < count:
            raise DevicesUnavailableError(
                "Allocate failed due to requested number of devices unavailable for"
                f" {GPU_RESOURCE}. Requested: {count}, Available: {len(mine) + len(free)}"
            )
        for uuid in taken:
            if uuid in free:
                free.remove(uuid)
        return taken

    def _choose_cpus(self, container: Json, load: Counter[int]) -> Sequence[int]:
        wanted = integral_cpus(container)
        if not wanted or wanted >= len(self._cpus):
            return ()
        return sorted(sorted(self._cpus, key=lambda cpu: (load[cpu], cpu))[:wanted])

    def _loads(self) -> Iterable[int]:
        for allotment in self._allotted.values():
            for cpus in allotment.cpus.values():
                yield from cpus


def gpu_count(container: Json) -> int:
    """The number of GPUs that a container requests; for extended resources the limit is the request."""
    resources = container.get("resources") or {}
    given = (resources.get("limits") or {}).get(GPU_RESOURCE, (resources.get("requests") or {}).get(GPU_RESOURCE))
    return 0 if given is None else parse_quantity(given).value()


def integral_cpus(container: Json) -> int:
    """The number of CPUs that a container requests, if it is an integer; else 0."""
    given = ((container.get("resources") or {}).get("requests") or {}).get("cpu")
    milli = 0 if given is None else parse_quantity(given).milli()
    return milli // 1000 if milli % 1000 == 0 else 0


def gpu_environment(table: DeviceTable, uuids: Sequence[str]) -> dict[str, str]:
    """The variables that make exactly these GPUs visible to CUDA. Empty on a machine without any."""
    if not table.has_gpus:
        return {}
    return {"CUDA_VISIBLE_DEVICES": ",".join(uuids), "NVIDIA_VISIBLE_DEVICES": ",".join(uuids) or "void"}
