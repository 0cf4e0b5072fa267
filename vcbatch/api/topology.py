"""The nodes of each HyperNode, and whether the HyperNodes of a cluster form a tree.

Members are selected by name, by pattern or by label. The matches of each selector are kept, so that one added, changed
or deleted node or HyperNode costs one test against the selectors, and not all against all.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from vcbatch.api.hypernode import MemberType
from vcbatch.api.re2 import MalformedPattern, compile_pattern
from vcbatch.api.reasons import HyperNodeReason
from vcbatch.api.selectors import matches

_SHOWN: Final = 3

Labels = Mapping[str, str]


class Named(Protocol):
    @property
    def name(self) -> str: ...


class Patterned(Protocol):
    @property
    def pattern(self) -> str: ...


class Choice(Protocol):
    """One of the three fields says which objects are members."""

    @property
    def exact_match(self) -> Named | None: ...
    @property
    def regex_match(self) -> Patterned | None: ...
    @property
    def label_match(self) -> Mapping[str, Any] | None: ...


class Chooser(Protocol):
    """A member of a HyperNode: the kind of the objects, and their selector."""

    @property
    def type(self) -> str: ...
    @property
    def selector(self) -> Choice: ...


class TierSpec(Protocol):
    """The spec of a HyperNode as in `vcbatch.api.hypernode`, or as the scheduler reads it."""

    @property
    def tier(self) -> int: ...
    @property
    def members(self) -> Sequence[Chooser] | None: ...


@dataclass(frozen=True, slots=True)
class Flaw:
    """An error of a HyperNode: it prevents a tree, or selects nothing."""

    reason: HyperNodeReason
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A HyperNode's position in the tree."""

    tier: int
    nodes: frozenset[str]
    """The existing nodes below it at any depth."""
    children: tuple[str, ...] = ()
    """The HyperNodes directly below it, sorted by name."""
    flaws: tuple[Flaw, ...] = ()


@dataclass(frozen=True, slots=True)
class _Selector:
    """One selector: `how` is its field, `what` its content as text."""

    type: MemberType
    how: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    tier: int
    selectors: tuple[_Selector, ...]


