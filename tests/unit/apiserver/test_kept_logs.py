"""The requests for the logs of deleted pods: who may read them, what they answer."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from tests.unit.apiserver.core.servers import server, virtual
from tests.unit.kubelet.test_kept_logs import Disk
from vcbatch.local.apiserver.access import User

JOB = "/vcbatch/v1/namespaces/default/jobs/train/logs"
LINES = "2026-01-01T00:00:00.000000000Z stdout F first\n2026-01-01T00:00:01.000000000Z stdout F last\n"


@virtual
async def test_a_kept_log_is_listed_and_read_like_one_of_a_pod(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.kept.keep(disk.ran("u1", LINES))
    async with server() as client:
        client.kernel.handler.kept_logs = disk.kept
        listing = (await client.get(JOB)).body
        (run,) = listing["runs"]
        assert (run["attempt"], run["task"], run["index"], run["exitCode"]) == (1, "worker", 0, 3)
        assert listing["directory"] == str(tmp_path / "logs/default/train")
        log = f"{JOB}/j1/u1/main/0"
        answer = await client.get(f"{log}?tailLines=1&timestamps=true")
        text = b"".join([chunk async for chunk in answer.body])
        assert text == b"2026-01-01T00:00:01.000000000Z last\n"
        assert (await client.get(f"{JOB}/j1/u1/main/1")).code == 404
        assert (await client.get(f"{log}?tailLines=-1")).code == 422
        disk.kept.prune(datetime(2026, 1, 9, tzinfo=UTC))
        removed = await client.get(log)
        assert (removed.code, removed.message) == (410, "the log was removed: it was kept for 7 days after its end")


@virtual
async def test_only_those_who_may_read_logs_of_pods_may_read_them(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.kept.keep(disk.ran("u1", LINES))
    async with server() as client:
        client.kernel.handler.kept_logs = disk.kept
        for path in (JOB, f"{JOB}/j1/u1/main/0"):
            refused = await client.get(path, user=User(name="eve", groups=["system:authenticated"]))
            assert refused.code == 403
            assert 'cannot get resource "pods/log"' in refused.message


@virtual
async def test_what_is_no_kept_log(tmp_path: Path) -> None:
    async with server() as client:
        assert (await client.get(JOB)).body["enabled"] is False
        client.kernel.handler.kept_logs = Disk(tmp_path).kept
        assert (await client.get(JOB)).body["runs"] == []
        assert (await client.get(JOB.replace("train", ".."))).code == 400
        assert (await client.get(JOB.replace("train", "%2e%2e%2f%2e%2e"))).code == 400
        assert (await client.get(f"{JOB}/j1")).code == 404
        assert (await client.get("/vcbatch/v1/namespaces/default/pods/a/logs")).code == 404
        assert (await client.send("DELETE", JOB)).code == 405
