"""Packs nodes in some resources, spreads over them in others, and keeps other tasks off nodes with scarce resources."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, cast

import numpy as np

from vcbatch.api import names
from vcbatch.scheduler.framework.arguments import Argument, ArgumentSpec, PolicyError
from vcbatch.scheduler.framework.handle import Handle
from vcbatch.scheduler.framework.plugin import Cap, Floats, Plugin, Rows
from vcbatch.scheduler.framework.structures import comma_list, mapping
from vcbatch.scheduler.model.classes import TaskClass
from vcbatch.scheduler.model.columns import Columns
from vcbatch.scheduler.model.resources import CPU, MEMORY, Mask
from vcbatch.scheduler.model.result import WaitReason

_WEIGHT = "resourceStrategyFitWeight"
_DEFAULT_WEIGHT = 10
_SRA_WEIGHT = 10
_WILDCARD = "*"
_MEMORY_PER_MILLI = 1e6
"""A rate of memory is in GB (10**9) for a whole device, and devices are counted in thousandths."""


class Strategy(StrEnum):
    """The scoring strategy of a resource."""

    LEAST = "LeastAllocated"
    MOST = "MostAllocated"


class Preference(NamedTuple):
    """The strategy and weight of one resource. A weight of 0 disables it."""

    strategy: Strategy
    weight: int


Preferences = Mapping[str, Preference]
"""By resource name, or by a prefix of names if it ends in `*`."""

_DEFAULT_PREFERENCES: Preferences = {"cpu": Preference(Strategy.LEAST, 1), "memory": Preference(Strategy.LEAST, 1)}


@dataclass(frozen=True, slots=True)
class Avoidance:
    """The weights of scarce resource avoidance: of the whole score, and of each scarce resource."""

    weight: int
    scarce: Mapping[str, int]


class Rate(NamedTuple):
    """What is reserved for each idle device: cores, and GB of memory."""

    cpu: float
    memory: float


def _preferences(value: object, where: str) -> Preferences:
    given = mapping(value, where)
    out: dict[str, Preference] = {}
    for name, entry in given.items():
        _check_pattern(name, where)
        at = f"{where}.{name}"
        request = mapping(entry, at, ("type", "weight"))
        weight = int(Argument(default=1).read(request.get("weight", 1), f"{at}.weight"))
        out[name] = Preference(
            _strategy(request.get("type", Strategy.LEAST), f"{at}.type"), weight if weight > 0 else 1
        )
    return out or _DEFAULT_PREFERENCES


def _check_pattern(name: str, where: str) -> None:
    if _WILDCARD in name and (name == _WILDCARD or name.index(_WILDCARD) != len(name) - 1):
        raise PolicyError(f"{where}: {name!r} must be a resource name, or the beginning of names followed by one '*'")


def _strategy(value: object, where: str) -> Strategy:
    if value not in tuple(Strategy):
        raise PolicyError(f"{where}: must be one of {', '.join(Strategy)}, got {value!r}")
    return Strategy(cast("str", value))


def _avoidance(value: object, where: str) -> Avoidance | None:
    given = mapping(value, where, ("enable", "resources", "weight", "resourceWeight"))
    enabled = Argument(default=False).read(given.get("enable", False), f"{where}.enable")
    resources = comma_list(given.get("resources"), f"{where}.resources")
    weight = int(Argument(default=_SRA_WEIGHT).read(given.get("weight", _SRA_WEIGHT), f"{where}.weight"))
    at = f"{where}.resourceWeight"
    weights = {
        name: int(Argument(default=1).read(own, f"{at}.{name}"))
        for name, own in mapping(given.get("resourceWeight"), at).items()
    }
    _only_listed(weights, resources, at)
    scarce = {name: own if (own := weights.get(name, 1)) >= 0 else 1 for name in resources}
    if not enabled or not sum(scarce.values()):
        return None
    return Avoidance(weight if weight >= 0 else _SRA_WEIGHT, scarce)


def _proportions(value: object, where: str) -> Mapping[str, Rate]:
    given = mapping(value, where, ("enable", "resources", "resourceProportion"))
    enabled = Argument(default=False).read(given.get("enable", False), f"{where}.enable")
    resources = comma_list(given.get("resources"), f"{where}.resources")
    at = f"{where}.resourceProportion"
    rates: dict[tuple[str, str], float] = {}
    for key, rate in mapping(given.get("resourceProportion"), at).items():
        resource, _, part = key.rpartition(".")
        if part not in ("cpu", "memory"):
            raise PolicyError(f"{at}: {key!r} must be the name of a resource followed by .cpu or .memory")
        _only_listed([resource], resources, at)
        rates[resource, part] = float(Argument(default=1.0).read(rate, f"{at}.{key}"))

    def of(resource: str, part: str) -> float:
        rate = rates.get((resource, part), 1.0)
        return rate if rate >= 0 else 1.0

    return {name: Rate(of(name, "cpu"), of(name, "memory")) for name in resources} if enabled else {}


def _only_listed(given: Mapping[str, Any] | Sequence[str], resources: Sequence[str], where: str) -> None:
    for name in given:
        if name not in resources:
            raise PolicyError(f"{where}: {name!r} isn't among the resources; listed: {', '.join(resources) or 'none'}")


class _Fit(NamedTuple):
    """The scoring of a class: resource columns, [K], whether each is packed, and weights, both [K, 1, 1]."""

    resources: tuple[int, ...]
    most: Mask
    weights: Floats


class ResourceStrategyFit(Plugin):
    """Three rules. Score: the weighted mean, over the requested resources, of the node's utilization (`MostAllocated`)
    or its complement (`LeastAllocated`). Scarce resource avoidance: a score for nodes without resources that the task
    doesn't request. Proportions: on a node with idle scarce devices, tasks without such devices leave cpu and memory
    for each."""

    BY_AMOUNTS = True
    ARGUMENTS = ArgumentSpec(
        named={_WEIGHT: Argument(default=_DEFAULT_WEIGHT)},
        structured={"resources": _preferences, "sra": _avoidance, "proportional": _proportions},
    )

    def open(self, session: Handle) -> None:
        dims = session.dims
        self._nodes = session.nodes
        self._names = dims.names
        given = int(self.arguments[_WEIGHT])
        self._weight = given if given >= 0 else _DEFAULT_WEIGHT
        self._preferences: Preferences = self.arguments["resources"]
        avoidance: Avoidance | None = self.arguments["sra"]
        self._avoidance = avoidance if avoidance is not None and avoidance.weight else None
        self._scarce = [(dims.column(name), weight) for name, weight in avoidance.scarce.items()] if avoidance else []
        rates: Mapping[str, Rate] = self.arguments["proportional"]
        self._rates = [(name, r, rate) for name, rate in rates.items() if (r := dims.column(name)) is not None]
        self._fits: dict[int, _Fit | None] = {}

    # Filter ----------------------------------------------------------------------------------------------------------

    def caps(self, cls: TaskClass, rows: Rows) -> Sequence[Cap]:
        """How many tasks leave the reserve for each idle device, by the resources that are free now, without those
        being released."""
        if not self._rates or any(cls.request[r] > 0 for _, r, _ in self._rates):
            return ()
        nodes = self._nodes
        idle = nodes.alloc[:, rows] - nodes.used[:, rows]
        out: list[Cap] = []
        for name, r, rate in self._rates:
            slots = np.minimum(
                _leaving(idle[CPU], idle[r] * rate.cpu, cls.request[CPU]),
                _leaving(idle[MEMORY], idle[r] * (rate.memory * _MEMORY_PER_MILLI), cls.request[MEMORY]),
            )
            slots[nodes.alloc[r, rows] <= 0] = np.inf
            out.append(Cap(f"proportional of resource {name} check failed", slots, WaitReason.PROPORTIONAL))
        return out

    # Score -----------------------------------------------------------------------------------------------------------

    def scores(self, cls: TaskClass, columns: Columns) -> Floats | None:
        fit = self._fit(cls)
        avoided = self._avoided(cls, columns) if self._avoidance is not None else None
        if fit is None:
            return None if avoided is None else np.broadcast_to(avoided, columns.shape)
        points = self._fitting(fit, columns)
        return points if avoided is None else points + avoided

    def _fit(self, cls: TaskClass) -> _Fit | None:
        if cls.id not in self._fits:
            self._fits[cls.id] = self._wished(cls)
        return self._fits[cls.id]

    def _wished(self, cls: TaskClass) -> _Fit | None:
        own = _own_preferences(cls.notes)
        requests = self._preferences if own is None else own
        found = [
            (int(r), request)
            for r in np.flatnonzero(cls.request > 0)
            if (request := _preference(requests, self._names[r]))
        ]
        found = [(r, request) for r, request in found if request.weight > 0]
        if not found or not self._weight:
            return None
        most = np.array([request.strategy is Strategy.MOST for _, request in found])[:, None, None]
        weights = np.array([request.weight for _, request in found], dtype=np.float64)[:, None, None]
        resources = tuple(r for r, _ in found)
        return _Fit(resources, most, weights)

    def _fitting(self, fit: _Fit, columns: Columns) -> Floats:
        alloc, filled = columns.divisors(fit.resources), columns.used_after(fit.resources)
        parts = np.where(fit.most, filled, alloc - filled) * fit.weights / alloc
        within = filled <= alloc
        if not columns.offered_by_all(fit.resources):
            there = columns.allocs(fit.resources) > 0
            parts = np.where(there, parts, 0.0)
            within |= ~there
        points: Floats = parts.sum(axis=0) / fit.weights.sum() * (100.0 * self._weight)
        points *= within.all(axis=0)
        return points

    def _avoided(self, cls: TaskClass, columns: Columns) -> Floats:
        """Scores for the scarce resources that nodes don't have, 0 for nodes that lack a requested resource; [M]."""
        assert self._avoidance is not None  # noqa: S101 - called only if it is enabled
        absent: Floats = np.zeros(columns.shape[1])
        for r, weight in self._scarce:
            absent += weight if r is None else weight * (columns.alloc(r) <= 0)
        points = absent * (100.0 * self._avoidance.weight / sum(weight for _, weight in self._scarce))
        for r in np.flatnonzero(cls.request > 0):
            points *= columns.alloc(int(r)) > 0
        return points


