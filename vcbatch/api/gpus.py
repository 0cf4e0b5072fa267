"""Resource names that count whole accelerator devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from vcbatch.api.names import GPU_NUMBER, GPU_RESOURCE, VGPU_NUMBER

_COUNTED: Final = frozenset(
    {
        GPU_RESOURCE,
        "nvidia.com/gpu.shared",
        "amd.com/gpu",
        "gpu.intel.com/i915",
        "gpu.intel.com/xe",
        "habana.ai/gaudi",
        GPU_NUMBER,
        VGPU_NUMBER,
    }
)
_PREFIXES: Final = ("nvidia.com/mig-", "huawei.com/Ascend")
"""Partitions of NVIDIA's GPUs, one resource for each profile, and NPUs, one for each model."""


def is_gpu(resource: str) -> bool:
    """Whether the resource counts devices. Shares of a device (memory, cores) don't."""
    return resource in _COUNTED or (
        resource.startswith(_PREFIXES) and not resource.endswith(("-memory", "-core", "-cores"))
    )


def gpus_of(resources: Mapping[str, int]) -> int:
    """The number of devices in a list of quantities by resource name."""
    return sum(count for name, count in resources.items() if is_gpu(name))
