"""The devices of a cluster, from the ResourceSlices that drivers publish."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from vcbatch.api.dra import (
    DeviceSelector,
    DeviceTaintRule,
    DeviceTaintSelector,
    ResourceSlice,
    ResourceSliceSpec,
    SliceDevice,
)
from vcbatch.api.node import Taint
from vcbatch.api.pod import Toleration
from vcbatch.scheduler.index.dra import expressions
from vcbatch.scheduler.index.dra.capacity import Capacity, Dimension, capacity_of
from vcbatch.scheduler.index.dra.counters import CounterId, Draws, Groups, draws_of, grouped_sets, groups_of, sizes
from vcbatch.scheduler.index.node_labels import NodeLabels
from vcbatch.scheduler.model.resources import Mask
from vcbatch.scheduler.model.selectors import HARD_EFFECTS, NodeAffinity, tolerates

_KINDS: Final = ("string", "bool", "int", "strings", "bools", "ints")
"""The types of attributes; lists with the feature gate DRAListTypeAttributes (KEP-5491)."""


class DeviceId(NamedTuple):
    driver: str
    pool: str
    name: str


@dataclass(frozen=True, eq=False, slots=True)
class Device:
    """One device. `view` is its form in expressions, `kind` a number that is equal for devices with equal views;
    `selector` is that of the nodes that reach it, None if it is on one node or reached from all. `draws` is its
    consumption of counters, `groups` its compatibility groups; `shared` if it can be allocated several times, each with
    a share of `capacity`. Pods that get it are bound when all of its `conditions` are true, and not while one of
    `failures` is; `stays` if it is reached only from the node of its first pod once it is allocated."""

    id: DeviceId
    kind: int
    view: Mapping[str, Any]
    taints: tuple[Taint, ...]
    local: bool
    selector: Mapping[str, Any] | None
    draws: Draws = ()
    groups: Groups = ()
    capacity: Capacity = field(default_factory=dict[str, Dimension])
    shared: bool = False
    conditions: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    stays: bool = False

    def attribute(self, name: str) -> frozenset[tuple[str, Any]]:
        """The values of a fully qualified attribute, of which a list has several; empty without it."""
        domain, _, bare = name.rpartition("/")
        value = self.view["attributes"].get(domain, {}).get(bare)
        return frozenset((type(one).__name__, one) for one in expressions.values_of(value))  # True is no 1

    def untolerated(self, tolerations: Sequence[Toleration]) -> Taint | None:
        """The first taint that these tolerations don't tolerate; None without one."""
        hard = (taint for taint in self.taints if taint.effect in HARD_EFFECTS)
        return next((taint for taint in hard if not tolerates(tolerations, taint)), None)


@dataclass(slots=True)
class _Places:
    """Devices by the one node that they are on, and those that several nodes reach (all if there is no mask);
    `conditional` if some have binding conditions."""

    local: dict[str, list[Device]] = field(default_factory=dict[str, list[Device]])
    shared: list[tuple[Device, Mask | None]] = field(default_factory=list[tuple[Device, Mask | None]])
    conditional: bool = False

    def on(self, node: str, row: int) -> list[Device]:
        found = [*self.local.get(node, ()), *[d for d, mask in self.shared if mask is None or mask[row]]]
        return sorted(found, key=lambda device: bool(device.conditions)) if self.conditional else found


