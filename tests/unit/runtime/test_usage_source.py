"""Where the load of nodes is read from: small servers that answer as the real ones do, and as broken ones."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from aiohttp import web

from tests.support.handled_http import Handler, handled
from tests.support.virtual_time import SeededRandom
from vcbatch.api.node import Node
from vcbatch.api.usage import NodeUsage
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.client.http import ClientLimits, HttpApi
from vcbatch.runtime.client.kubeconfig import Connection
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.scheduling import usage_source
from vcbatch.runtime.scheduling.usage_source import UsageError, UsageSource
from vcbatch.scheduler.framework.metrics_section import MetricsSection, MetricsType

Json = dict[str, Any]


class _Clock(SystemClock):
    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


def _nodes(*names: str) -> Cache[Node]:
    cache: Cache[Node] = Cache(model=Node)
    for number, name in enumerate(names):
        meta = {"name": name, "uid": f"node-{name}", "resourceVersion": str(number + 1)}
        raw = {"metadata": meta, "status": {"capacity": {"cpu": "4", "memory": "16Gi"}}}
        cache.put(msgspec.convert(raw, Node))
    return cache


@asynccontextmanager
async def _source(
    address: str, nodes: Cache[Node], reported: Callable[[str, NodeUsage], None] = lambda event, usage: None
) -> AsyncIterator[UsageSource]:
    clock = _Clock()
    api = HttpApi(Connection(server=address), clock=clock, random=SeededRandom(1), limits=ClientLimits(retries=0))

    async with api:
        yield UsageSource(api, nodes, clock=clock, section=None, measured=reported)


async def _measured(handler: Handler, kind: MetricsType, *nodes: str, **options: Any) -> dict[str, tuple[float, ...]]:
    async with handled(handler) as address, _source(address, _nodes(*nodes)) as source:
        section = MetricsSection(type=kind, address=address, **options)
        usages = await source.measure(section)
    return {u.metadata.name: (u.cpu, u.memory, u.observed_at) for u in usages}


def _vector(**values: Json) -> web.Response:
    result = [{"metric": v["metric"], "value": v["value"]} for v in values.values()]
    return web.json_response({"status": "success", "data": {"resultType": "vector", "result": result}})


async def test_prometheus_is_asked_twice_for_all_nodes() -> None:
    asked: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        query = request.query["query"]
        asked.append(query)
        assert request.path == "/api/v1/query"
        load = "0.25" if "cpu" in query else "0.5"
        return _vector(
            plain={"metric": {"instance": "a"}, "value": [1000.5, load]},
            port={"metric": {"instance": "b:9100"}, "value": [900, load]},
            label={"metric": {"instance": "10.0.0.3:9100", "node": "c"}, "value": [1000, load]},
            stranger={"metric": {"instance": "x"}, "value": [1000, load]},
            none={"metric": {"instance": "d"}, "value": [1000, "NaN"]},
        )

    got = await _measured(handler, MetricsType.PROMETHEUS, "a", "b", "c", "d")
    assert got == {"a": (0.25, 0.5, 1000.5), "b": (0.25, 0.5, 900), "c": (0.25, 0.5, 1000)}
    assert len(asked) == 2
    assert all("[10m:30s]" in query for query in asked)


async def test_elasticsearch_is_asked_once() -> None:
    bodies: list[tuple[str, str, Json]] = []

    async def handler(request: web.Request) -> web.Response:
        bodies.append((request.path, request.headers["Authorization"], await request.json()))
        buckets = [
            {"key": "a", "cpu": {"value": 0.3}, "mem": {"value": 0.7}},
            {"key": "b", "cpu": {"value": None}, "mem": {"value": 0.7}},
        ]
        return web.json_response({"took": 3, "aggregations": {"nodes": {"buckets": buckets}}})

    got = await _measured(
        handler, MetricsType.ELASTICSEARCH, "a", "b", index="load-*", username="u", password="p", hostname_field="host"
    )
    assert {name: load[:2] for name, load in got.items()} == {"a": (0.3, 0.7)}
    ((path, authorization, query),) = bodies
    assert path == "/load-*/_search"
    assert authorization == "Basic " + base64.b64encode(b"u:p").decode()
    assert query["aggs"]["nodes"]["terms"] == {"field": "host", "size": 2}


async def test_the_metrics_server_says_amounts_of_which_we_make_fractions() -> None:
    async def handler(request: web.Request) -> web.Response:
        assert request.path == "/apis/metrics.k8s.io/v1beta1/nodes"
        items = [
            {
                "metadata": {"name": "a"},
                "timestamp": "2026-06-01T00:00:00Z",
                "window": "20s",
                "usage": {"cpu": "1000000000n", "memory": "4Gi"},
            },
            {"metadata": {"name": "gone"}, "usage": {"cpu": "1", "memory": "4Gi"}},
            {"metadata": {"name": "b"}, "timestamp": "2026-06-01T00:00:00Z", "usage": {"cpu": "1"}},
        ]
        return web.json_response({"kind": "NodeMetricsList", "metadata": {}, "items": items})

    got = await _measured(handler, MetricsType.LOCAL, "a", "b")
    assert got == {"a": (0.25, 0.25, 1780272000.0)}


async def test_custom_metrics_are_read_by_their_names() -> None:
    paths: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        paths.append(request.path)
        value = "250m" if "cpu" in request.path else "1"
        items = [
            {
                "describedObject": {"kind": "Node", "name": "a"},
                "metricName": "m",
                "timestamp": "2026-06-01T00:00:00Z",
                "value": value,
            }
        ]
        return web.json_response({"kind": "MetricValueList", "metadata": {}, "items": items})

    got = await _measured(handler, MetricsType.PROMETHEUS_ADAPT, "a")
    assert got == {"a": (0.25, 1.0, 1780272000.0)}
    assert paths == [
        "/apis/custom.metrics.k8s.io/v1beta1/nodes/*/node_cpu_usage_avg",
        "/apis/custom.metrics.k8s.io/v1beta1/nodes/*/node_memory_usage_avg",
    ]


def _answers(body: str, status: int = 200) -> Handler:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(text=body, status=status)

    return handler


@pytest.mark.parametrize("kind", list(MetricsType))
@pytest.mark.parametrize(("body", "status"), [("{", 200), ("[]", 200), ("no", 500), ('{"status": "error"}', 200)])
async def test_answers_that_cannot_be_understood_are_told_as_such(kind: MetricsType, body: str, status: int) -> None:
    if kind in (MetricsType.LOCAL, MetricsType.PROMETHEUS_ADAPT) and body.startswith('{"'):
        assert await _measured(_answers(body, status), kind, "a") == {}
        return
    with pytest.raises(UsageError, match=f"^{kind} "):
        await _measured(_answers(body, status), kind, "a")


async def test_an_answer_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_source, "LARGEST_ANSWER", 1000)
    with pytest.raises(UsageError, match="larger than 1000 bytes"):
        await _measured(_answers("x" * 5000), MetricsType.PROMETHEUS, "a")


async def test_a_server_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_source, "REQUEST_SECONDS", 0.05)
    hanging = asyncio.Event()

    async def handler(_: web.Request) -> web.Response:
        await hanging.wait()
        return web.Response()

    with pytest.raises(UsageError):
        await _measured(handler, MetricsType.PROMETHEUS, "a")


async def test_rounds_go_on_after_failures_and_tell_of_nodes_that_are_gone() -> None:
    refused = [True]
    reported: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
    nodes = _nodes("a", "b")

    async def handler(_: web.Request) -> web.Response:
        if refused:
            refused.pop()
            return web.Response(status=503)
        return _vector(
            a={"metric": {"instance": "a"}, "value": [1, "0.5"]}, b={"metric": {"instance": "b"}, "value": [1, "0.5"]}
        )

    def report(event: str, usage: NodeUsage) -> None:
        reported.put_nowait((event, usage.metadata.name))

    async def next_gone() -> str:
        while True:
            event, name = await reported.get()
            if event == "DELETED":
                return name

    async with handled(handler) as address, _source(address, nodes, report) as source:
        running = asyncio.ensure_future(source.run())
        source.use(MetricsSection(address=address))
        assert [await reported.get(), await reported.get()] == [("MODIFIED", "a"), ("MODIFIED", "b")]
        nodes.discard("node-b")
        async with asyncio.timeout(60):
            assert await next_gone() == "b"
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert not refused
