"""`vcbatch accounting` on a local server: records of jobs, whether or not these and their server still exist."""

from __future__ import annotations

import csv
import getpass
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cli.conftest import Shell
from tests.support.up import RunningVcbatch

SECONDS = "60s"


@pytest.fixture
def program(tmp_path: Path) -> Iterator[RunningVcbatch]:
    with RunningVcbatch(tmp_path, ["--kubelet-mode", "none", "--virtual-nodes", "1"]) as program:
        yield program


@pytest.fixture
def shell(program: RunningVcbatch, tmp_path: Path) -> Shell:
    return Shell(program, tmp_path)


def job(name: str, command: str, *, gpus: int = 0, namespace: str = "default", **spec: Any) -> str:
    resources = {"requests": {"cpu": "2"}, "limits": {"nvidia.com/gpu": gpus}}
    container = {"name": "m", "image": "i", "command": ["sh", "-c", command], "resources": resources}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return json.dumps(
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": name, "namespace": namespace, "annotations": {"vcbatch.dev/user": "somebody-else"}},
            "spec": {"minAvailable": 2, "tasks": [{"name": "w", "replicas": 2, "template": template}], **spec},
        }
    )


def records(shell: Shell, *options: str) -> list[dict[str, Any]]:
    said = shell.run("accounting", "list", *options, "-o", "json")
    assert said.code == 0, said.err
    return json.loads(said.out)["items"]


def test_records_outlive_jobs_and_restarts_of_the_server(shell: Shell, program: RunningVcbatch) -> None:
    policies = [{"event": "PodFailed", "action": "RestartJob"}]
    shell.run("apply", "-y", "-f", shell.file("good.yaml", job("good", "sleep 3", gpus=2)))
    shell.run("apply", "-y", "-f", shell.file("bad.yaml", job("bad", "sleep 1; exit 3", policies=policies, maxRetry=2)))
    shell.run("apply", "-y", "-f", shell.file("long.yaml", job("long", "sleep inf", gpus=1)))
    for name in ("good", "bad"):
        assert shell.run("wait", name, "--for", "finished", "--timeout", SECONDS).code == 0
    assert shell.run("wait", "long", "--for", "running", "--timeout", SECONDS).code == 0
    for name in ("good", "bad"):
        shell.run("job", "delete", name)
        assert shell.run("wait", name, "--for", "deleted", "--timeout", SECONDS).code == 0

    program.down()
    program.up()
    found = {(each["job"], each["attempt"]): each for each in records(shell)}
    (good,) = (each for (name, _), each in found.items() if name == "good")
    assert (good["state"], good["exitCode"], good["pods"]) == ("Completed", 0, 2)
    assert good["user"] == getpass.getuser()
    assert 2 * 2 * 2 <= good["gpuSeconds"] <= 2 * 2 * 20
    assert good["cpuSeconds"] == good["gpuSeconds"]
    bad = [each for (name, _), each in sorted(found.items()) if name == "bad"]
    assert [each["state"] for each in bad] == ["Restarted", "Failed"]
    assert {each["exitCode"] for each in bad} == {3}
    (running,) = (each for (name, _), each in found.items() if name == "long")
    assert (running["state"], running["ended"]) == ("Running", None)

    shell.run("job", "delete", "long")
    assert shell.run("wait", "long", "--for", "deleted", "--timeout", SECONDS).code == 0
    ended = eventually(shell, "--job", "long")
    assert (ended["state"], ended["attempt"]) == ("Deleted", running["attempt"])
    assert ended["started"] == running["started"]


def eventually(shell: Shell, *options: str) -> dict[str, Any]:
    """The one record that these options select, once it is closed: deletions are recorded shortly after them."""
    import time

    deadline = time.monotonic() + 20
    while True:
        (found,) = records(shell, *options)
        if found["ended"] is not None:
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.2)


def test_sums_and_selections(shell: Shell) -> None:
    for name, gpus in (("one", 1), ("two", 2)):
        shell.run("apply", "-y", "-f", shell.file(f"{name}.yaml", job(name, "sleep 2", gpus=gpus)))
    for name in ("one", "two"):
        assert shell.run("wait", name, "--for", "finished", "--timeout", SECONDS).code == 0
    found = records(shell)
    assert {each["job"] for each in found} == {"one", "two"}
    assert records(shell, "--user", "nobody-at-all") == []
    assert records(shell, "--queue", "default", "--phase", "completed", "--since", "1d") == found
    assert records(shell, "--until", "2000-01-01") == []
    assert records(shell, "-n", "kube-system") == []
    assert records(shell, "-A") == found

    by_user = json.loads(shell.run("accounting", "report", "-o", "json").out)["items"]
    assert [each["user"] for each in by_user] == [getpass.getuser()]
    assert by_user[0]["gpuHours"] == pytest.approx(sum(each["gpuSeconds"] for each in found) / 3600, abs=1e-5)
    assert (by_user[0]["jobs"], by_user[0]["completed"], by_user[0]["failed"]) == (2, 2, 0)
    rows = list(csv.DictReader(io.StringIO(shell.run("accounting", "report", "--by", "job", "-o", "csv").out)))
    assert [row["job"] for row in rows] == ["default/two", "default/one"]
    listed = list(csv.DictReader(io.StringIO(shell.run("accounting", "list", "-o", "csv").out)))
    assert {(row["job"], row["gpus"]) for row in listed} == {("one", "nvidia.com/gpu=2"), ("two", "nvidia.com/gpu=4")}
    table = shell.run("accounting").out.splitlines()
    assert table[0].split() == ["JOB", "USER", "QUEUE", "STATE", "EXIT", "GPUS", "ELAPSED", "WAITED", "GPU-HOURS"]
    assert all(len(line) <= 80 for line in table)


def test_the_store_is_read_without_a_server(shell: Shell, program: RunningVcbatch) -> None:
    shell.run("apply", "-y", "-f", shell.file("one.yaml", job("one", "sleep 1")))
    assert shell.run("wait", "one", "--for", "finished", "--timeout", SECONDS).code == 0
    program.down()
    said = shell.run("accounting", "list", "--store", f"sqlite://{program.state}/accounting.db", "-o", "json")
    assert [each["job"] for each in json.loads(said.out)["items"]] == ["one"]
    said = shell.run("accounting", "list", "--store", "sqlite:///none/accounting.db")
    assert said.code == 1
    assert "doesn't exist" in said.err
