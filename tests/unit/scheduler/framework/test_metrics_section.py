"""The policy's `metrics` section: what is read, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from vcbatch.scheduler import PolicyError, build_policy
from vcbatch.scheduler.framework.metrics_section import MetricsSection, MetricsType

POLICY: dict[str, Any] = {"actions": "allocate", "tiers": []}


def _read(section: Any) -> MetricsSection | None:
    return build_policy({**POLICY, "metrics": section}).metrics


def test_there_need_be_none() -> None:
    assert build_policy(POLICY).metrics is None
    assert _read(None) is None


def test_prometheus_is_the_default() -> None:
    assert _read({"address": "http://prometheus:9090/"}) == MetricsSection(
        type=MetricsType.PROMETHEUS, address="http://prometheus:9090", interval=30.0
    )


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ("prometheus_adapt", MetricsType.PROMETHEUS_ADAPT),
        ("prometheus_adaptor", MetricsType.PROMETHEUS_ADAPT),
        ("local", MetricsType.LOCAL),
    ],
)
def test_sources_behind_the_api_server_need_no_address(given: str, kind: MetricsType) -> None:
    assert _read({"type": given, "interval": "1m30s"}) == MetricsSection(type=kind, interval=90.0)


@pytest.mark.parametrize("dotted", [True, False])
def test_options_below_may_be_nested_or_dotted(dotted: bool) -> None:
    options = {"index": "load-*", "username": "u", "password": "p", "hostnameFieldName": "node"}
    section: dict[str, Any] = {"type": "elasticsearch", "address": "https://es"}
    if dotted:
        section |= {"tls.insecureSkipVerify": "true", **{f"elasticsearch.{k}": v for k, v in options.items()}}
    else:
        section |= {"tls": {"insecureSkipVerify": True}, "elasticsearch": options}
    assert _read(section) == MetricsSection(
        type=MetricsType.ELASTICSEARCH,
        address="https://es",
        insecure=True,
        index="load-*",
        username="u",
        password="p",
        hostname_field="node",
    )


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ([], "policy.metrics: must be a mapping, got []"),
        ({"kind": 1}, "policy.metrics: unknown key 'kind'"),
        ({"type": "statsd"}, "policy.metrics.type: must be one of prometheus, prometheus_adapt, elasticsearch, local"),
        ({}, "policy.metrics.address: must be an http or https URL where the type is prometheus, got ''"),
        ({"address": "prometheus:9090"}, "policy.metrics.address: must be an http or https URL"),
        ({"address": "http://"}, "policy.metrics.address: must be an http or https URL"),
        ({"address": "http://x:port"}, "policy.metrics.address: must be an http or https URL"),
        ({"address": 3}, "policy.metrics.address: must be a URL, got 3"),
        (
            {"type": "local", "interval": 30},
            "policy.metrics.interval: must be a duration of at least 1s, such as 30s, got 30",
        ),
        ({"type": "local", "interval": "10ms"}, "policy.metrics.interval: must be a duration of at least 1s"),
        ({"type": "local", "tls": {"verify": 1}}, "policy.metrics.tls: unknown key 'verify'"),
        ({"type": "local", "tls": {"insecureSkipVerify": "perhaps"}}, "must be true or false, got 'perhaps'"),
        ({"type": "local", "elasticsearch": {"index": 3}}, "policy.metrics.elasticsearch.index: must be a string"),
    ],
)
def test_what_makes_no_sense_is_refused(section: Any, message: str) -> None:
    with pytest.raises(PolicyError) as refused:
        _read(section)
    assert message in str(refused.value)
