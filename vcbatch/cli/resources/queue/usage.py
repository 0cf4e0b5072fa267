"""Limit, usage, borrowed and pending quantities of each queue, for `queue describe` and `queue tree`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from vcbatch.api import names
from vcbatch.api.loose import part
from vcbatch.api.phases import PodGroupPhase
from vcbatch.api.quantity import ZERO, Quantity
from vcbatch.cli.base.fields import name_of, text
from vcbatch.core.waiting import Amounts, Gang, amounts_of, gang_of

Json = dict[str, Any]

_FREE_AT_ZERO: Final = ("cpu", "memory")
"""The resources for which a capability of zero means no limit (docs/queues.md)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One queue. Quantities are by resource; a missing one is unlimited, not guaranteed or not requested.

    Attributes:
        queue: the object on the server; None for a root without an object, and for a parent that doesn't exist.
        capability: its limit: its own, or that of the nearest ancestor that has one (`inherited`).
        allocated: the usage of its pods, with those of queues below it.
        admitted: what admitted gangs still need to start, with those below it.
        pending: what gangs that aren't admitted need, with those below it.
        children: its child queues, by name.
    """

    name: str
    queue: Json | None
    capability: Amounts
    inherited: frozenset[str]
    guarantee: Amounts
    deserved: Amounts
    allocated: Amounts
    admitted: Amounts
    pending: Amounts
    children: Sequence[str] = ()

    def borrowed(self, resource: str) -> Quantity:
        """Its usage beyond the deserved share; zero where the share isn't set."""
        deserved = self.deserved.get(resource)
        return ZERO if deserved is None else max(self.allocated.get(resource, ZERO) - deserved, ZERO)

    def resources(self) -> list[str]:
        """The resources with any quantity: cpu, memory, then by name."""
        known = {
            resource
            for quantities in (
                self.capability,
                self.guarantee,
                self.deserved,
                self.allocated,
                self.admitted,
                self.pending,
            )
            for resource, quantity in quantities.items()
            if quantity
        }
        return sorted(known, key=lambda resource: (*(resource != first for first in _FREE_AT_ZERO), resource))


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueUsage:
    """All queues by name, and the roots of the tree. Queues in a cycle are roots themselves."""

    entries: Mapping[str, Entry]
    tops: Sequence[str]

    def walk(self) -> Iterator[tuple[Entry, tuple[bool, ...]]]:
        """Each queue from the roots down, with flags for it and for each ancestor below the root that say whether it is
        the last among its siblings."""
        for top in self.tops:
            yield from self._below(top, (), frozenset())

    def _below(
        self, name: str, lasts: tuple[bool, ...], above: frozenset[str]
    ) -> Iterator[tuple[Entry, tuple[bool, ...]]]:
        entry = self.entries[name]
        yield entry, lasts
        inside = above | {name}
        children = [child for child in entry.children if child not in inside]
        for child in children:
            yield from self._below(child, (*lasts, child == children[-1]), inside)


@dataclass(slots=True)
class _Totals:
    admitted: dict[str, Quantity] = field(default_factory=dict[str, Quantity])
    pending: dict[str, Quantity] = field(default_factory=dict[str, Quantity])


def usage_of(queues: Iterable[Json], pod_groups: Iterable[Json]) -> QueueUsage:
    """The sums over queues and PodGroups."""
    by_name = {name_of(queue): queue for queue in queues}
    parents = {name: parent_of(queue) for name, queue in by_name.items()}
    gangs = [gang_of(group, {}) for group in pod_groups]
    nodes = {*by_name, *(parent for parent in parents.values() if parent)}
    chains = {name: list(_chain(name, parents)) for name in nodes}
    totals = {name: _Totals() for name in nodes}
    for gang in gangs:
        for name in chains.get(gang.queue, ()):
            _count(totals[name], gang)
    children: dict[str, list[str]] = {name: [] for name in nodes}
    for name, parent in sorted(parents.items()):
        if parent:
            children[parent].append(name)
    entries = {name: _entry(name, chains[name], by_name, totals[name], children[name]) for name in sorted(nodes)}
    return QueueUsage(entries=entries, tops=_tops(entries, parents))


def _tops(entries: Mapping[str, Entry], parents: Mapping[str, str]) -> list[str]:
    tops = [name for name in entries if not parents.get(name)]
    reached: set[str] = set()
    waiting = list(tops)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting.extend(entries[name].children)
    for name in entries:
        if name not in reached:  # in a cycle, which has no root
            tops.append(name)
            waiting = [name]
            while waiting:
                one = waiting.pop()
                if one not in reached:
                    reached.add(one)
                    waiting.extend(entries[one].children)
    return tops


def parent_of(queue: Json) -> str:
    """The name of the queue above this one; empty for the root."""
    return "" if name_of(queue) == names.ROOT_QUEUE else text(queue, "spec", "parent") or names.ROOT_QUEUE


def _chain(name: str, parents: Mapping[str, str]) -> Iterator[str]:
    """The queue and its ancestors, each once."""
    seen: set[str] = set()
    while name and name not in seen:
        seen.add(name)
        yield name
        name = parents.get(name, "")


def _entry(
    name: str, chain: Sequence[str], by_name: Mapping[str, Json], totals: _Totals, children: Sequence[str]
) -> Entry:
    queue = by_name.get(name)
    spec, status = part(queue or {}, "spec"), part(queue or {}, "status")
    own = _limits(spec)
    capability: dict[str, Quantity] = dict(own)
    for above in chain[1:]:
        for resource, quantity in _limits(part(by_name.get(above) or {}, "spec")).items():
            capability.setdefault(resource, quantity)
    return Entry(
        name=name,
        queue=queue,
        capability=capability,
        inherited=frozenset(capability.keys() - own.keys()),
        guarantee=amounts_of(part(part(spec, "guarantee"), "resource")),
        deserved=amounts_of(part(spec, "deserved")),
        allocated=amounts_of(part(status, "allocated")),
        admitted=totals.admitted,
        pending=totals.pending,
        children=tuple(children),
    )


def _limits(spec: Json) -> dict[str, Quantity]:
    capability = amounts_of(part(spec, "capability"))
    return {name: quantity for name, quantity in capability.items() if quantity or name not in _FREE_AT_ZERO}


def _count(totals: _Totals, gang: Gang) -> None:
    match gang.phase:
        case PodGroupPhase.PENDING:
            into = totals.pending
        case PodGroupPhase.INQUEUE:
            into = totals.admitted
        case _:
            return
    for resource, quantity in gang.asks.items():
        into[resource] = into.get(resource, ZERO) + quantity
