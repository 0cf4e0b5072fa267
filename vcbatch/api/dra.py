"""Devices by claim (resource.k8s.io/v1) as the scheduler reads them. Rarely read fields stay decoded JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from vcbatch.api.meta import ObjectMeta, Wire
from vcbatch.api.node import Taint


class CelSelector(Wire):
    expression: str = ""


class DeviceSelector(Wire):
    cel: CelSelector | None = None


class DeviceClassSpec(Wire):
    selectors: list[DeviceSelector] | None = None
    config: list[dict[str, Any]] | None = None
    extended_resource_name: str | None = None


class DeviceClass(Wire):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: DeviceClassSpec = msgspec.field(default_factory=DeviceClassSpec)


class Pool(Wire):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


Amount = str | int | float
"""A quantity as on the wire."""


class Counter(Wire):
    value: Amount = 0


class CounterSet(Wire):
    """Counters by name, from which the devices of a pool consume."""

    name: str = ""
    counters: dict[str, Counter] | None = None


class CounterConsumption(Wire):
    """The consumption of a device from the counters of one set while it is allocated."""

    counter_set: str = ""
    counters: dict[str, Counter] | None = None
    compatibility_groups: list[str] | None = None


class CapacityRange(Wire):
    min: Amount | None = None
    max: Amount | None = None
    step: Amount | None = None


class CapacityRequestPolicy(Wire):
    """How much of a capacity one share of the device may use."""

    default: Amount | None = None
    valid_values: list[Amount] | None = None
    valid_range: CapacityRange | None = None


class DeviceCapacity(Wire):
    value: Amount = 0
    request_policy: CapacityRequestPolicy | None = None


class SliceDevice(Wire):
    """`attributes` and `capacity` by name, which may have a domain prefix."""

    name: str = ""
    attributes: dict[str, dict[str, Any]] | None = None
    capacity: dict[str, DeviceCapacity] | None = None
    taints: list[Taint] | None = None
    node_name: str | None = None
    node_selector: dict[str, Any] | None = None
    all_nodes: bool | None = None
    consumes_counters: list[CounterConsumption] | None = None
    allow_multiple_allocations: bool | None = None
    binds_to_node: bool | None = None
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] | None = None


class ResourceSliceSpec(Wire):
    driver: str = ""
    pool: Pool = msgspec.field(default_factory=Pool)
    node_name: str | None = None
    node_selector: dict[str, Any] | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: list[SliceDevice] | None = None
    shared_counters: list[CounterSet] | None = None


class ResourceSlice(Wire):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: ResourceSliceSpec = msgspec.field(default_factory=ResourceSliceSpec)


class DeviceTaintSelector(Wire):
    """Selects devices that match each field that is set; all devices where none is set."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Wire):
    device_selector: DeviceTaintSelector | None = None
    taint: Taint = msgspec.field(default_factory=Taint)


class DeviceTaintRule(Wire):
    """A taint that an administrator sets on devices; on none where it selects none."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: DeviceTaintRuleSpec = msgspec.field(default_factory=DeviceTaintRuleSpec)


class CapacityRequirements(Wire):
    requests: dict[str, Amount] | None = None


class DeviceRequest(Wire):
    """The request for devices of one kind: `exactly` has these fields, and so has each of `firstAvailable`."""

    name: str = ""
    device_class_name: str = ""
    selectors: list[DeviceSelector] | None = None
    allocation_mode: str = "ExactCount"
    count: int = 0
    admin_access: bool | None = None
    tolerations: list[dict[str, Any]] | None = None
    capacity: CapacityRequirements | None = None


class ClaimRequest(Wire):
    name: str = ""
    exactly: DeviceRequest | None = None
    first_available: list[DeviceRequest] | None = None


class DeviceConstraint(Wire):
    requests: list[str] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaim(Wire):
    requests: list[ClaimRequest] | None = None
    constraints: list[DeviceConstraint] | None = None
    config: list[dict[str, Any]] | None = None


class ResourceClaimSpec(Wire):
    devices: DeviceClaim = msgspec.field(default_factory=DeviceClaim)


class AllocatedDevice(Wire):
    """`share_id` where the device was allocated to this claim and may be shared with others."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, Amount] | None = None
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] | None = None


class AllocatedDevices(Wire):
    results: list[AllocatedDevice] | None = None
    config: list[dict[str, Any]] | None = None


class Allocation(Wire):
    devices: AllocatedDevices = msgspec.field(default_factory=AllocatedDevices)
    node_selector: dict[str, Any] | None = None
    allocation_timestamp: str | None = None


class Consumer(Wire):
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceCondition(Wire):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class AllocatedDeviceStatus(Wire):
    """The status that a driver reports for a device that was allocated to a claim."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: list[DeviceCondition] | None = None


class ResourceClaimStatus(Wire):
    allocation: Allocation | None = None
    reserved_for: list[Consumer] | None = None
    devices: list[AllocatedDeviceStatus] | None = None


class ResourceClaim(Wire):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: ResourceClaimSpec = msgspec.field(default_factory=ResourceClaimSpec)
    status: ResourceClaimStatus = msgspec.field(default_factory=ResourceClaimStatus)
