"""The server on its port: TLS, credentials, a clean end, and what a sudden one costs."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import ssl
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from vcbatch.api.resources import CONFIGMAPS
from vcbatch.interfaces.api import ApiError
from vcbatch.local.apiserver.persistence import StateError
from vcbatch.local.apiserver.server import EmbeddedServer, PortInUse
from vcbatch.runtime.client.http import HttpApi
from vcbatch.runtime.client.kubeconfig import load
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.random import SystemRandom

MAPS = "/api/v1/namespaces/default/configmaps"

PROGRAM = """
import asyncio, sys
from pathlib import Path
from vcbatch.local.apiserver.server import EmbeddedServer
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.random import SystemRandom

async def main():
    server = EmbeddedServer(
        state_dir=Path(sys.argv[1]), port=int(sys.argv[2]), clock=SystemClock(), random=SystemRandom()
    )
    await server.start()
    print(server.port, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def embedded(folder: Path, port: int = 0) -> EmbeddedServer:
    return EmbeddedServer(state_dir=folder, port=port, clock=SystemClock(), random=SystemRandom())


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[EmbeddedServer]:
    server = embedded(folder)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def api_of(folder: Path) -> HttpApi:
    return HttpApi(load(folder / "kubeconfig"), clock=SystemClock(), random=SystemRandom())


def trusting(folder: Path, *, certificate: bool = False) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(folder / "pki" / "ca.crt"))
    if certificate:
        context.load_cert_chain(folder / "pki" / "client.crt", folder / "pki" / "client.key")
    return context


async def status_of(server: EmbeddedServer, path: str, context: ssl.SSLContext) -> int:
    async with aiohttp.ClientSession() as session, session.get(server.url + path, ssl=context) as answer:
        return answer.status


async def test_certificates_and_tokens_open_the_door(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        assert await status_of(server, MAPS, trusting(tmp_path)) == 403
        assert await status_of(server, "/readyz", trusting(tmp_path)) == 200
        assert await status_of(server, MAPS, trusting(tmp_path, certificate=True)) == 200
        async with api_of(tmp_path) as api:
            assert (await api.list(CONFIGMAPS, namespace="default")).items
        with pytest.raises(aiohttp.ClientConnectorError):
            await status_of(server, "/readyz", ssl.create_default_context())


@pytest.mark.parametrize("what", ["exec?command=true&stdout=1", "portforward?ports=80", "attach?stdout=1"])
async def test_no_upgrade_opens_a_pod_to_strangers(tmp_path: Path, what: str) -> None:
    async with running(tmp_path) as server, aiohttp.ClientSession() as session:
        known = {"Authorization": f"Bearer {(tmp_path / 'pki' / 'token').read_text()}"}
        url, context = f"{server.url}/api/v1/namespaces/default/pods/p/{what}", trusting(tmp_path)
        for headers, code in (
            ({}, 403),
            ({"Authorization": "Bearer wrong"}, 401),
            ({**known, "Origin": "https://evil.example.com"}, 403),
            ({**known, "Host": "evil.example.com"}, 403),
            ({**known, "Impersonate-User": "nobody"}, 403),
        ):
            upgrade = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1", **headers}
            async with session.post(url, headers=upgrade, ssl=context) as answer:
                assert answer.status == code, headers.keys()
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await session.ws_connect(url, headers=headers, ssl=context, protocols=("v5.channel.k8s.io",))
            assert refused.value.status == code, headers.keys()


async def test_secrets_are_for_their_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    async with running(folder):
        files = [path for path in folder.rglob("*") if path.is_file() and path.name != "lock"]
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in files}
        assert modes["kubeconfig"] == modes["token"] == modes["ca.key"] == modes["server.key"] == 0o600
        assert modes["service-account.key"] == 0o600
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert yaml.safe_load((folder / "kubeconfig").read_text())["clusters"][0]["cluster"]["server"].startswith(
            "https://127.0.0.1:"
        )


async def test_credentials_outlive_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path):
        before = (tmp_path / "pki" / "token").read_text(), (tmp_path / "pki" / "ca.crt").read_text()
    async with running(tmp_path) as server:
        assert before == ((tmp_path / "pki" / "token").read_text(), (tmp_path / "pki" / "ca.crt").read_text())
        assert await status_of(server, MAPS, trusting(tmp_path, certificate=True)) == 200


async def _post(server: EmbeddedServer, folder: Path, path: str, body: dict[str, Any], token: str) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(server.url + path, json=body, ssl=trusting(folder)) as answer,
    ):
        return answer.status, await answer.json()


