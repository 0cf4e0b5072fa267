"""The measured load of nodes, for the scheduler, read from the source in the configuration's `metrics` section.

One request per kind and round, whatever the number of nodes; each is bounded in time and size. A source that fails is
reported once, and its last measurements stay in use until they are too old for the plugins that read them.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import assert_never
from urllib.parse import quote

import aiohttp
import msgspec

from vcbatch.api import names
from vcbatch.api.meta import ObjectMeta, Wire
from vcbatch.api.node import Node
from vcbatch.api.quantity import MalformedQuantity, parse_quantity
from vcbatch.api.resources import NODE_USAGES, Resource
from vcbatch.api.timestamps import parse_time
from vcbatch.api.usage import NodeUsage
from vcbatch.interfaces.api import Api, ApiError
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.tls import client_context
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.pacing.pause import pause
from vcbatch.scheduler.framework.metrics_section import MetricsSection, MetricsType

log = logging.getLogger(__name__)

WINDOW = "10m"
"""The period over which loads are averaged."""
REQUEST_SECONDS = 10.0
LARGEST_ANSWER = 16 << 20
_MOST_BUCKETS = 65_000
_ELASTIC_CPU, _ELASTIC_MEMORY = "host.cpu.usage", "system.memory.actual.used.pct"
_PROMETHEUS_CPU = (
    f'avg_over_time((1 - avg by (instance) (rate(node_cpu_seconds_total{{mode="idle"}}[5m])))[{WINDOW}:30s])'
)
_PROMETHEUS_MEMORY = f"avg_over_time((1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes)[{WINDOW}:30s])"
_ADAPTED_CPU, _ADAPTED_MEMORY = "node_cpu_usage_avg", "node_memory_usage_avg"


class UsageError(Exception):
    """The source didn't answer, or its response can't be parsed; the message has the reason."""


@dataclass(frozen=True, slots=True)
class _Sample:
    """A fraction, and when it was measured, in seconds since the epoch."""

    value: float
    at: float


_Samples = Mapping[str, _Sample]


class _NodeMetrics(Wire):
    """The metrics server's measurements of a node."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    timestamp: str = ""
    usage: dict[str, str | int | float] | None = None


class _Described(Wire):
    name: str = ""


class _MetricValue(Wire):
    """One item of a custom metric; it has no metadata with a name."""

    described_object: _Described = msgspec.field(default_factory=_Described)
    timestamp: str = ""
    value: str | int | float = 0


class _PrometheusSeries(Wire):
    metric: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    value: tuple[float, str] = (0.0, "")


class _PrometheusData(Wire):
    result_type: str = ""
    result: list[_PrometheusSeries] | None = None


class _PrometheusAnswer(Wire):
    status: str = ""
    error: str = ""
    data: _PrometheusData = msgspec.field(default_factory=_PrometheusData)


class _Value(Wire):
    value: float | None = None


class _Bucket(Wire):
    key: str = ""
    cpu: _Value = msgspec.field(default_factory=_Value)
    mem: _Value = msgspec.field(default_factory=_Value)


class _Buckets(Wire):
    buckets: list[_Bucket] | None = None


class _Aggregations(Wire):
    nodes: _Buckets = msgspec.field(default_factory=_Buckets)


class _ElasticAnswer(Wire):
    aggregations: _Aggregations | None = None