class Topology:
    """The HyperNodes and the nodes of a cluster. It knows only the objects that were set, in any order."""

    def __init__(self) -> None:
        self._nodes: dict[str, Labels] = {}
        self._entries: dict[str, _Entry] = {}
        self._uses: Counter[_Selector] = Counter()
        self._chosen: dict[_Selector, set[str]] = {}
        self._tests: dict[_Selector, Callable[[str, Labels], bool]] = {}
        self._places: Mapping[str, Place] | None = None

    def set_node(self, name: str, labels: Labels | None = None) -> None:
        """Add a node with these labels, or update its labels."""
        labels = labels or {}
        before = self._nodes.get(name)
        if before == labels:
            return
        self._nodes[name] = dict(labels)
        self._test(MemberType.NODE, name, labels)
        self._places = None

    def remove_node(self, name: str) -> None:
        """Remove a node."""
        if self._nodes.pop(name, None) is not None:
            self._forget(MemberType.NODE, name)

    def set_hyper_node(self, name: str, spec: TierSpec) -> None:
        """Add a HyperNode, or update its spec."""
        entry = _Entry(tier=spec.tier, selectors=tuple(map(_selector, spec.members or ())))
        before = self._entries.get(name)
        if before == entry:
            return
        for selector in entry.selectors:
            self._use(selector)
        self._entries[name] = entry
        if before is None:
            self._test(MemberType.HYPERNODE, name, {})
        else:
            self._unuse(before.selectors)
        self._places = None

    def remove_hyper_node(self, name: str) -> None:
        """Remove a HyperNode."""
        entry = self._entries.pop(name, None)
        if entry is not None:
            self._unuse(entry.selectors)
            self._forget(MemberType.HYPERNODE, name)

    def places(self) -> Mapping[str, Place]:
        """Every HyperNode by name. Flaws never exclude a HyperNode: those of a cycle have the nodes below them outside
        of the cycle."""
        if self._places is None:
            self._places = self._tree()
        return self._places

    # Selectors

    def _use(self, selector: _Selector) -> None:
        self._uses[selector] += 1
        if self._uses[selector] > 1:
            return
        if selector.how == "exactMatch":
            self._chosen[selector] = {selector.what}
            return
        test = self._tests[selector] = _test_of(selector)
        known: Iterable[tuple[str, Labels]] = (
            self._nodes.items() if selector.type is MemberType.NODE else ((name, {}) for name in self._entries)
        )
        self._chosen[selector] = {name for name, labels in known if test(name, labels)}

    def _unuse(self, selectors: Iterable[_Selector]) -> None:
        for selector in selectors:
            self._uses[selector] -= 1
            if not self._uses[selector]:
                del self._uses[selector], self._chosen[selector]
                self._tests.pop(selector, None)
        self._places = None

    def _test(self, kind: MemberType, name: str, labels: Labels) -> None:
        for selector, test in self._tests.items():
            if selector.type is kind:
                (self._chosen[selector].add if test(name, labels) else self._chosen[selector].discard)(name)

    def _forget(self, kind: MemberType, name: str) -> None:
        for selector in self._tests:
            if selector.type is kind:
                self._chosen[selector].discard(name)
        self._places = None

    # The tree

    def _tree(self) -> Mapping[str, Place]:
        children = {name: sorted(self._members(name, MemberType.HYPERNODE)) for name in self._entries}
        parents: dict[str, list[str]] = {}
        for parent in sorted(children):
            for child in children[parent]:
                parents.setdefault(child, []).append(parent)
        circles = _circles(children)
        own = {name: self._members(name, MemberType.NODE) for name in self._entries}
        nodes = _nodes_below(children, own, circles)
        shared = _shared(own)
        return {
            name: Place(
                tier=self._entries[name].tier,
                nodes=nodes[name],
                children=tuple(children[name]),
                flaws=tuple(self._flaws(name, children[name], parents.get(name, []), circles, shared)),
            )
            for name in self._entries
        }

    def _members(self, name: str, kind: MemberType) -> set[str]:
        known = self._nodes if kind is MemberType.NODE else self._entries
        found: set[str] = set()
        for selector in self._entries[name].selectors:
            if selector.type is kind:
                found.update(member for member in self._chosen[selector] if member in known)
        return found

    def _flaws(
        self,
        name: str,
        children: list[str],
        parents: list[str],
        circles: Mapping[str, tuple[str, ...]],
        shared: Mapping[str, Mapping[str, list[str]]],
    ) -> Iterable[Flaw]:
        if name in circles:
            yield Flaw(HyperNodeReason.CYCLE, f"it is a member of itself, by way of {_few(circles[name])}")
        if len(parents) > 1:
            yield Flaw(HyperNodeReason.SEVERAL_PARENTS, f"it is a member of {_few(parents)}, want one")
        tier = self._entries[name].tier
        higher = [child for child in children if child != name and self._entries[child].tier >= tier]
        if higher:
            yield Flaw(HyperNodeReason.TIER_ORDER, f"tier {tier} is not above that of its members {_few(higher)}")
        for other, nodes in sorted(shared.get(name, {}).items()):
            yield Flaw(HyperNodeReason.SHARED_NODES, f"{other} has {_few(sorted(nodes))} as well")
        missing = sorted(self._missing(name))
        if missing:
            yield Flaw(HyperNodeReason.MEMBER_NOT_FOUND, f"there is no {_few(missing)}")

    def _missing(self, name: str) -> Iterable[str]:
        for selector in self._entries[name].selectors:
            known = self._nodes if selector.type is MemberType.NODE else self._entries
            if selector.how == "exactMatch" and selector.what not in known:
                yield f"{selector.type} {selector.what}"


