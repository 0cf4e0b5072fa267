"""The servers that are compared: where they listen, and how to get in as the administrator."""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from tests.cluster.controlplane import ControlPlane

REPOSITORY = Path(__file__).parent.parent.parent
CRDS = REPOSITORY / "crds"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the definitions are long


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """`context` has the administrator's certificate where that is how he is known, else `token` does it."""

    url: str
    kubeconfig: Path
    context: ssl.SSLContext
    anonymous: ssl.SSLContext
    token: str = ""

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 443


def from_kubeconfig(path: Path) -> Server:
    """The server that a kubeconfig of one cluster and one user is for."""
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    context, anonymous = _trusting(cluster), _trusting(cluster)
    if "client-certificate" in user:
        context.load_cert_chain(user["client-certificate"], user["client-key"])
    elif "client-certificate-data" in user:
        with tempfile.NamedTemporaryFile(suffix=".pem") as pem:
            for part in ("client-certificate-data", "client-key-data"):
                pem.write(base64.b64decode(user[part]))
            pem.flush()
            context.load_cert_chain(pem.name)
    return Server(
        url=cluster["server"], kubeconfig=path, context=context, anonymous=anonymous, token=user.get("token", "")
    )


def _trusting(cluster: Mapping[str, Any]) -> ssl.SSLContext:
    if "certificate-authority" in cluster:
        return ssl.create_default_context(cafile=cluster["certificate-authority"])
    return ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())


def real(plane: ControlPlane) -> Server:
    """The server of a running control plane on which the CRDs are installed."""
    return from_kubeconfig(plane.kubeconfig)


_PROGRAM = """
import asyncio, signal, sys
from pathlib import Path
from vcbatch.local.apiserver.server import EmbeddedServer
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.random import SystemRandom

async def main():
    server = EmbeddedServer(state_dir=Path(sys.argv[1]), clock=SystemClock(), random=SystemRandom())
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await server.start()
    print("ready", flush=True)
    gone = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)  # the test process has died
    await asyncio.wait((asyncio.ensure_future(stop.wait()), gone), return_when=asyncio.FIRST_COMPLETED)
    await server.stop()

asyncio.run(main())
"""


@contextmanager
def embedded(folder: Path) -> Iterator[Server]:
    """The embedded server as a process of its own, with nothing beside it, and the project's CRDs."""
    from tests.fidelity.wire import Client

    program = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=REPOSITORY,
    )  # fmt: skip
    assert program.stdin
    assert program.stdout
    try:
        assert program.stdout.readline() == b"ready\n", "the embedded server ended before it was ready"
        server = from_kubeconfig(folder / "kubeconfig")
        client = Client(server)
        for file in sorted(CRDS.glob("*.yaml")):
            body = json.dumps(yaml.load(file.read_text(encoding="utf-8"), _LOADER)).encode()
            path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
            answer = client.send("POST", path, {"Content-Type": "application/json"}, body)
            assert answer.code == 201, answer.body
        client.close()
        yield server
    finally:
        program.stdin.close()
        program.stdout.close()
        try:
            program.wait(10)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()
