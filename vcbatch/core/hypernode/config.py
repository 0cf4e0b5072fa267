"""The part of Volcano's controller configuration for the discovery of HyperNodes (`networkTopologyDiscovery`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, cast
from urllib.parse import urlsplit

from vcbatch.api import name_rules
from vcbatch.api.duration import MalformedDuration, parse_duration
from vcbatch.core.hypernode import discovery, fabric
from vcbatch.core.hypernode.discovery import LabelTopology, stem
from vcbatch.core.hypernode.fabric import Fabric

_SECTION: Final = "networkTopologyDiscovery"
_TYPES: Final = "networkTopologyTypes"
_LONGEST_TYPE: Final = 20
_KEYS: Final = frozenset({"source", "enabled", "interval", "credentials", "config"})
_SOURCES: Final = (discovery.SOURCE, fabric.SOURCE)
_SHORTEST_INTERVAL: Final = timedelta(seconds=10)


class MalformedDiscovery(ValueError):
    """The message names the field, its value, and the allowed values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """The enabled sources of HyperNodes: node labels by the names of their topologies, and a fabric manager."""

    topologies: tuple[LabelTopology, ...] = ()
    fabric: Fabric | None = None


def parse_discovery(given: Any) -> Discovery:
    """Parse the configuration. Raises `MalformedDiscovery`.

    It is an error if two topologies, or two fabrics, have names that give the same names of HyperNodes: neither could
    identify its own.
    """
    found: list[LabelTopology] = []
    fabrics: list[Fabric] = []
    for index, given_source in enumerate(_listed(_mapping(given or {}, "the file").get(_SECTION), _SECTION)):
        path = f"{_SECTION}[{index}]"
        source = _source(given_source, path)
        enabled = source.get("enabled", False)
        if source.get("source") == discovery.SOURCE:
            topologies = list(_topologies(source, path))
            found += topologies if enabled else []
        elif enabled:
            fabrics.append(_fabric(source, path))
        if len(fabrics) > 1:
            raise MalformedDiscovery(f"{path}.source: a second {fabric.SOURCE} source is switched on, want one")
    by_stem: dict[str, LabelTopology] = {}
    for topology in found:
        other = by_stem.setdefault(stem(topology.name), topology)
        if other is not topology:
            raise MalformedDiscovery(f"{_TYPES}: {other.name} and {topology.name} make HyperNodes of the same name")
    topologies = tuple(sorted(found, key=lambda topology: topology.name))
    return Discovery(topologies=topologies, fabric=fabrics[0] if fabrics else None)


def _source(given: Any, path: str) -> dict[str, Any]:
    """The fields that all sources have. An unknown source is allowed as long as it is disabled."""
    fields = _mapping(given, path)
    for key in sorted(fields.keys() - _KEYS):
        raise MalformedDiscovery(f"{path}.{key}: no such field, want some of {', '.join(sorted(_KEYS))}")
    enabled = fields.get("enabled", False)
    if not isinstance(enabled, bool):
        raise MalformedDiscovery(f"{path}.enabled: {enabled!r} is neither true nor false")
    if enabled and fields.get("source") not in _SOURCES:
        allowed = " or ".join(_SOURCES)
        raise MalformedDiscovery(f"{path}.source: {fields.get('source')!r} isn't supported, want {allowed}")
    return fields


def _topologies(source: dict[str, Any], path: str) -> Iterator[LabelTopology]:
    types = _mapping(_mapping(source.get("config") or {}, f"{path}.config").get(_TYPES), f"{path}.config.{_TYPES}")
    for name, levels in types.items():
        yield LabelTopology(name=name, labels=_labels(name, levels, f"{path}.config.{_TYPES}.{name}"))


def _fabric(source: dict[str, Any], path: str) -> Fabric:
    config = _mapping(source.get("config") or {}, f"{path}.config")
    insecure = config.get("insecureSkipVerify", False)
    if not isinstance(insecure, bool):
        raise MalformedDiscovery(f"{path}.config.insecureSkipVerify: {insecure!r} is neither true nor false")
    return Fabric(
        endpoint=_endpoint(config.get("endpoint"), f"{path}.config.endpoint"),
        insecure=insecure,
        interval=_interval(source.get("interval"), f"{path}.interval"),
        secret=_secret(source.get("credentials"), f"{path}.credentials"),
    )


def _endpoint(given: Any, path: str) -> str:
    """The URL, with `https://` where no scheme is given, and without a trailing slash."""
    text = given if isinstance(given, str) else ""
    url = urlsplit(text if "://" in text else f"https://{text}")
    try:
        usable = url.scheme in ("http", "https") and url.hostname and url.port != 0 and not (url.username or url.query)
    except ValueError:
        usable = False
    if not usable or url.fragment:
        raise MalformedDiscovery(f"{path}: {given!r} is no address, want one as https://ufm.example.com")
    return url.geturl().rstrip("/")


def _interval(given: Any, path: str) -> timedelta:
    if given is None:
        return fabric.INTERVAL
    try:
        found = parse_duration(given) if isinstance(given, str) else timedelta()
    except MalformedDuration:
        found = timedelta()
    if found < _SHORTEST_INTERVAL:
        shortest = f"{_SHORTEST_INTERVAL.seconds}s"
        raise MalformedDiscovery(f"{path}: {given!r} is no interval, want a duration of {shortest} or more, as 1h")
    return found


def _secret(given: Any, path: str) -> tuple[str, str] | None:
    """The namespace and name of the Secret."""
    if given is None:
        return None
    reference = _mapping(_mapping(given, path).get("secretRef"), f"{path}.secretRef")
    found = reference.get("namespace"), reference.get("name")
    for key, value in zip(("namespace", "name"), found, strict=True):
        if not isinstance(value, str) or name_rules.dns_subdomain(value):
            raise MalformedDiscovery(f"{path}.secretRef.{key}: {value!r} is no name")
    return cast(tuple[str, str], found)


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