def _selector(member: Chooser) -> _Selector:
    chosen = member.selector
    kind = MemberType.HYPERNODE if member.type == MemberType.HYPERNODE else MemberType.NODE
    if chosen.exact_match is not None:
        return _Selector(kind, "exactMatch", chosen.exact_match.name)
    if chosen.regex_match is not None:
        return _Selector(kind, "regexMatch", chosen.regex_match.pattern)
    return _Selector(kind, "labelMatch", json.dumps(chosen.label_match or {}, sort_keys=True))


def _test_of(selector: _Selector) -> Callable[[str, Labels], bool]:
    """Whether a node or HyperNode of that name and those labels is selected. An invalid pattern selects nothing, nor
    does an empty label selector, nor one for HyperNodes (as in Volcano)."""
    if selector.how == "regexMatch":
        try:
            pattern = compile_pattern(selector.what)
        except MalformedPattern:
            return lambda name, labels: False
        return lambda name, labels: pattern.search(name) is not None
    wanted = json.loads(selector.what)
    if not (wanted.get("matchLabels") or wanted.get("matchExpressions")) or selector.type is MemberType.HYPERNODE:
        return lambda name, labels: False
    return lambda name, labels: matches(wanted, labels)


def _circles(children: Mapping[str, list[str]]) -> dict[str, tuple[str, ...]]:
    """For every HyperNode that is below itself, the members of its cycle (Tarjan's strongly connected components)."""
    found: dict[str, tuple[str, ...]] = {}
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    on_path: set[str] = set()
    for root in children:
        if root in numbers:
            continue
        work = [(root, iter(children[root]))]
        _enter(root, numbers, lowest, path, on_path)
        while work:
            name, rest = work[-1]
            for child in rest:
                if child not in numbers:
                    _enter(child, numbers, lowest, path, on_path)
                    work.append((child, iter(children[child])))
                    break
                if child in on_path:
                    lowest[name] = min(lowest[name], numbers[child])
            else:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[name])
                if lowest[name] == numbers[name]:
                    members = _leave(name, path, on_path)
                    if len(members) > 1 or name in children[name]:
                        found.update(dict.fromkeys(members, tuple(sorted(members))))
    return found


def _enter(name: str, numbers: dict[str, int], lowest: dict[str, int], path: list[str], on_path: set[str]) -> None:
    numbers[name] = lowest[name] = len(numbers)
    path.append(name)
    on_path.add(name)


def _leave(name: str, path: list[str], on_path: set[str]) -> list[str]:
    start = path.index(name)
    members = path[start:]
    del path[start:]
    on_path.difference_update(members)
    return members


def _nodes_below(
    children: Mapping[str, list[str]], own: Mapping[str, set[str]], circles: Mapping[str, tuple[str, ...]]
) -> dict[str, frozenset[str]]:
    """The nodes below each HyperNode. Children precede their parents, without recursion: a chain may be as long as
    there are HyperNodes."""
    done: dict[str, frozenset[str]] = {}
    for root in children:
        work = [root]
        while work:
            name = work[-1]
            below = [child for child in children[name] if name not in circles or child not in circles[name]]
            waiting = [child for child in below if child not in done]
            if waiting and name not in done:
                work.extend(waiting)
                continue
            work.pop()
            if name not in done:
                done[name] = frozenset(own[name].union(*(done[child] for child in below)))
    return done


def _shared(own: Mapping[str, set[str]]) -> dict[str, dict[str, list[str]]]:
    """For every HyperNode, the others that have some of its nodes as members too."""
    holders: dict[str, list[str]] = {}
    for name in sorted(own):
        for node in own[name]:
            holders.setdefault(node, []).append(name)
    found: dict[str, dict[str, list[str]]] = {}
    for node in sorted(node for node, names in holders.items() if len(names) > 1):
        for name in holders[node]:
            for other in holders[node]:
                if other != name:
                    found.setdefault(name, {}).setdefault(other, []).append(node)
    return found


def _few(names: Iterable[str]) -> str:
    given = list(names)
    shown = ", ".join(given[:_SHOWN])
    return shown if len(given) <= _SHOWN else f"{shown} and {len(given) - _SHOWN} more"
