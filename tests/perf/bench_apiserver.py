"""Writes and reads per second of a running API server, over TLS, with watchers on what is written."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.support.ports import free_port
from vcbatch.api.resources import PODS
from vcbatch.interfaces import Api

REQUESTS = 2000
CONCURRENCY = 16
WATCHERS = 5
NAMESPACE = "default"

_BARE_SERVER = """
import sys, uvicorn
async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": b"{}" * 400})
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), ssl_certfile=sys.argv[2], ssl_keyfile=sys.argv[3],
            log_level="critical", access_log=False)
"""


@dataclass(frozen=True, slots=True)
class Rate:
    per_second: float
    p99: float  # seconds


def pod(name: str) -> dict:
    """A pod of some 2 KB that no scheduler and no kubelet touches."""
    container = {"name": "main", "image": "none", "command": ["sh", "-c", "true"], "env": []}
    container["env"] = [{"name": f"VARIABLE_{number}", "value": "x" * 40} for number in range(16)]
    spec = {"schedulerName": "nobody", "restartPolicy": "Never", "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"bench": "yes"}}, "spec": spec}


async def rate(action: Callable[[int], Awaitable[object]], requests: int) -> Rate:
    """`requests` calls by `CONCURRENCY` callers."""
    latencies: list[float] = []
    numbers = iter(range(requests))

    async def caller() -> None:
        for number in numbers:
            began = time.perf_counter()
            await action(number)
            latencies.append(time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(CONCURRENCY)))
    elapsed = time.perf_counter() - began
    return Rate(requests / elapsed, sorted(latencies)[int(len(latencies) * 0.99)])


async def run(api: Api) -> dict[str, Rate]:
    """Creates, gets and status patches; the watchers must see every one of them before the last figure counts."""
    version = (await api.list(PODS, namespace=NAMESPACE, label_selector="bench=yes")).resource_version
    everything = 2 * REQUESTS

    async def watch() -> None:
        seen = 0
        async for event in api.watch(PODS, namespace=NAMESPACE, label_selector="bench=yes", resource_version=version):
            seen += event.type != "BOOKMARK"
            if seen == everything:
                return

    watchers = [asyncio.create_task(watch()) for _ in range(WATCHERS)]
    try:
        rates = {
            "creates": await rate(lambda n: api.create(PODS, pod(f"bench-{n}"), namespace=NAMESPACE), REQUESTS),
            "gets": await rate(lambda n: api.get(PODS, f"bench-{n}", namespace=NAMESPACE), REQUESTS),
            "status patches": await rate(
                lambda n: api.patch(
                    PODS, f"bench-{n}", {"status": {"message": str(n)}}, namespace=NAMESPACE, subresource="status"
                ),
                REQUESTS,
            ),
        }
        await asyncio.wait_for(asyncio.gather(*watchers), 60)
    finally:
        for task in watchers:
            task.cancel()
        await asyncio.gather(*watchers, return_exceptions=True)
    await rate(lambda n: api.delete(PODS, f"bench-{n}", namespace=NAMESPACE, grace_seconds=0), REQUESTS)
    return rates


def yardstick() -> float:
    """Requests per second of an HTTPS server that does nothing, measured with the same client settings."""
    with tempfile.TemporaryDirectory(prefix="vcbatch-bench-") as folder:
        certificate, key = Path(folder) / "cert.pem", Path(folder) / "key.pem"
        _self_signed(certificate, key)
        port = free_port()
        server = subprocess.Popen([sys.executable, "-c", _BARE_SERVER, str(port), str(certificate), str(key)])
        try:
            return asyncio.run(_measure(port, certificate))
        finally:
            server.terminate()
            server.wait()


async def _measure(port: int, certificate: Path) -> float:
    context = ssl.create_default_context(cafile=str(certificate))
    url = f"https://127.0.0.1:{port}/"
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
        for _ in range(200):
            try:
                await (await session.get(url)).read()
                break
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.05)

        async def post(_: int) -> None:
            async with session.post(url, data=b"x" * 2000) as response:
                await response.read()

        return (await rate(post, REQUESTS)).per_second


def _self_signed(certificate: Path, key: Path) -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "bench")])
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder(
            name, name, private.public_key(), x509.random_serial_number(), now, now + timedelta(days=1)
        )
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .sign(private, hashes.SHA256())
    )
    certificate.write_bytes(built.public_bytes(serialization.Encoding.PEM))
    key.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
