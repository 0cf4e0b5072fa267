"""`vcbatch snapshot` of a server, and `vcbatch replay` of the file."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vcbatch.api.resources import CONFIGMAPS, JOBS, NODES, PODGROUPS, PODS, QUEUES, Resource
from vcbatch.local.apiserver.server import EmbeddedServer

POLICY = "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]"


async def vcbatch(*arguments: str | Path, env: Mapping[str, str] | None = None) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "vcbatch"),
        *map(str, arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=None if env is None else {**os.environ, **env},
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


def named(resource: Resource, body: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": resource.api_version, "kind": resource.kind, **body}


def pod(name: str) -> dict[str, Any]:
    container = {
        "name": "c",
        "image": "i",
        "env": [{"name": "PASSWORD", "value": "hunter2"}],
        "command": ["secret-command"],
        "resources": {"requests": {"cpu": "1"}},
    }
    notes = {"scheduling.k8s.io/group-name": "g"}
    return {
        "metadata": {"name": name, "namespace": "default", "annotations": notes},
        "spec": {"schedulerName": "volcano", "containers": [container]},
    }


async def test_a_cluster_is_saved_without_its_secrets_and_scheduled_from_the_file(
    server: EmbeddedServer, tmp_path: Path
):
    api = server.api
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    await api.create(NODES, {"metadata": {"name": "n1"}, "status": {"allocatable": amounts, "capacity": amounts}})
    await api.create(QUEUES, named(QUEUES, {"metadata": {"name": "default"}, "spec": {"weight": 1}}))
    group = {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 2, "queue": "default"}}
    await api.create(PODGROUPS, named(PODGROUPS, group), namespace="default")
    for index in range(2):
        await api.create(PODS, pod(f"g-{index}"), namespace="default")
    data = {"volcano-scheduler.conf": POLICY}
    await api.create(CONFIGMAPS, {"metadata": {"name": "conf"}, "data": data}, namespace="default")

    file = tmp_path / "snapshot.jsonl.gz"
    options = ("--kubeconfig", server.kubeconfig, "--scheduler-configmap", "default/conf")
    code, out, err = await vcbatch("snapshot", file, *options)
    assert code == 0, err
    assert out.startswith(f"{file}: ")
    assert "built-in policy" not in err
    text = gzip.decompress(file.read_bytes()).decode()
    assert "hunter2" not in text
    assert "secret-command" not in text

    code, out, err = await vcbatch("replay", file, "-o", "json")
    assert code == 0, err
    assert json.loads(out)["binds"] == {"default/g-0": "n1", "default/g-1": "n1"}

    code, out, err = await vcbatch("replay", file, "--without", "node/n1")
    assert code == 0, err
    assert "default/g\n  bound: 2 → 0 pods\n  pending: no → " in out

    code, _, err = await vcbatch("snapshot", file, "--kubeconfig", server.kubeconfig)
    assert code == 0
    assert err == (
        "scheduler configuration: built-in default; scheduler configuration unknown: Lease "
        "volcano-system/vcbatch-scheduler not found; pass --policy or --scheduler-configmap\n"
    )
    code, _, err = await vcbatch("snapshot", file, "--kubeconfig", server.kubeconfig, "--scheduler-configmap", "a/b")
    assert code == 1
    assert err.startswith("error: --scheduler-configmap a/b: ConfigMap a/b: ")


async def test_it_is_said_where_the_pods_of_a_gang_would_go_that_is_not_admitted(
    server: EmbeddedServer, tmp_path: Path
):
    """What a planner asks: the job has no pods yet, since its queue and the cluster are too small for it."""
    api = server.api
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    there = {"status": {"allocatable": amounts, "capacity": amounts}}
    await api.create(NODES, {"metadata": {"name": "n1"}, **there})
    await api.create(QUEUES, named(QUEUES, {"metadata": {"name": "default"}, "spec": {"weight": 1}}))
    container = pod("any")["spec"]["containers"][0]
    template = {"spec": {"schedulerName": "volcano", "containers": [container]}}
    tasks = [{"name": "w", "replicas": 6, "template": template}]
    tasks.append({**tasks[0], "name": "later", "replicas": 1, "dependsOn": {"name": ["w"]}})
    for name, phase, count in (("wide", "Pending", 0), ("done", "Completed", 0), ("begun", "Pending", 1)):
        body = {"metadata": {"name": name, "namespace": "default"}, "spec": {"minAvailable": 6, "tasks": tasks}}
        made = await api.create(JOBS, named(JOBS, body), namespace="default")
        gang = f"{name}-{made['metadata']['uid']}"
        group = {
            "metadata": {"name": gang, "namespace": "default"},
            "spec": {"minMember": 6},
            "status": {"phase": phase},
        }
        await api.create(PODGROUPS, named(PODGROUPS, group), namespace="default")
        if count:
            one = pod(f"{name}-w-0")
            one["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = gang
            await api.create(PODS, one, namespace="default")

    file, more = tmp_path / "snapshot.jsonl.gz", tmp_path / "node.json"
    code, _, err = await vcbatch("snapshot", file, "--kubeconfig", server.kubeconfig)
    assert code == 0, err
    assert "hunter2" not in gzip.decompress(file.read_bytes()).decode()
    more.write_text(json.dumps(named(NODES, {"metadata": {"name": "n2"}, **there})))
    code, out, err = await vcbatch("replay", file, "--what-if", more, "-o", "json")
    assert code == 0, err
    assert set(json.loads(out)["binds"]) == {f"default/wide-w-{i}" for i in range(6)}


async def test_without_a_cluster_it_is_said_how_to_have_one(tmp_path: Path):
    nowhere = {"KUBECONFIG": "", "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
    code, _, err = await vcbatch("snapshot", tmp_path / "snapshot.jsonl.gz", env=nowhere)
    assert code == 1
    assert err.startswith("error: no cluster is configured: ")
    assert "Start a local server with `vcbatch up`" in err
    code, _, err = await vcbatch("snapshot", "-n", "team")
    assert (code, "no such option" in err) == (2, True)
