"""Volcano's `sharding.yaml`: the schedulers, and the policies by which each chooses its nodes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, cast

from vcbatch.api import name_rules, names
from vcbatch.api.duration import MalformedDuration, parse_duration

_PERIOD: Final = timedelta(seconds=60)
_KEYS: Final = ("schedulerConfigs", "shardSyncPeriod", "enableNodeEventTrigger")
_OLD_KEYS: Final = ("cpuUtilizationMin", "cpuUtilizationMax", "preferWarmupNodes", "minNodes", "maxNodes")
_SCHEDULER_KEYS: Final = ("name", "type", "policies", *_OLD_KEYS)
_POLICY_KEYS: Final = ("name", "weight", "arguments")
_TYPES: Final = ("volcano", "agent")
_MOST_NODES: Final = 1_000_000


class MalformedSharding(ValueError):
    """The message names the field, its value, and the allowed values."""


class PolicyName(StrEnum):
    """How a scheduler's nodes are chosen."""

    ALLOCATION_RATE = "allocation-rate"
    WARMUP = "warmup"
    NODE_LIMIT = "node-limit"


_ARGUMENTS: Final[Mapping[PolicyName, Sequence[str]]] = {
    PolicyName.ALLOCATION_RATE: ("minCPUUtil", "maxCPUUtil"),
    PolicyName.WARMUP: ("warmupLabel", "warmupLabelValue"),
    PolicyName.NODE_LIMIT: ("minNodes", "maxNodes"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationRate:
    """Nodes whose share of requested cpus is in this range, from 0 to 1; fuller nodes score higher."""

    least: float = 0.0
    most: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Warmup:
    """Prefers nodes with this label."""

    label: str = names.WARMUP
    value: str = "true"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLimit:
    """The minimum and maximum number of nodes. Fewer than `least` are reported, not an error."""

    least: int = 0
    most: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedPolicy:
    """One policy and its weight relative to the others."""

    policy: AllocationRate | Warmup | NodeLimit
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerShare:
    """`name` is the name of the scheduler and of its NodeShard."""

    name: str
    policies: Sequence[WeightedPolicy]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharding:
    """The schedulers in the order in which they choose."""

    schedulers: Sequence[SchedulerShare]
    period: timedelta = _PERIOD
    on_node_events: bool = True


def parse_sharding(given: Any) -> Sharding:
    """Parse the configuration. Raises `MalformedSharding`."""
    fields = _mapping(given if given is not None else {}, "the file", _KEYS)
    schedulers: list[SchedulerShare] = []
    for index, each in enumerate(_listed(fields.get("schedulerConfigs"), "schedulerConfigs")):
        path = f"schedulerConfigs[{index}]"
        scheduler = _scheduler(each, path)
        if scheduler.name in (other.name for other in schedulers):
            raise MalformedSharding(f"{path}.name: {scheduler.name} is there twice")
        schedulers.append(scheduler)
    if not schedulers:
        raise MalformedSharding("schedulerConfigs: nothing there, want at least one scheduler")
    return Sharding(
        schedulers=schedulers,
        period=_period(fields.get("shardSyncPeriod")),
        on_node_events=_truth(fields.get("enableNodeEventTrigger", True), "enableNodeEventTrigger"),
    )


def _scheduler(given: Any, path: str) -> SchedulerShare:
    fields = _mapping(given, path, _SCHEDULER_KEYS)
    name, kind = fields.get("name"), fields.get("type", _TYPES[0])
    if not isinstance(name, str) or name_rules.dns_subdomain(name):
        raise MalformedSharding(f"{path}.name: {name!r} is no name of an object")
    if kind not in _TYPES:
        raise MalformedSharding(f"{path}.type: {kind!r} isn't known, want one of {', '.join(_TYPES)}")
    policies = [
        _policy(each, f"{path}.policies[{index}]")
        for index, each in enumerate(_listed(fields.get("policies"), f"{path}.policies"))
    ]
    old = [key for key in _OLD_KEYS if key in fields]
    if policies and old:
        raise MalformedSharding(f"{path}.{old[0]}: not beside policies, which say the same")
    return SchedulerShare(name=name, policies=policies or _old_policies(fields, path))


def _old_policies(fields: Mapping[str, Any], path: str) -> list[WeightedPolicy]:
    """The policies that the older fields, from before there were policies, stand for."""
    rate = {"minCPUUtil": fields.get("cpuUtilizationMin", 0.0), "maxCPUUtil": fields.get("cpuUtilizationMax", 1.0)}
    found = [WeightedPolicy(policy=_rate(rate, path))]
    if _truth(fields.get("preferWarmupNodes", False), f"{path}.preferWarmupNodes"):
        found.append(WeightedPolicy(policy=Warmup()))
    limits = {key: fields[key] for key in ("minNodes", "maxNodes") if key in fields}
    return [*found, WeightedPolicy(policy=_limit(limits, path))]


def _policy(given: Any, path: str) -> WeightedPolicy:
    fields = _mapping(given, path, _POLICY_KEYS)
    try:
        name = PolicyName(fields.get("name"))
    except ValueError:
        known = ", ".join(PolicyName)
        raise MalformedSharding(f"{path}.name: {fields.get('name')!r} isn't known, want one of {known}") from None
    inner = f"{path}.arguments"
    arguments = _mapping(fields.get("arguments") or {}, inner, _ARGUMENTS[name])
    weight = _number(fields.get("weight", 1), f"{path}.weight", most=math.inf)
    match name:
        case PolicyName.ALLOCATION_RATE:
            return WeightedPolicy(policy=_rate(arguments, inner), weight=weight)
        case PolicyName.WARMUP:
            return WeightedPolicy(policy=_warmup(arguments, inner), weight=weight)
        case PolicyName.NODE_LIMIT:
            return WeightedPolicy(policy=_limit(arguments, inner), weight=weight)


def _rate(arguments: Mapping[str, Any], path: str) -> AllocationRate:
    least = _number(arguments.get("minCPUUtil", 0.0), f"{path}.minCPUUtil", most=1.0)
    most = _number(arguments.get("maxCPUUtil", 1.0), f"{path}.maxCPUUtil", most=1.0)
    if least > most:
        raise MalformedSharding(f"{path}.minCPUUtil: {least} is above maxCPUUtil, {most}")
    return AllocationRate(least=least, most=most)


def _warmup(arguments: Mapping[str, Any], path: str) -> Warmup:
    label, value = arguments.get("warmupLabel", names.WARMUP), arguments.get("warmupLabelValue", "true")
    if not isinstance(label, str) or name_rules.qualified_name(label):
        raise MalformedSharding(f"{path}.warmupLabel: {label!r} is no name of a label")
    if not isinstance(value, str) or name_rules.label_value(value):
        raise MalformedSharding(f"{path}.warmupLabelValue: {value!r} is no value of a label")
    return Warmup(label=label, value=value)


def _limit(arguments: Mapping[str, Any], path: str) -> NodeLimit:
    least = _count(arguments.get("minNodes", 0), f"{path}.minNodes")
    most = _count(arguments["maxNodes"], f"{path}.maxNodes") if "maxNodes" in arguments else None
    if most is not None and least > most:
        raise MalformedSharding(f"{path}.minNodes: {least} is above maxNodes, {most}")
    return NodeLimit(least=least, most=most)


def _period(given: Any) -> timedelta:
    if given is None:
        return _PERIOD
    try:
        period = parse_duration(given) if isinstance(given, str) else timedelta()
    except MalformedDuration as error:
        raise MalformedSharding(f"shardSyncPeriod: {error}") from error
    if period < timedelta(seconds=1):
        raise MalformedSharding(f"shardSyncPeriod: {given!r} is too short, want a duration of 1s or more")
    return period


def _mapping(given: Any, path: str, keys: Sequence[str]) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise MalformedSharding(f"{path}: want a mapping")
    for key in cast(dict[Any, Any], given):
        if key not in keys:
            raise MalformedSharding(f"{path}.{key}: no such field, want some of {', '.join(keys)}")
    return cast(dict[str, Any], given)


def _listed(given: Any, path: str) -> list[Any]:
    if given is None:
        return []
    if not isinstance(given, list):
        raise MalformedSharding(f"{path}: want a list")
    return cast("list[Any]", given)


def _truth(given: Any, path: str) -> bool:
    if not isinstance(given, bool):
        raise MalformedSharding(f"{path}: {given!r} is neither true nor false")
    return given


def _number(given: Any, path: str, *, most: float) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= most:
        allowed = "a number of 0 or more" if math.isinf(most) else f"a number from 0 to {most:g}"
        raise MalformedSharding(f"{path}: {given!r}, want {allowed}")
    return float(given)


def _count(given: Any, path: str) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given <= _MOST_NODES:
        raise MalformedSharding(f"{path}: {given!r}, want a whole number from 0 to {_MOST_NODES}")
    return given
