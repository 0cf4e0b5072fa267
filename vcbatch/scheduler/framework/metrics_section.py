"""The `metrics` section of the scheduler configuration: the source of the nodes' actual load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from vcbatch.scheduler.framework.arguments import Argument, PolicyError, shown
from vcbatch.scheduler.framework.structures import duration, mapping

WHERE = "policy.metrics"
_interval = duration("30s", least="1s")
_INDEX = "metricbeat-*"
_HOSTNAME = "host.hostname"
_NESTED = {
    "tls": ("insecureSkipVerify",),
    "elasticsearch": ("index", "username", "password", "hostnameFieldName"),
}
"""Volcano's sections below `metrics`, which may also be written with a dot (`tls.insecureSkipVerify`)."""


class MetricsType(StrEnum):
    """The kind of source. `prometheus_adaptor` is another spelling of `prometheus_adapt`."""

    PROMETHEUS = "prometheus"
    """The HTTP API of a Prometheus server with node_exporter's series."""
    PROMETHEUS_ADAPT = "prometheus_adapt"
    """The custom metrics API of the cluster (custom.metrics.k8s.io)."""
    ELASTICSEARCH = "elasticsearch"
    """An Elasticsearch server with Metricbeat's documents."""
    LOCAL = "local"
    """The resource metrics API of the cluster (metrics.k8s.io, the metrics server)."""


_ADAPTOR = "prometheus_adaptor"
_WITH_ADDRESS = (MetricsType.PROMETHEUS, MetricsType.ELASTICSEARCH)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSection:
    """A validated section. `interval` is in seconds; `address` is empty for sources behind the API server."""

    type: MetricsType = MetricsType.PROMETHEUS
    address: str = ""
    interval: float = 30.0
    insecure: bool = False
    """Whether the server's certificate isn't verified."""
    index: str = _INDEX
    username: str = ""
    password: str = ""
    hostname_field: str = _HOSTNAME

    @staticmethod
    def read(value: object) -> MetricsSection | None:
        """The section; None if there is none. Raises `PolicyError` with the first error."""
        if value is None:
            return None
        dotted = {f"{section}.{key}" for section, keys in _NESTED.items() for key in keys}
        given = _flat(mapping(value, WHERE, {"type", "address", "interval", *_NESTED, *dotted}))
        kind = _type(given.get("type", MetricsType.PROMETHEUS))
        return MetricsSection(
            type=kind,
            address=_address(given.get("address", ""), kind),
            interval=_interval(given.get("interval"), f"{WHERE}.interval").total_seconds(),
            insecure=bool(Argument(default=False).read(given.get("tls.insecureSkipVerify", False), f"{WHERE}.tls")),
            index=_text(given, "elasticsearch.index") or _INDEX,
            username=_text(given, "elasticsearch.username"),
            password=_text(given, "elasticsearch.password"),
            hostname_field=_text(given, "elasticsearch.hostnameFieldName") or _HOSTNAME,
        )


def _flat(given: Mapping[str, Any]) -> dict[str, Any]:
    flat = {key: value for key, value in given.items() if key not in _NESTED}
    for section, keys in _NESTED.items():
        for key, value in mapping(given.get(section), f"{WHERE}.{section}", keys).items():
            flat[f"{section}.{key}"] = value
    return flat


def _type(value: object) -> MetricsType:
    if value == _ADAPTOR:
        return MetricsType.PROMETHEUS_ADAPT
    if value not in tuple(MetricsType):
        raise PolicyError(f"{WHERE}.type: must be one of {', '.join(MetricsType)}, got {shown(value)}")
    return MetricsType(str(value))


def _address(value: object, kind: MetricsType) -> str:
    if not isinstance(value, str):
        raise PolicyError(f"{WHERE}.address: must be a URL, got {shown(value)}")
    if kind not in _WITH_ADDRESS:
        return ""
    try:
        parts = urlsplit(value)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        fine = False
    if not fine:
        raise PolicyError(f"{WHERE}.address: must be an http or https URL where the type is {kind}, got {shown(value)}")
    return value.rstrip("/")


def _text(given: Mapping[str, Any], key: str) -> str:
    value = given.get(key)
    if value is not None and not isinstance(value, str):
        raise PolicyError(f"{WHERE}.{key}: must be a string, got {shown(value)}")
    return value or ""
