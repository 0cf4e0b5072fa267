"""CPUs and GPUs of this machine, and their allocation to pods."""

from __future__ import annotations

import asyncio
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vcbatch.api.names import GPU_RESOURCE
from vcbatch.api.quantity import parse_quantity

Json = dict[str, Any]

_QUERIES = (
    ("--query-gpu=index,uuid,name,memory.total,mig.mode.current", "--format=csv,noheader,nounits"),
    ("--query-gpu=index,uuid,name,memory.total", "--format=csv,noheader,nounits"),  # drivers without MIG
)
_LISTING = ("-L",)
_NVIDIA_SMI_SECONDS = 10.0
_LISTED_GPU = re.compile(r"GPU \d+: .*\(UUID: (GPU-[^)\s]+)\)")
_LISTED_MIG = re.compile(r"\s+MIG (\S+)\s+Device\s+\d+: \(UUID: (MIG-[^)\s]+)\)")
_PROFILE_MEMORY = re.compile(r"\.(\d+)gb")


class DevicesUnavailableError(Exception):
    """A pod requests more GPUs than are free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One device that CUDA can use, as nvidia-smi names it: a GPU, or a MIG device of one.

    `index` is that of the GPU, also for a MIG device, whose `gpu` is the UUID of the GPU. `partitioned` is True for a
    GPU in MIG mode, which itself can't be used.
    """

    index: int
    uuid: str
    name: str
    memory_mib: int
    gpu: str = ""
    partitioned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Allotment:
    """The devices allocated to a pod, by container. A container that isn't listed may use every CPU and no GPU."""

    cpus: Mapping[str, Sequence[int]]
    gpus: Mapping[str, Sequence[str]]


def parse_gpus(text: str) -> list[Gpu]:
    """Parse nvidia-smi's CSV output for one of the queries above; lines that aren't GPUs are skipped."""
    gpus: list[Gpu] = []
    for line in text.splitlines():
        fields = [part.strip() for part in line.split(",")]
        if len(fields) not in (4, 5) or not fields[0].isdigit() or not fields[1].startswith("GPU-"):
            continue
        memory = int(fields[3]) if fields[3].isdigit() else 0
        partitioned = fields[4:] == ["Enabled"]
        gpus.append(
            Gpu(index=int(fields[0]), uuid=fields[1], name=fields[2], memory_mib=memory, partitioned=partitioned)
        )
    return sorted(gpus, key=lambda gpu: gpu.index)


def with_mig_devices(gpus: Sequence[Gpu], listing: str) -> list[Gpu]:
    """The GPUs, with those in MIG mode replaced by their MIG devices; `listing` is the output of `nvidia-smi -L`."""
    devices: dict[str, list[tuple[str, str]]] = {}
    current = ""
    for line in listing.splitlines():
        if (gpu := _LISTED_GPU.match(line)) is not None:
            current = gpu[1]
        elif (mig := _LISTED_MIG.match(line)) is not None and current:
            devices.setdefault(current, []).append((mig[1], mig[2]))
    found: list[Gpu] = []
    for gpu in gpus:
        if gpu.uuid not in devices:
            found += [] if gpu.partitioned else [gpu]
            continue
        for profile, uuid in devices[gpu.uuid]:
            size = _PROFILE_MEMORY.search(profile)
            memory = int(size[1]) * 1024 if size else 0
            name = f"{gpu.name} MIG {profile}"
            found.append(Gpu(index=gpu.index, uuid=uuid, name=name, memory_mib=memory, gpu=gpu.uuid))
    return found


async def find_gpus() -> list[Gpu]:
    """This machine's GPUs and MIG devices; none where nvidia-smi is missing, fails or doesn't answer. Devices that an
    outer CUDA_VISIBLE_DEVICES hides from this process are not allocated."""
    for query in _QUERIES:
        text = await _nvidia_smi(query)
        if text is not None:
            gpus = with_mig_devices(parse_gpus(text), await _nvidia_smi(_LISTING) or "")
            return visible_gpus(gpus, os.environ.get("CUDA_VISIBLE_DEVICES"))
    return []


async def _nvidia_smi(arguments: Sequence[str]) -> str | None:
    """The output of nvidia-smi; None where it is missing, fails or doesn't answer."""
    try:
        process = await asyncio.create_subprocess_exec(
            "nvidia-smi", *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
        )
    except OSError:
        return None
    try:
        output, _ = await asyncio.wait_for(process.communicate(), _NVIDIA_SMI_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
        return None
    return output.decode(errors="replace") if process.returncode == 0 else None


def visible_gpus(gpus: Sequence[Gpu], visible: str | None) -> list[Gpu]:
    """The devices that CUDA_VISIBLE_DEVICES leaves, each once. By CUDA's rule the list ends at the first entry that
    names none. An entry that names a GPU in MIG mode leaves all its MIG devices."""
    if visible is None:
        return list(gpus)
    chosen: dict[str, Gpu] = {}
    for entry in visible.split(","):
        matches = _named(gpus, entry.strip())
        if not matches:
            break
        chosen |= {gpu.uuid: gpu for gpu in matches}
    return list(chosen.values())


def _named(gpus: Sequence[Gpu], entry: str) -> list[Gpu]:
    """The devices for an entry of CUDA_VISIBLE_DEVICES: an index, or the beginning of a UUID."""
    if not entry:
        return []
    own = next((gpu for gpu in gpus if gpu.uuid.startswith(entry)), None)
    if own is not None:
        return [own]
    parent = next((gpu.index for gpu in gpus if entry == str(gpu.index) or gpu.gpu.startswith(entry)), None)
    return [gpu for gpu in gpus if gpu.index == parent]


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