def _leaving(idle: Floats, reserved: Floats, request: float) -> Floats:
    """How many such requests leave the reserve; [M]."""
    spare = idle - reserved
    return np.floor(spare / request) if request > 0 else np.where(spare >= 0, np.inf, 0.0)


def _preference(requests: Preferences, resource: str) -> Preference | None:
    """The entry of exactly this name, else of the longest matching prefix."""
    exact = requests.get(resource)
    if exact is not None:
        return exact
    prefixes = [n for n in requests if n.endswith(_WILDCARD) and resource.startswith(n[:-1])]
    return requests[max(prefixes, key=len)] if prefixes else None


def _own_preferences(notes: Mapping[str, str]) -> Preferences | None:
    """The pod's own strategies instead of those of the scheduler configuration; None if it has no valid annotation. A
    strategy without weights means none for any resource."""
    said = notes.get(names.RESOURCE_STRATEGY_SCORING_TYPE)
    if said not in tuple(Strategy):
        return None
    strategy = Strategy(said)
    weights = notes.get(names.RESOURCE_STRATEGY_WEIGHT)
    if weights is None:
        return {}
    try:
        given: object = json.loads(weights)
    except (ValueError, RecursionError):
        return None
    if not isinstance(given, dict):
        return None
    out: dict[str, Preference] = {}
    for name, weight in cast("dict[str, object]", given).items():
        if isinstance(weight, bool) or not isinstance(weight, int):
            return None
        out[name] = Preference(strategy, weight)
    return out
