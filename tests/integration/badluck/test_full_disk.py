"""No space left: writes are refused and say why, reads go on, memory is never ahead of the disk, and space heals it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.badluck.conftest import Unlucky
from tests.integration.up.conftest import left_over
from tests.support.small_disk import fill
from tests.support.small_disk import small_disk as disk
from tests.support.up import vcbatch
from vcbatch.api.resources import CONFIGMAPS, JOBS, PODS, Resource
from vcbatch.interfaces.api import ApiError, get_or_none
from vcbatch.runtime.client.http import HttpApi

Json = dict[str, Any]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with disk(tmp_path / "disk", megabytes=24) as folder:
        yield folder


@pytest.fixture
def program(small_disk: Path) -> Iterator[Unlucky]:
    program = Unlucky(small_disk)
    yield program
    program.down()
    assert left_over(program.state) == []


def big(name: str) -> Json:
    return {"metadata": {"name": name}, "data": {"k": "v" * 200_000}}


async def names(api: HttpApi) -> set[str]:
    return {item["metadata"]["name"] for item in (await api.list(CONFIGMAPS, namespace="default")).items}


async def test_a_full_disk_refuses_writes_until_there_is_room_again(program: Unlucky, small_disk: Path):
    await asyncio.to_thread(program.up)
    async with program.api() as api:
        await api.create(CONFIGMAPS, big("before"), namespace="default")
        version = (await api.list(CONFIGMAPS, namespace="default")).resource_version
        filler = await asyncio.to_thread(fill, small_disk)

        taken: set[str] = set()
        for number in range(200):  # the log may have pages to write over
            try:
                await api.create(CONFIGMAPS, big(f"c{number}"), namespace="default")
                taken.add(f"c{number}")
            except ApiError as error:
                refused = error
                break
        else:
            pytest.fail("the disk is never full")
        assert (refused.code, refused.reason) == (507, "InsufficientStorage")
        assert "no space left" in refused.message and "changed nothing" in refused.message
        with pytest.raises(ApiError) as again:
            await api.patch(CONFIGMAPS, "before", {"data": {"k": "w" * 300_000}}, namespace="default")
        assert again.value.code == 507

        stored = await names(api)
        assert taken <= stored and f"c{len(taken)}" not in stored
        assert (await api.get(CONFIGMAPS, "before", namespace="default"))["data"] == big("before")["data"]

        filler.unlink()
        made = await api.create(CONFIGMAPS, big("after"), namespace="default")
        assert int(made["metadata"]["resourceVersion"]) > int(version)
        seen: list[str] = []
        async for event in api.watch(CONFIGMAPS, resource_version=version, namespace="default"):
            seen.append(event.object["metadata"]["name"])
            if seen[-1] == "after":
                break
        assert set(seen) == taken | {"after"}, "nobody hears of what was refused"
        stored = await names(api)
    await asyncio.to_thread(program.end, signal.SIGKILL)
    await asyncio.to_thread(program.again)
    async with program.api() as api:
        assert await names(api) == stored


async def refuses_to_create(api: HttpApi) -> None:
    """Write over what the log has room for, until nothing more is taken."""
    for number in range(200):
        try:
            await api.create(CONFIGMAPS, big(f"more-{number}"), namespace="default")
        except ApiError as error:
            assert (error.code, error.reason) == (507, "InsufficientStorage")
            return
    pytest.fail("the disk is never full")


async def gone(api: HttpApi, resource: Resource, name: str) -> None:
    async with asyncio.timeout(60):
        while await get_or_none(api, resource, name, namespace="default") is not None:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def running(api: HttpApi, name: str) -> None:
    async with asyncio.timeout(60):
        while (await api.get(JOBS, name, namespace="default")).get("status", {}).get("running") != 2:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


def gang(name: str, *command: str) -> Json:
    container = {"name": "main", "image": "any", "command": list(command) or ["sleep", "1000"]}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {"minAvailable": 2, "tasks": [{"name": "w", "replicas": 2, "template": template}]}
    return {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": {"name": name}, "spec": spec}


def all_ended(state: Path) -> bool:
    """Whether every container has its end on record."""
    return not any(path.read_bytes().isspace() for path in state.glob("kubelet/pods/*/containers/*/*/exit.json"))


async def test_a_job_that_ends_well_on_a_full_disk_is_completed(program: Unlucky, small_disk: Path, tmp_path: Path):
    await asyncio.to_thread(program.up)
    script = f"echo up; until [ -e {tmp_path}/go ]; do sleep 0.05; done; echo done; exit 0"
    async with program.api() as api:
        await api.create(JOBS, gang("ends", "sh", "-c", script), namespace="default")
        await running(api, "ends")
        filler = await asyncio.to_thread(fill, small_disk)
        await refuses_to_create(api)
        await asyncio.to_thread((tmp_path / "go").touch)
        async with asyncio.timeout(60):
            while not all_ended(program.state):  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.05)
        await asyncio.to_thread(program.end, signal.SIGKILL)
        await asyncio.to_thread(filler.unlink)
        await asyncio.to_thread(program.again)
    async with program.api() as api, asyncio.timeout(60):
        while (status := (await api.get(JOBS, "ends", namespace="default"))["status"])["state"]["phase"] != "Completed":
            assert status["state"]["phase"] in ("Running", "Completing"), status
            await asyncio.sleep(0.05)
        assert status.get("retryCount", 0) == 0


async def test_objects_can_be_deleted_on_a_full_disk(program: Unlucky, small_disk: Path):
    await asyncio.to_thread(program.up)
    async with program.api() as api:
        await api.create(CONFIGMAPS, big("before"), namespace="default")
        await api.create(JOBS, gang("gang"), namespace="default")
        await running(api, "gang")
        filler = await asyncio.to_thread(fill, small_disk)
        await refuses_to_create(api)
        await api.delete(CONFIGMAPS, "before", namespace="default")
        assert "before" not in await names(api)
        await api.delete(JOBS, "gang", namespace="default")
        await gone(api, JOBS, "gang")
        for member in ("gang-w-0", "gang-w-1"):
            await gone(api, PODS, member)

    await asyncio.to_thread(program.end, signal.SIGKILL)
    await asyncio.to_thread(program.again)
    async with program.api() as api:
        assert "before" not in await names(api)
        for name in await names(api) - {"kube-root-ca.crt"}:
            await api.delete(CONFIGMAPS, name, namespace="default")
        await asyncio.to_thread(filler.unlink)
        await api.create(CONFIGMAPS, big("after"), namespace="default")


@pytest.mark.parametrize("room", [0, 300 * 1024])
def test_a_start_without_space_says_so(program: Unlucky, small_disk: Path, room: int):
    filler = fill(small_disk)
    os.truncate(filler, filler.stat().st_size - room)
    for arguments in (["--detach"], []):
        refused = vcbatch("up", "--port", "0", "--state-dir", str(program.state), *arguments, check=False)
        assert refused.returncode == 1
        assert str(program.state) in refused.stderr and "Traceback" not in refused.stderr
        assert "No space left" in refused.stderr or "disk is full" in refused.stderr
        assert "on port" not in refused.stderr, "the port isn't to blame"
