"""Every panel shows data on a Prometheus that scrapes scheduler, controllers and webhooks while jobs run."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import os
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from tests.integration.runtime.conftest import server as server_fixture
from tests.integration.runtime.test_components import Places, component, submit
from tests.integration.up.manifests import job
from tests.monitoring.alerts import RULES, shipped
from tests.monitoring.dashboards import EVERYTHING, Target, targets
from tests.support.admission_http import review_of
from tests.support.ports import free_port
from vcbatch.api.admission import Operation, Request
from vcbatch.api.resources import JOBS, NAMESPACES, SECRETS
from vcbatch.local.apiserver.server import EmbeddedServer
from vcbatch.local.virtual import VirtualKubelet, VirtualNode
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.random import SystemRandom

server = server_fixture
SECONDS = 420.0

JOBS_SHOWN = ("shown", "waits", "ends-0", "fails-0")
ONLY_ON_FAILURE = {
    "Admission failures": "an admission that can't decide",
    "Failed writes": "an API server that refuses writes of the scheduler",
    "Failing and slow plugins": "a plugin of the user's own",
    "Relists": "an API server that closes watches",
    "Failing background tasks": "a background task that fails",
}
"""Panels without data as long as all is well, and what it takes."""


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A running one."""

    url: str

    async def query(self, session: aiohttp.ClientSession, expr: str) -> list[float]:
        """The values that it has now, without those that are no number."""
        async with session.get(f"{self.url}/api/v1/query", params={"query": expr}) as answer:
            if answer.status == 503:
                return []  # it is starting
            found = await answer.json()
        assert found["status"] == "success", f"{expr}: {found}"
        result = found["data"]["result"]
        values = [float(sample["value"][1]) for sample in result]
        return [value for value in values if not math.isnan(value)]

    async def firing(self, session: aiohttp.ClientSession) -> set[str]:
        """The alerts that fire or are about to."""
        async with session.get(f"{self.url}/api/v1/alerts") as answer:
            found = await answer.json()
        return {alert["labels"]["alertname"] for alert in found["data"]["alerts"]}


@contextmanager
def running(program: Path, folder: Path, scraped: Mapping[str, str]) -> Iterator[Prometheus]:
    """One that scrapes these addresses each second and evaluates the shipped alerts."""
    address = f"127.0.0.1:{free_port()}"
    configuration = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [
            {"job_name": name, "static_configs": [{"targets": [target], "labels": {"namespace": "volcano-system"}}]}
            for name, target in scraped.items()
        ],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration))
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                program,
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={address}",
            ],
            stdout=log,
            stderr=log,
            env={"PATH": os.environ["PATH"], "HOME": str(folder)},
        )
        try:
            yield Prometheus(f"http://{address}")
        finally:
            process.kill()
            process.wait()


@dataclass(frozen=True, slots=True)
class World:
    """Programs at work, and who scrapes them."""

    server: EmbeddedServer
    prometheus: Prometheus
    webhooks: str


@pytest.fixture
async def world(server: EmbeddedServer, prometheus: Path, tmp_path: Path) -> AsyncIterator[World]:
    await server.api.create(NAMESPACES, {"metadata": {"name": "volcano-system"}})
    secret = {"metadata": {"name": "volcano-admission-secret"}, "type": "Opaque"}
    await server.api.create(SECRETS, secret, namespace="volcano-system")
    nodes = [VirtualNode(name="n1", capacity={"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "4", "pods": "110"})]
    stop = asyncio.Event()
    kubelet = asyncio.create_task(VirtualKubelet(server.api, SystemClock(), SystemRandom(), nodes=nodes).run(stop))
    controllers, scheduler, webhooks = Places(), Places(), Places()
    port = free_port()
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        'actions: "enqueue, allocate, preempt, reclaim, backfill"\n'
        "tiers:\n- plugins:\n  - name: priority\n  - name: gang\n  - name: drf\n  - name: predicates\n"
        "  - name: proportion\n  - name: nodeorder\n"
    )
    with (
        component("controllers", server, tmp_path / "c.log", *controllers.flags),
        component("scheduler", server, tmp_path / "s.log", *scheduler.flags, "--scheduler-conf", str(policy)),
        component(
            "webhooks", server, tmp_path / "w.log", "--healthz-address", webhooks.health, "--port", str(port),
            "--webhook-url", f"https://127.0.0.1:{port}",
        ),
        running(
            prometheus,
            tmp_path,
            {"controllers": controllers.metrics, "scheduler": scheduler.metrics, "webhooks": webhooks.health},
        ) as scraping,
    ):  # fmt: skip
        yield World(server, scraping, f"https://127.0.0.1:{port}/jobs/validate")
        stop.set()
        await kubelet


async def test_every_panel_shows_data(world: World) -> None:
    missing = [target for target in targets() if target.panel not in ONLY_ON_FAILURE]
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession())
        working = asyncio.create_task(_work(world, session))
        try:
            async with asyncio.timeout(SECONDS):
                while missing:
                    if working.done():
                        working.result()
                    missing = [one for one in missing if not await _shows(world, session, one)]
                    await asyncio.sleep(0.2)
        except TimeoutError:
            reported = "\n".join(f"{target}: {target.strict(_chosen(JOBS_SHOWN[0]))}" for target in missing)
            pytest.fail(f"no data after {SECONDS:.0f} s:\n{reported}")
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
        fires = await world.prometheus.firing(session)
    assert fires <= set(shipped())
    assert not fires, "all is well, and an alert fires or is about to"


async def _shows(world: World, session: aiohttp.ClientSession, target: Target) -> bool:
    """Whether it shows something, of one of the jobs where it is about a job."""
    for name in JOBS_SHOWN:
        try:
            if await world.prometheus.query(session, target.strict(_chosen(name))):
                return True
        except aiohttp.ClientConnectionError:
            return False  # it is starting
    return False


def _chosen(name: str) -> dict[str, str]:
    return {**EVERYTHING, "job_namespace": "default", "job": name}


async def _work(world: World, session: aiohttp.ClientSession) -> None:
    """Jobs of all kinds again and again, for as long as somebody looks."""
    api = world.server.api
    gpu = {"nvidia.com/gpu": "1"}
    await submit(world.server, job("shown", "sleep 3600", replicas=2, cpu="1"))
    await submit(world.server, _with_requests(job("with-a-gpu", "sleep 3600"), gpu))
    await submit(world.server, job("waits", "true", replicas=2, cpu="100"))
    restart = {"policies": [{"event": "PodFailed", "action": "RestartJob"}], "maxRetry": 1}
    for number in itertools.count():
        await submit(world.server, job(f"ends-{number}", "true", replicas=2))
        await submit(world.server, job(f"fails-{number}", "exit 1", **restart))
        body = {"metadata": {"name": "j", "namespace": "default"}, "spec": {"queue": "default"}}
        request = Request(resource=JOBS, operation=Operation.CREATE, name="j", namespace="default", object=body)
        try:
            async with session.post(world.webhooks, json=review_of(request), ssl=False) as answer:
                await answer.read()
        except aiohttp.ClientConnectionError:
            pass  # they are starting
        names = {stored["metadata"]["name"] for stored in (await api.list(JOBS)).items}
        assert {"shown", "waits"} <= names
        await asyncio.sleep(1)


def _with_requests(manifest: str, requests: Mapping[str, str]) -> str:
    body: dict[str, Any] = json.loads(manifest)
    container = body["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {**container["resources"]["requests"], **requests}, "limits": dict(requests)}
    return json.dumps(body)
