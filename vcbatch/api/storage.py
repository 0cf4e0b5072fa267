"""Claims, volumes and storage classes as controllers and the scheduler read them: reduced to the fields that they
need."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from vcbatch.api.meta import ObjectMeta, Wire
from vcbatch.api.pod import ResourceRequirements


class ClaimPhase(StrEnum):
    """`status.phase` of a PersistentVolumeClaim."""

    PENDING = "Pending"
    BOUND = "Bound"
    LOST = "Lost"


class AccessMode(StrEnum):
    """By how many nodes or pods a volume may be mounted at once."""

    READ_WRITE_ONCE = "ReadWriteOnce"
    READ_ONLY_MANY = "ReadOnlyMany"
    READ_WRITE_MANY = "ReadWriteMany"
    READ_WRITE_ONCE_POD = "ReadWriteOncePod"


class BindingMode(StrEnum):
    """When a claim of a storage class is bound to a volume."""

    IMMEDIATE = "Immediate"
    WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"


NO_PROVISIONER = "kubernetes.io/no-provisioner"
"""The provisioner of a class whose volumes administrators create."""


class ClaimSpec(Wire):
    """`storage_class_name` is None where it isn't set, and empty where no class is wanted."""

    access_modes: list[str] | None = None
    resources: ResourceRequirements | None = None
    selector: dict[str, Any] | None = None
    storage_class_name: str | None = None
    volume_mode: str = "Filesystem"
    volume_name: str = ""


class ClaimStatus(Wire):
    phase: str = ""


class Claim(Wire):
    """A PersistentVolumeClaim."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: ClaimSpec = msgspec.field(default_factory=ClaimSpec)
    status: ClaimStatus = msgspec.field(default_factory=ClaimStatus)


class ClaimReference(Wire):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class VolumeNodeAffinity(Wire):
    required: dict[str, Any] | None = None


class CsiSource(Wire):
    driver: str = ""


class VolumeSpec(Wire):
    access_modes: list[str] | None = None
    capacity: dict[str, str | int | float] | None = None
    claim_ref: ClaimReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    storage_class_name: str = ""
    volume_mode: str = "Filesystem"
    csi: CsiSource | None = None


class PersistentVolumeStatus(Wire):
    phase: str = ""


class PersistentVolume(Wire):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: VolumeSpec = msgspec.field(default_factory=VolumeSpec)
    status: PersistentVolumeStatus = msgspec.field(default_factory=PersistentVolumeStatus)


class StorageClass(Wire):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    provisioner: str = ""
    volume_binding_mode: str = BindingMode.IMMEDIATE
    allowed_topologies: list[dict[str, Any]] | None = None


class DriverAllocatable(Wire):
    count: int | None = None


class CsiNodeDriver(Wire):
    name: str = ""
    allocatable: DriverAllocatable | None = None


class CsiNodeSpec(Wire):
    drivers: list[CsiNodeDriver] | None = None


class CsiNode(Wire):
    """The storage drivers of the node of the same name, as they report themselves."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: CsiNodeSpec = msgspec.field(default_factory=CsiNodeSpec)


class CsiDriverSpec(Wire):
    storage_capacity: bool | None = None


class CsiDriver(Wire):
    """A storage driver; whether it publishes its remaining capacity."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: CsiDriverSpec = msgspec.field(default_factory=CsiDriverSpec)


class CsiStorageCapacity(Wire):
    """The remaining capacity for volumes of a class on the nodes that the topology selects; without a topology, on no
    node."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    storage_class_name: str = ""
    node_topology: dict[str, Any] | None = None
    capacity: str | int | float | None = None
    maximum_volume_size: str | int | float | None = None
