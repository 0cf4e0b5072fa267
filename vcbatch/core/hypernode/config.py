"""The part of Volcano's controller configuration that says how HyperNodes are found (`networkTopologyDiscovery`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

from vcbatch.api import name_rules
from vcbatch.core.hypernode.discovery import SOURCE, LabelTopology, stem

_SECTION: Final = "networkTopologyDiscovery"
_TYPES: Final = "networkTopologyTypes"
_LONGEST_TYPE: Final = 20
_KEYS: Final = frozenset({"source", "enabled", "interval", "credentials", "config"})


class MalformedDiscovery(ValueError):
    """The message names the place, what is there, and what is allowed."""


def parse_discovery(given: Any) -> tuple[LabelTopology, ...]:
    """The label topologies that are switched on, by name. Raises `MalformedDiscovery`.

    Of two with names that are written alike in the name of a HyperNode, neither could tell its own.
    """
    sources = _listed(_mapping(given or {}, "the file").get(_SECTION), _SECTION)
    found = [topology for index, source in enumerate(sources) for topology in _topologies(source, index)]
    by_stem: dict[str, LabelTopology] = {}
    for topology in found:
        other = by_stem.setdefault(stem(topology.name), topology)
        if other is not topology:
            raise MalformedDiscovery(f"{_TYPES}: {other.name} and {topology.name} make HyperNodes of the same name")
    return tuple(sorted(found, key=lambda topology: topology.name))


def _topologies(source: Any, index: int) -> Iterator[LabelTopology]:
    path = f"{_SECTION}[{index}]"
    fields = _mapping(source, path)
    for key in sorted(fields.keys() - _KEYS):
        raise MalformedDiscovery(f"{path}.{key}: no such field, want some of {', '.join(sorted(_KEYS))}")
    enabled = fields.get("enabled", False)
    if not isinstance(enabled, bool):
        raise MalformedDiscovery(f"{path}.enabled: {enabled!r} is neither true nor false")
    if fields.get("source") != SOURCE:
        if not enabled:
            return
        raise MalformedDiscovery(f"{path}.source: {fields.get('source')!r} isn't supported, want {SOURCE}")
    types = _mapping(_mapping(fields.get("config") or {}, f"{path}.config").get(_TYPES), f"{path}.config.{_TYPES}")
    for name, levels in types.items():
        topology = LabelTopology(name=name, labels=_labels(name, levels, f"{path}.config.{_TYPES}.{name}"))
        if enabled:
            yield topology


def _labels(name: str, levels: Any, path: str) -> Sequence[str]:
    if not name or len(name) > _LONGEST_TYPE:
        raise MalformedDiscovery(f"{path}: the name has {len(name)} characters, want 1 to {_LONGEST_TYPE}")
    labels: list[str] = []
    for index, level in enumerate(_listed(levels, path)):
        label = _mapping(level, f"{path}[{index}]").get("nodeLabel")
        if not isinstance(label, str) or name_rules.qualified_name(label):
            raise MalformedDiscovery(f"{path}[{index}].nodeLabel: {label!r} is no name of a label")
        if label in labels:
            raise MalformedDiscovery(f"{path}[{index}].nodeLabel: {label} is there twice")
        labels.append(label)
    if len(labels) < 2:
        raise MalformedDiscovery(f"{path}: {len(labels)} labels, want the domains' and last the node's own")
    return labels


def _mapping(given: Any, path: str) -> dict[str, Any]:
    if not isinstance(given, dict) or not all(isinstance(key, str) for key in cast(dict[Any, Any], given)):
        raise MalformedDiscovery(f"{path}: want a mapping")
    return cast(dict[str, Any], given)


def _listed(given: Any, path: str) -> list[Any]:
    if given is None:
        return []
    if not isinstance(given, list):
        raise MalformedDiscovery(f"{path}: want a list")
    return cast(list[Any], given)
