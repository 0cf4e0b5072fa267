"""A scheduler says on its Lease which policy it follows, and commands go by it without being told."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

from tests.integration.runtime.test_components import component, until
from tests.integration.runtime.test_snapshot import named, vcbatch
from tests.integration.up.manifests import job
from vcbatch.api.names import POLICY, SCHEDULER_SETUP
from vcbatch.api.resources import CONFIGMAPS, JOBS, LEASES, NAMESPACES, PODGROUPS, PODS, QUEUES
from vcbatch.local.apiserver.server import EmbeddedServer
from vcbatch.runtime.client.wire import decode_json

GOOD = "actions: enqueue, allocate\ntiers:\n- plugins:\n  - name: gang\n  - name: proportion\n"
ELASTIC = "metrics: {type: elasticsearch, address: 'http://127.0.0.1:1', elasticsearch: {password: hunter2}}\n"
UNKNOWN = "scheduler configuration unknown: Lease volcano-system/vcbatch-scheduler not found; "


async def test_a_scheduler_tells_its_policy_and_explain_goes_by_it(server: EmbeddedServer, tmp_path: Path) -> None:
    nowhere = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}

    async def order() -> dict[str, Any]:
        arguments = ("job", "explain", "large", "-o", "json", "--kubeconfig", server.kubeconfig)
        code, out, err = await vcbatch(*arguments, env=nowhere)
        assert code == 0, err
        return json.loads(out).get("order", {})

    async def annotations() -> dict[str, str]:
        leases = {lease["metadata"]["name"]: lease for lease in (await server.api.list(LEASES)).items}
        return leases.get("vcbatch-scheduler", {}).get("metadata", {}).get("annotations") or {}

    await server.api.create(NAMESPACES, {"metadata": {"name": "volcano-system"}})
    conf: dict[str, Any] = {"metadata": {"name": "conf"}, "data": {"volcano-scheduler.conf": GOOD + ELASTIC}}
    await server.api.create(CONFIGMAPS, conf, namespace="volcano-system")
    queue: dict[str, Any] = {"metadata": {"name": "default"}, "spec": {"weight": 1}, "status": {"state": "Open"}}
    await server.api.create(QUEUES, named(QUEUES, queue))
    made = await server.api.create(JOBS, decode_json(job("large", "true").encode()), namespace="default")
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "controller": True}
    owner |= {name: made["metadata"][name] for name in ("name", "uid")}
    group = {"metadata": {"name": "large", "ownerReferences": [owner]}, "spec": {"minMember": 1, "queue": "default"}}
    await server.api.create(PODGROUPS, named(PODGROUPS, group), namespace="default")
    member = {"scheduling.k8s.io/group-name": "large"}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    pod = {
        "metadata": {"name": "large-0", "annotations": member},
        "spec": {"schedulerName": "volcano", "containers": [container]},
    }
    await server.api.create(PODS, pod, namespace="default")
    assert (await order())["policyUnknown"].startswith(UNKNOWN)

    options = ("--scheduler-configmap", "volcano-system/conf", "--scheduler-name", "volcano")
    with component("scheduler", server, tmp_path / "log", *options) as scheduler:
        reported = await until(order, lambda found: found.get("by") == "policy")
        assert (reported["policy"], reported["lease"], reported.get("doubt")) == (
            "ConfigMap volcano-system/conf",
            "volcano-system/vcbatch-scheduler",
            None,
        )
        assert [queue["numbers"][0]["plugin"] for queue in reported["queues"]] == ["proportion"]
        assert "hunter2" not in json.dumps(await annotations())

        changed = {"data": {"volcano-scheduler.conf": GOOD.replace("proportion", "fair-share")}}
        await server.api.patch(CONFIGMAPS, "conf", changed, namespace="volcano-system")
        await until(annotations, lambda found: "fair-share" in found[POLICY])
        assert (await order())["remembering"] == ["fair-share"]
        scheduler.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(scheduler.wait, 60) == 0

    kept = await order()
    assert (kept["remembering"], kept["doubt"]) == (["fair-share"], "that Lease has no holder")
    before = json.loads((await annotations())[SCHEDULER_SETUP])
    with component("scheduler", server, tmp_path / "log"):
        said = await until(annotations, lambda found: json.loads(found[SCHEDULER_SETUP]) != before)
        assert "fair-share" not in said[POLICY]
        assert (await order())["policy"] == "built-in default"