class Inventory:
    """Devices by the nodes that reach them. Only pools count of which every slice of the newest generation is observed.
    Devices whose consumption isn't known are never allocated, and kept apart."""

    def __init__(
        self, slices: Iterable[ResourceSlice], labels: NodeLabels, rules: Iterable[DeviceTaintRule] = ()
    ) -> None:
        """`rules` add taints to devices, after those in the slices."""
        self._labels = labels
        self._rules = sorted(rules, key=lambda rule: rule.metadata.name)
        self._kinds: dict[str, int] = {}
        self._matches: dict[tuple[str, int], bool] = {}
        self._given = _Places()
        self._refused = _Places()
        self._draws: dict[DeviceId, Draws] = {}
        self._groups: dict[DeviceId, Groups] = {}
        self._homes: dict[tuple[str, str], set[str]] = {}
        complete = sorted(_complete(slices), key=lambda s: s.metadata.name)
        self.counters: Mapping[CounterId, int] = sizes(complete)
        """The quantity of each counter, in thousandths."""
        self._grouped = grouped_sets(complete)
        for made in complete:
            for device in made.spec.devices or ():
                self._add(made, device)

    def _add(self, made: ResourceSlice, device: SliceDevice) -> None:
        spec = made.spec
        where = device if spec.per_device_node_selection else spec
        view = _view(spec.driver, device)
        capacity = capacity_of(spec.driver, device)
        conditions = (device.binding_conditions, device.binding_failure_conditions, device.binds_to_node)
        taints = self._taints(spec, device)
        kind = self._kinds.setdefault(repr((view, taints, capacity, conditions)), len(self._kinds))
        node, selector = where.node_name, where.node_selector
        draws = draws_of(made, device, self.counters)
        one = Device(
            DeviceId(spec.driver, spec.pool.name, device.name),
            kind,
            view,
            taints,
            bool(node),
            None if node or where.all_nodes else selector,
            draws or (),
            groups_of(made, device, self._grouped),
            capacity or {},
            bool(device.allow_multiple_allocations),
            tuple(device.binding_conditions or ()),
            tuple(device.binding_failure_conditions or ()),
            bool(device.binds_to_node),
        )
        if one.groups:
            self._groups[one.id] = one.groups
        if one.draws:
            self._draws[one.id] = one.draws
            self._homes.setdefault((spec.driver, spec.pool.name), set()).add(node or "")
        places = self._refused if draws is None or capacity is None else self._given
        places.conditional |= bool(one.conditions)
        if node:
            places.local.setdefault(node, []).append(one)
        elif where.all_nodes:
            places.shared.append((one, None))
        elif selector is not None:
            places.shared.append((one, reached(self._labels, selector)))

    def _taints(self, spec: ResourceSliceSpec, device: SliceDevice) -> tuple[Taint, ...]:
        ruled = (rule.spec.taint for rule in self._rules if _selects(rule.spec.device_selector, spec, device))
        return (*(device.taints or ()), *ruled)

    def on(self, node: str, row: int) -> list[Device]:
        """The devices that the node reaches: those without binding conditions first, and among these its own first."""
        return self._given.on(node, row)

    def refused(self, node: str, row: int) -> list[Device]:
        """The devices that the node reaches and that are never allocated, because their consumption isn't known."""
        return self._refused.on(node, row)

    def draws(self, device: DeviceId) -> Draws:
        """The device's consumption of counters while it is allocated."""
        return self._draws.get(device, ())

    def groups(self, device: DeviceId) -> Groups:
        """The device's compatibility groups, where they matter."""
        return self._groups.get(device, ())

    def concerns_one_node(self, device: Device) -> bool:
        """Whether an allocation of the device makes no difference on any other node."""
        return device.local and len(self._homes.get(device.id[:2], ())) < 2

    def chosen(self, selectors: Sequence[DeviceSelector], device: Device) -> bool:
        """Whether all the selectors select the device."""
        for selector in selectors:
            if selector.cel is None:
                return False
            key = (selector.cel.expression, device.kind)
            known = self._matches.get(key)
            if known is None:
                known = self._matches[key] = expressions.holds(selector.cel.expression, device.view)
            if not known:
                return False
        return True


def _selects(selector: DeviceTaintSelector | None, spec: ResourceSliceSpec, device: SliceDevice) -> bool:
    """Whether a rule's taint applies to the device. Source: DeviceTaintRule of resource.k8s.io/v1beta2."""
    return (
        selector is not None
        and selector.driver in (None, spec.driver)
        and selector.pool in (None, spec.pool.name)
        and selector.device in (None, device.name)
    )


def reached(labels: NodeLabels, selector: Mapping[str, Any]) -> Mask:
    """The nodes that a node selector matches."""
    required = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}
    return labels.admitted(NodeAffinity.parse(None, required))


def _complete(slices: Iterable[ResourceSlice]) -> Iterable[ResourceSlice]:
    """The slices of the newest generation of each pool, if all of these are observed."""
    pools: dict[tuple[str, str], list[ResourceSlice]] = {}
    for made in slices:
        pools.setdefault((made.spec.driver, made.spec.pool.name), []).append(made)
    for found in pools.values():
        newest = max(made.spec.pool.generation for made in found)
        current = [made for made in found if made.spec.pool.generation == newest]
        if len(current) >= current[0].spec.pool.resource_slice_count:
            yield from current


def _view(driver: str, device: SliceDevice) -> dict[str, Any]:
    attributes: dict[str, dict[str, Any]] = {driver: {}}
    for name, value in sorted((device.attributes or {}).items()):
        domain, _, bare = name.rpartition("/")
        attributes.setdefault(domain or driver, {})[bare] = _value(value)
    capacity: dict[str, dict[str, Any]] = {driver: {}}
    for name, amount in sorted((device.capacity or {}).items()):
        domain, _, bare = name.rpartition("/")
        try:
            capacity.setdefault(domain or driver, {})[bare] = expressions.quantity(amount.value)
        except ValueError:
            continue
    shared = bool(device.allow_multiple_allocations)
    return {"driver": driver, "allowMultipleAllocations": shared, "attributes": attributes, "capacity": capacity}


def _value(given: Mapping[str, Any]) -> Any:
    if "version" in given:
        return expressions.version(str(given["version"]))
    if "versions" in given:
        return [expressions.version(str(one)) for one in given["versions"]]
    return next((given[kind] for kind in _KINDS if kind in given), None)
