"""Numatopologies (`nodeinfo.volcano.sh/v1alpha1`, cluster-scoped): the cpus of a node, and those that are free for
exclusive use. Volcano's resource exporter writes one for each node, under its name."""

from __future__ import annotations

import msgspec
from pydantic import Field

from vcbatch.api.meta import ObjectMeta, Wire
from vcbatch.api.model import Model, Object

CPU_MANAGER_POLICY = "CPUManagerPolicy"
TOPOLOGY_MANAGER_POLICY = "TopologyManagerPolicy"


class NumaResource(Model):
    """`allocatable` lists free units in the kernel's format (`0-3,8`)."""

    allocatable: str = ""
    capacity: int = 0


class NumaCpu(Model):
    """The location of one cpu; `core` is unique in its socket only."""

    numa: int = 0
    socket: int = 0
    core: int = 0


class NumatopologySpec(Model):
    """`policies` are the kubelet's; `numares` is by resource, `cpu_detail` by the number of the cpu."""

    policies: dict[str, str] = Field(default_factory=dict[str, str])
    res_reserved: dict[str, str] = Field(default_factory=dict[str, str])
    numares: dict[str, NumaResource] = Field(default_factory=dict[str, NumaResource])
    cpu_detail: dict[str, NumaCpu] = Field(default_factory=dict[str, NumaCpu])


class Numatopology(Object):
    spec: NumatopologySpec = Field(default_factory=NumatopologySpec)


# As the scheduler reads them ------------------------------------------------------------------------------------------


class NumaResourceView(Wire):
    allocatable: str = ""
    capacity: int = 0


class NumaCpuView(Wire):
    numa: int = 0
    socket: int = 0
    core: int = 0


class NumatopologySpecView(Wire):
    policies: dict[str, str] | None = None
    res_reserved: dict[str, str | int | float] | None = None
    numares: dict[str, NumaResourceView] | None = None
    cpu_detail: dict[str, NumaCpuView] | None = None


class NumatopologyView(Wire):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: NumatopologySpecView = msgspec.field(default_factory=NumatopologySpecView)
