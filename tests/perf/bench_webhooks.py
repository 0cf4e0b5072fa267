"""What admission costs: `vcbatch webhooks` as a process of its own, asked over TLS on connections that stay open.

The service is one thread, so that one core is all it can take. Besides the rate there are its CPU seconds, which say
the same on a machine where others work too.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.cluster.pki import Authority
from tests.support.admission_http import review_of
from tests.support.ports import free_port
from vcbatch.api.admission import Operation, Request
from vcbatch.api.model import Json
from vcbatch.api.resources import JOBS, PODS

CLIENTS = 8
_CONTAINER: Json = {
    "name": "main", "image": "registry.example/train:1", "command": ["python", "train.py"],
    "env": [{"name": "EPOCHS", "value": "3"}],
    "resources": {"limits": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}},
}  # fmt: skip
POD: Json = {
    "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"},
    "spec": {"schedulerName": "volcano", "restartPolicy": "Never", "containers": [_CONTAINER]},
}  # fmt: skip


def _task(name: str, replicas: int) -> Json:
    template = {
        "metadata": {"labels": {"app": "train"}},
        "spec": {"restartPolicy": "Never", "containers": [_CONTAINER]},
    }
    return {"name": name, "replicas": replicas, "minAvailable": replicas, "template": template}


JOB: Json = {
    "apiVersion": JOBS.api_version, "kind": "Job", "metadata": {"name": "j", "namespace": "default"},
    "spec": {
        "queue": "default", "schedulerName": "volcano", "maxRetry": 3, "minAvailable": 13,
        "plugins": {"svc": [], "env": []}, "policies": [{"event": "PodEvicted", "action": "RestartJob"}],
        "tasks": [_task("launcher", 1), _task("worker", 8), _task("evaluator", 4)],
    },
}  # fmt: skip
ASKED = (("3-task job", JOBS, JOB), ("pod", PODS, POD))


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Of one kind of object and one path. `cpu`: seconds of the service's CPU for each request."""

    what: str
    per_second: float
    cpu: float
    p50: float
    p99: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A running one. `ready`: seconds from the start of the process until /readyz said yes."""

    process: psutil.Process
    port: int
    context: ssl.SSLContext
    ready: float


@contextmanager
def running(kubeconfig: Path, folder: Path) -> Iterator[Service]:
    """`vcbatch webhooks` for the cluster of that kubeconfig."""
    authority = Authority(folder / "pki")
    pair = authority.serving("webhooks")
    port, health = free_port(), free_port()
    command = [
        sys.executable, "-m", "vcbatch", "webhooks", "--kubeconfig", str(kubeconfig), "--port", str(port),
        "--healthz-address", f"127.0.0.1:{health}", "--graceful-shutdown-time", "100ms", "--log-level", "warning",
        "--tls-cert-file", str(pair.certificate), "--tls-private-key-file", str(pair.key),
    ]  # fmt: skip
    began = time.perf_counter()
    process = subprocess.Popen(command)
    try:
        while not _ready(health):
            if process.poll() is not None:
                raise RuntimeError(f"vcbatch webhooks ended with {process.returncode}")
            time.sleep(0.005)
        ready = time.perf_counter() - began
        context = ssl.create_default_context(cafile=str(authority.certificate))
        yield Service(process=psutil.Process(process.pid), port=port, context=context, ready=ready)
    finally:
        process.terminate()
        process.wait()


def _ready(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            return b" 200 " in connection.recv(100)
    except OSError:
        return False


def requests() -> Iterator[tuple[str, bytes]]:
    """What is asked, and as which bytes: the clients shall cost as little as they can."""
    for what, resource, obj in ASKED:
        for verb in ("mutate", "validate"):
            asked = Request(resource=resource, operation=Operation.CREATE, name=obj["metadata"]["name"],
                            namespace="default", object=obj)  # fmt: skip
            body = json.dumps(review_of(asked), separators=(",", ":")).encode()
            head = f"POST /{resource.plural}/{verb} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            yield f"{verb} a {what}", f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def measure(service: Service, *, seconds: float) -> list[Measured]:
    """Every request, each for so long by several clients at once. Each is asked alone before, and has to be allowed."""
    found = []
    for what, request in requests():
        await _ask(service, request, until=0.0)
        before, began = _cpu(service), time.perf_counter()
        waits = await asyncio.gather(*(_ask(service, request, until=began + seconds) for _ in range(CLIENTS)))
        took, cpu = time.perf_counter() - began, _cpu(service) - before
        every = sorted(wait for each in waits for wait in each)
        found.append(
            Measured(
                what=what,
                per_second=len(every) / took,
                cpu=cpu / len(every),
                p50=statistics.median(every),
                p99=every[int(len(every) * 0.99)],
            )
        )
    return found


def _cpu(service: Service) -> float:
    return float(sum(service.process.cpu_times()[:2]))


async def _ask(service: Service, request: bytes, *, until: float) -> list[float]:
    """One client: how long each answer took, at least one."""
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", service.port, ssl=service.context, server_hostname="localhost"
    )
    waits: list[float] = []
    while not waits or time.perf_counter() < until:
        began = time.perf_counter()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        body = await reader.readexactly(length)
        waits.append(time.perf_counter() - began)
        if b'"allowed":true' not in body:
            raise RuntimeError(f"refused: {body[:500]!r}")
    writer.close()
    return waits