async def test_a_token_of_a_service_account_is_taken_also_after_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        path, admin = "/api/v1/namespaces/default/serviceaccounts/default/token", (tmp_path / "pki/token").read_text()
        code, answer = await _post(server, tmp_path, path, {"spec": {"expirationSeconds": 600}}, admin)
        assert code == 201
        token = answer["status"]["token"]
    async with running(tmp_path) as server:
        code, answer = await _post(server, tmp_path, "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, token)
        assert (code, answer["status"]["userInfo"]["username"]) == (201, "system:serviceaccount:default:default")
        assert (await _post(server, tmp_path, MAPS, {"metadata": {"name": "x"}}, token))[0] == 403
        assert (await _post(server, tmp_path, MAPS, {}, token[:-4]))[0] == 401


async def test_a_port_in_use_is_said(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(PortInUse, match=f"port {port} on 127.0.0.1 is in use"):
            await embedded(tmp_path, port).start()


async def test_a_directory_in_use_is_said_and_its_server_goes_on(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        with pytest.raises(StateError, match="in use by another server"):
            await embedded(tmp_path).start()
        async with api_of(tmp_path) as api:
            await api.list(CONFIGMAPS, namespace="default")
        assert await status_of(server, "/readyz", trusting(tmp_path)) == 200


async def test_a_stop_ends_watches_and_frees_the_port(tmp_path: Path) -> None:
    server = embedded(tmp_path)
    await server.start()
    async with api_of(tmp_path) as api:
        version = (await api.list(CONFIGMAPS, namespace="default")).resource_version
        names: list[str] = []
        seen = asyncio.Event()
        ended = asyncio.create_task(_watch_to_the_end(api, version, names, seen))
        await api.create(CONFIGMAPS, {"metadata": {"name": "seen"}}, namespace="default")
        async with asyncio.timeout(60):
            await seen.wait()
            port = server.port
            await server.stop()
            await ended
        assert names == ["seen"]
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", port))


async def _watch_to_the_end(api: HttpApi, version: str, names: list[str], seen: asyncio.Event) -> None:
    with suppress(ApiError):
        async for event in api.watch(CONFIGMAPS, resource_version=version, namespace="default"):
            names.append(event.object["metadata"]["name"])
            seen.set()


class Killable:
    """The server as a process of its own, so that it can be killed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = 0
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            PROGRAM,
            str(self.folder),
            str(self.port),
            stdout=asyncio.subprocess.PIPE,
            env=dict(os.environ),
        )
        assert self._process.stdout
        self.port = int(await asyncio.wait_for(self._process.stdout.readline(), 60))

    async def kill(self) -> None:
        if self._process and self._process.returncode is None:
            self._process.send_signal(signal.SIGKILL)
            await self._process.wait()


async def test_a_kill_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    killable = Killable(tmp_path)
    await killable.start()
    acknowledged: dict[str, str] = {}
    deleted: set[str] = set()
    enough = asyncio.Event()
    watched: list[dict[str, Any]] = []

    async def write(api: HttpApi, writer: int) -> None:
        for number in range(10_000):
            name = f"w{writer}-{number}"
            made = await api.create(CONFIGMAPS, {"metadata": {"name": name}, "data": {"n": "1"}}, namespace="default")
            acknowledged[name] = made["metadata"]["resourceVersion"]
            if number % 3 == 0:
                changed = await api.patch(CONFIGMAPS, name, {"data": {"n": "2"}}, namespace="default")
                acknowledged[name] = changed["metadata"]["resourceVersion"]
            elif number % 3 == 1:
                # A deletion that is under way when the server dies may have happened or not.
                del acknowledged[name]
                await api.delete(CONFIGMAPS, name, namespace="default")
                deleted.add(name)
            if len(acknowledged) >= 200:
                enough.set()

    try:
        async with api_of(tmp_path) as api:
            version = (await api.list(CONFIGMAPS, namespace="default")).resource_version
            writers = [asyncio.create_task(_until_lost(write(api, number))) for number in range(8)]
            watcher = asyncio.create_task(_watch_events(api, version, watched))
            await asyncio.wait_for(enough.wait(), 60)
            await killable.kill()
            await asyncio.gather(*writers)
            watcher.cancel()
            await asyncio.gather(watcher, return_exceptions=True)

        await killable.start()
        async with api_of(tmp_path) as api:
            listing = await api.list(CONFIGMAPS, namespace="default")
            stored = {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in listing.items}
            lost = {name: at for name, at in acknowledged.items() if int(stored.get(name, 0)) < int(at)}
            assert not lost
            assert not deleted & stored.keys()
            seen = {event["metadata"]["resourceVersion"] for event in watched}
            assert all(int(at) <= int(listing.resource_version) for at in seen)
            last = watched[-1]["metadata"]["resourceVersion"]
            with pytest.raises(ApiError) as gone:
                async for _ in api.watch(CONFIGMAPS, resource_version=version, namespace="default"):
                    break
            assert gone.value.expired and int(last) > int(version)
            created = await api.create(CONFIGMAPS, {"metadata": {"name": "after"}}, namespace="default")
            assert int(created["metadata"]["resourceVersion"]) > max(map(int, acknowledged.values()))
    finally:
        await killable.kill()


async def _until_lost(writing: Any) -> None:
    with suppress(ApiError, OSError, json.JSONDecodeError, aiohttp.ClientError):
        await writing


async def _watch_events(api: HttpApi, version: str, into: list[dict[str, Any]]) -> None:
    async for event in api.watch(CONFIGMAPS, resource_version=version, namespace="default"):
        into += [event.object]