class UsageSource:
    """Measures periodically, as long as there is a section."""

    def __init__(
        self,
        api: Api,
        nodes: Cache[Node],
        *,
        clock: Clock,
        section: MetricsSection | None,
        measured: Callable[[str, NodeUsage], None],
    ) -> None:
        """`measured` gets MODIFIED with the usage of every node that exists and was measured, and DELETED with the last
        usage of a deleted node."""
        self._api = api
        self._nodes = nodes
        self._clock = clock
        self._section = section
        self._measured = measured
        self._changed = asyncio.Event()
        self._error = ""
        self._last: dict[str, NodeUsage] = {}

    def use(self, section: MetricsSection | None) -> None:
        """Use this section from now on; None: don't measure."""
        if section != self._section:
            self._section = section
            self._changed.set()

    async def run(self) -> None:
        """Measure until cancelled."""
        while True:
            self._changed.clear()
            if self._section is None:
                await self._changed.wait()
                continue
            await self._round(self._section)
            await pause(self._clock, self._section.interval, woken=self._changed)

    async def _round(self, section: MetricsSection) -> None:
        try:
            usages = await self.measure(section)
        except UsageError as error:
            if str(error) != self._error:
                log.warning("node usage is unavailable: %s", error)
            self._error = str(error)
            return
        if self._error:
            log.info("node usage is available again")
        self._error = ""
        for usage in usages:
            self._last[usage.metadata.name] = usage
            self._measured("MODIFIED", usage)
        for name in [name for name in self._last if self._nodes.by_key(name) is None]:
            self._measured("DELETED", self._last.pop(name))

    async def measure(self, section: MetricsSection) -> list[NodeUsage]:
        """The load of the existing nodes, by name. Raises `UsageError`."""
        try:
            async with asyncio.timeout(2 * REQUEST_SECONDS):
                cpu, memory = await self._samples(section)
        except TimeoutError as error:
            raise UsageError(f"{_called(section)}: no answer within {2 * REQUEST_SECONDS:g} s") from error
        except (aiohttp.ClientError, OSError, ApiError, msgspec.DecodeError, ValueError, RecursionError) as error:
            raise UsageError(f"{_called(section)}: {str(error) or type(error).__name__}") from error
        known = sorted(cpu.keys() & memory.keys())
        return [
            NodeUsage(
                metadata=ObjectMeta(name=name),
                cpu=cpu[name].value,
                memory=memory[name].value,
                observed_at=min(cpu[name].at, memory[name].at),
            )
            for name in known
            if self._nodes.by_key(name) is not None
        ]

    async def _samples(self, section: MetricsSection) -> tuple[_Samples, _Samples]:
        match section.type:
            case MetricsType.PROMETHEUS:
                return await self._prometheus(section)
            case MetricsType.ELASTICSEARCH:
                return await self._elasticsearch(section)
            case MetricsType.PROMETHEUS_ADAPT:
                return await self._adapted(_ADAPTED_CPU), await self._adapted(_ADAPTED_MEMORY)
            case MetricsType.LOCAL:
                return await self._metrics_server()
            case _:
                assert_never(section.type)

    # Servers of their own --------------------------------------------------------------------------------------------

    async def _prometheus(self, section: MetricsSection) -> tuple[_Samples, _Samples]:
        url = f"{section.address}/api/v1/query"
        async with _session(section) as http:

            async def ask(query: str) -> _Samples:
                data = await _answer(http.get(url, params={"query": query}))
                answer = msgspec.json.decode(data, type=_PrometheusAnswer)
                if answer.status != "success" or answer.data.result_type != "vector":
                    raise ValueError(answer.error or f"the answer is no vector but {answer.data.result_type!r}")
                return self._by_instance(answer.data.result or ())

            return await ask(_PROMETHEUS_CPU), await ask(_PROMETHEUS_MEMORY)

    def _by_instance(self, series: Iterable[_PrometheusSeries]) -> _Samples:
        """Samples by node: an instance is a node's name, with or without a port, or there is a label `node` or
        `nodename`."""
        found: dict[str, _Sample] = {}
        for one in series:
            labels = one.metric
            instance = labels.get("instance", "")
            for name in (labels.get("node"), labels.get("nodename"), instance, instance.rpartition(":")[0]):
                if name and self._nodes.by_key(name) is not None:
                    at, text = one.value
                    _keep(found, name, float(text), at)
                    break
        return found

    async def _elasticsearch(self, section: MetricsSection) -> tuple[_Samples, _Samples]:
        url = f"{section.address}/{quote(section.index, safe='*,')}/_search"
        query = {
            "size": 0,
            "query": {"range": {"@timestamp": {"gte": f"now-{WINDOW}", "lt": "now"}}},
            "aggs": {
                "nodes": {
                    "terms": {"field": section.hostname_field, "size": min(max(len(self._nodes), 1), _MOST_BUCKETS)},
                    "aggs": {"cpu": {"avg": {"field": _ELASTIC_CPU}}, "mem": {"avg": {"field": _ELASTIC_MEMORY}}},
                }
            },
        }
        now = self._clock.now().timestamp()
        async with _session(section) as http:
            data = await _answer(http.post(url, json=query))
        answer = msgspec.json.decode(data, type=_ElasticAnswer)
        if answer.aggregations is None:
            raise ValueError("the answer has no aggregations")
        cpu: dict[str, _Sample] = {}
        memory: dict[str, _Sample] = {}
        for bucket in answer.aggregations.nodes.buckets or ():
            for samples, value in ((cpu, bucket.cpu.value), (memory, bucket.mem.value)):
                if value is not None:
                    _keep(samples, bucket.key, value, now)
        return cpu, memory

    # Behind the API server -------------------------------------------------------------------------------------------

    async def _adapted(self, metric: str) -> _Samples:
        resource = Resource(
            group=names.CUSTOM_METRICS_GROUP,
            version="v1beta1",
            plural=f"nodes/*/{metric}",
            kind="MetricValue",
            namespaced=False,
        )
        listing = await self._api.list(resource, model=_MetricValue)
        found: dict[str, _Sample] = {}
        for item in listing.items:
            _keep(found, item.described_object.name, _amount(item.value), self._instant(item.timestamp))
        return found

    async def _metrics_server(self) -> tuple[_Samples, _Samples]:
        listing = await self._api.list(NODE_USAGES, model=_NodeMetrics)
        cpu: dict[str, _Sample] = {}
        memory: dict[str, _Sample] = {}
        for item in listing.items:
            node = self._nodes.by_key(item.metadata.name)
            capacity = (node.status.capacity or node.status.allocatable) if node is not None else None
            for samples, resource in ((cpu, "cpu"), (memory, "memory")):
                used, there = (item.usage or {}).get(resource), (capacity or {}).get(resource)
                if used is not None and there is not None and _amount(there) > 0:
                    fraction = _amount(used) / _amount(there)
                    _keep(samples, item.metadata.name, fraction, self._instant(item.timestamp))
        return cpu, memory

    def _instant(self, text: str) -> float:
        return (parse_time(text) if text else self._clock.now()).timestamp()


