"""Pods of a job with the ssh plugin log in to each other, with nobody serving ssh."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.kubelet.world import LONG, World, no_process, processes_with, world
from vcbatch.api.names import JOB_NAME, ssh_secret
from vcbatch.api.resources import PODS
from vcbatch.local.kubelet import Mode, SandboxUnavailableError
from vcbatch.local.kubelet.processes import probe
from vcbatch.local.kubelet.sandbox import choose
from vcbatch.local.kubelet.supervisor.ssh import Call, UsageError

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="containers are Linux processes")

WAITING = f"exec sleep {LONG}"


@pytest.fixture(params=list(Mode))
async def node(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    try:
        await choose(wanted=request.param, probe=probe)
    except SandboxUnavailableError as error:
        pytest.skip(str(error))
    async with world(tmp_path, mode=request.param) as made:
        await made.secret(ssh_secret("a"), id_rsa="a2V5")
        await made.secret(ssh_secret("b"), id_rsa="a2V5")
        yield made


def member(name: str, job: str = "a") -> dict[str, Any]:
    owner = {"apiVersion": "v1", "kind": "X", "name": job, "uid": f"uid-of-{job}", "controller": True}
    return {
        "metadata": {"labels": {JOB_NAME: job}, "ownerReferences": [owner]},
        "hostname": name,
        "subdomain": job,
        "volumes": [{"name": "keys", "secret": {"secretName": ssh_secret(job)}}],
    }


async def said(node: World, script: str, name: str = "a-master-0", job: str = "a") -> str:
    return await node.output(name, script, **member(name, job))


async def test_a_command_runs_in_the_other_pod_with_its_environment_streams_and_exit_code(node: World) -> None:
    served = {"name": "main", "command": ["sh", "-c", WAITING], "env": [{"name": "WHO", "value": "worker"}]}
    await node.pod("a-worker-0", served, **member("a-worker-0"))
    script = """
        ssh -x -o StrictHostKeyChecking=no -p 2222 root@a-worker-0 'echo "I am $WHO"; echo aside >&2; exit 7'
        echo $?
        echo "from here" | ssh a-worker-0.a cat
        echo "lost" | ssh -n a-worker-0.a.default.svc.cluster.local wc -c
        echo 'echo by script $WHO' | ssh a-worker-0.a.default
    """
    assert sorted((await said(node, script)).splitlines()) == sorted(
        ["I am worker", "aside", "7", "from here", "0", "by script worker"]
    )


async def test_a_pod_that_comes_later_is_waited_for(node: World) -> None:
    await node.pod("a-master-0", "echo asking; ssh a-worker-0 echo it is here", **member("a-master-0"))
    await node.log_has("a-master-0", "asking")
    await node.pod("a-worker-0", WAITING, **member("a-worker-0"))
    await node.over("a-master-0")
    assert "it is here" in await node.logs("a-master-0")


async def test_patience_can_be_bounded_and_an_ended_pod_isnt_waited_for(node: World) -> None:
    await node.output("a-worker-0", "true", **member("a-worker-0"))
    log = await said(node, "ssh -oConnectTimeout=0 a-worker-9 true; echo $?; ssh a-worker-0 true; echo $?")
    assert "a-worker-9 port 22: Connection timed out" in log
    assert "a-worker-0 port 22: Connection refused (the pod has ended)" in log
    assert log.splitlines().count("255") == 2


async def test_pods_of_other_jobs_are_strangers(node: World) -> None:
    await node.pod("b-worker-0", WAITING, **member("b-worker-0", "b"))
    script = "PATH=${PATH%%:*}:/nowhere; ssh b-worker-0.b true; echo $?"
    assert (await said(node, script)).splitlines()[-1] == "255"


async def test_the_command_ends_with_whoever_asked_for_it(node: World) -> None:
    await node.pod("a-worker-0", WAITING, **member("a-worker-0"))
    asked = f"ssh a-worker-0 'echo begun; sleep {LONG}1 & exec sleep {LONG}2'"
    await node.pod("a-master-0", asked, **member("a-master-0"))
    await node.log_has("a-master-0", "begun")
    assert processes_with(f"sleep {LONG}1")
    await node.api.delete(PODS, "a-master-0", namespace="default", grace_seconds=0)
    await no_process(f"sleep {LONG}1")
    await no_process(f"sleep {LONG}2")


async def test_a_server_of_an_image_only_waits(node: World) -> None:
    command = "/usr/sbin/sshd -D" if node.sandbox.mode is Mode.USERNS else "sshd -De"
    await node.pod("a-worker-0", f"sshd; echo up; exec {command}", **member("a-worker-0"))
    await node.log_has("a-worker-0", "up")
    assert "here" in await said(node, "ssh a-worker-0 echo here")


async def test_pods_of_jobs_without_the_plugin_have_the_machines_programs(node: World) -> None:
    plain = {key: value for key, value in member("a-plain-0").items() if key != "volumes"}
    assert "pods/" not in await node.output("a-plain-0", 'command -v ssh; echo "$PATH"', **plain)


@pytest.mark.parametrize(
    ("arguments", "host", "command"),
    [
        (["h", "a", "b c"], "h", "a b c"),
        (["-xq", "-l", "me", "h", "-p22", "ls", "-l"], "h", "ls -l"),
        (["-oConnectTimeout=3", "me@h"], "h", None),
    ],
)
def test_options_are_those_of_openssh(arguments: list[str], host: str, command: str | None) -> None:
    call = Call(arguments)
    assert (call.host, call.command) == (host, command)


@pytest.mark.parametrize("arguments", [[], ["-L", "1:h:2", "h"], ["-f", "h", "x"], ["-Z", "h"], ["-p"]])
def test_what_cant_be_had_is_refused(arguments: list[str]) -> None:
    with pytest.raises(UsageError):
        Call(arguments)