def _keep(samples: dict[str, _Sample], name: str, value: float, at: float) -> None:
    """Store a measurement, unless it isn't a finite number."""
    if math.isfinite(value) and math.isfinite(at):
        samples[name] = _Sample(max(value, 0.0), at)


def _amount(quantity: str | float) -> float:
    """Cores, bytes or a plain number. Raises ValueError."""
    try:
        return parse_quantity(quantity).nano / 1e9
    except MalformedQuantity as error:
        raise ValueError(f"{quantity!r} is no quantity") from error


def _called(section: MetricsSection) -> str:
    return f"{section.type} {section.address}".rstrip()


def _session(section: MetricsSection) -> aiohttp.ClientSession:
    headers: dict[str, str] = {}
    if section.username:
        secret = base64.b64encode(f"{section.username}:{section.password}".encode()).decode()
        headers["Authorization"] = f"Basic {secret}"
    context = client_context(verify=not section.insecure) if section.address.startswith("https://") else True
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=context),
        headers=headers,
        timeout=aiohttp.ClientTimeout(total=REQUEST_SECONDS),
    )


async def _answer(request: AbstractAsyncContextManager[aiohttp.ClientResponse]) -> bytes:
    """The body of a successful response. Raises ValueError for another one, and for one that is too large."""
    async with request as response:
        body = bytearray()
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > LARGEST_ANSWER:
                raise ValueError(f"the answer is larger than {LARGEST_ANSWER} bytes")
        if response.status != 200:
            raise ValueError(f"HTTP {response.status}: {bytes(body[:200]).decode(errors='replace').strip()}")
        return bytes(body)
