"""What local mode leaves behind of batch/v1 Jobs is what kube-controller-manager does: the Job, its pods, its events,
field for field. Names that are drawn at random, UIDs and times aside."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.cluster.conftest import MakeControlPlane
from tests.scenarios.simulated import simulated
from tests.support import virtual_time
from vcbatch.api.names import DEFAULT_SCHEDULER, GROUP_NAME
from vcbatch.api.resources import BATCH_JOBS, EVENTS, PODS
from vcbatch.interfaces import Api, Clock
from vcbatch.runtime.client.http import HttpApi
from vcbatch.runtime.client.kubeconfig import load
from vcbatch.runtime.clock import SystemClock
from vcbatch.runtime.random import SystemRandom

Json = dict[str, Any]

_NAMESPACE = "default"
_WELL, _BADLY, _LONG = "sleep 1", "sleep 1; exit 3", "sleep 600"
_INDEXED: Json = {"completionMode": "Indexed"}
JOBS: dict[str, tuple[str, Json]] = {
    "completes": (_WELL, {"parallelism": 2, "completions": 3}),
    "of-nothing": (_WELL, {"completions": 0}),
    "queue-like": (_WELL, {"parallelism": 2}),
    "indexed": (_WELL, {**_INDEXED, "parallelism": 2, "completions": 3}),
    "enough": (
        _WELL,
        {**_INDEXED, "parallelism": 1, "completions": 3, "successPolicy": {"rules": [{"succeededIndexes": "0"}]}},
    ),
    "fails": (_BADLY, {"backoffLimit": 0}),
    "tries-twice": (_BADLY, {"backoffLimit": 1}),
    "by-rule": (
        _BADLY,
        {"podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}}]}},
    ),
    "failed-indexes": (_BADLY, {**_INDEXED, "parallelism": 2, "completions": 2, "backoffLimitPerIndex": 0}),
    "index-by-rule": (
        _BADLY,
        {
            **_INDEXED,
            "completions": 1,
            "backoffLimitPerIndex": 4,
            "podFailurePolicy": {
                "rules": [{"action": "FailIndex", "onExitCodes": {"operator": "NotIn", "values": [1]}}]
            },
        },
    ),
    "index-twice": (_BADLY, {**_INDEXED, "completions": 1, "backoffLimitPerIndex": 1}),
    "too-many-failed": (
        _BADLY,
        {**_INDEXED, "parallelism": 1, "completions": 4, "backoffLimitPerIndex": 0, "maxFailedIndexes": 1},
    ),
    "late": (_LONG, {"parallelism": 2, "completions": 2, "activeDeadlineSeconds": 2}),
    "suspended": (_LONG, {"suspend": True}),
}
"""What the pods do, and the Job's spec."""
_SETTLED = ("Complete", "Failed", "Suspended")
_SECONDS = 120.0
_REST_SECONDS = 3.0
_OF_THE_SERVER = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def test_jobs_end_as_with_kube_controller_manager(make_control_plane: MakeControlPlane) -> None:
    control_plane = make_control_plane()
    control_plane.add_nodes(2)

    async def theirs(wanted: Json) -> dict[str, Json]:
        clock = SystemClock()
        async with HttpApi(load(control_plane.kubeconfig), clock=clock, random=SystemRandom()) as api:
            return await _left_behind(api, clock, scheduler="default-scheduler", wanted=wanted)

    async def ours() -> dict[str, Json]:
        async with simulated() as world:
            return await _left_behind(world.api, world.clock, scheduler=DEFAULT_SCHEDULER)

    local = virtual_time.run(ours())
    kubernetes = asyncio.run(theirs(local))
    for name in JOBS:
        assert local[name] == kubernetes[name], name


async def _left_behind(api: Api, clock: Clock, *, scheduler: str, wanted: Json | None = None) -> dict[str, Json]:
    """What there is of each Job and stays so for some seconds; where it isn't as `wanted`, after a last long wait."""
    for name, (run, spec) in JOBS.items():
        await api.create(BATCH_JOBS, _job(name, run, spec, scheduler), namespace=_NAMESPACE)
    end = clock.monotonic() + _SECONDS
    while waiting := [job["metadata"]["name"] for job in await _jobs(api) if not _is_settled(job)]:
        assert clock.monotonic() < end, f"these never came to their end: {waiting}"
        await clock.sleep(0.5)
    # Events come after the status that they tell of, on a busy machine long after it.
    await clock.sleep(_REST_SECONDS)
    end = clock.monotonic() + _SECONDS
    while (found := await _seen(api)) != (wanted or found) and clock.monotonic() < end:
        await clock.sleep(0.5)
    return found


async def _seen(api: Api) -> dict[str, Json]:
    pods = (await api.list(PODS, namespace=_NAMESPACE)).items
    events = (await api.list(EVENTS, namespace=_NAMESPACE)).items
    return {job["metadata"]["name"]: _comparable(job, pods, events) for job in await _jobs(api)}


async def _jobs(api: Api) -> list[Json]:
    return [job for job in (await api.list(BATCH_JOBS, namespace=_NAMESPACE)).items if job["metadata"]["name"] in JOBS]


def _is_settled(job: Json) -> bool:
    return any(
        each["type"] in _SETTLED and each["status"] == "True" for each in job.get("status", {}).get("conditions", ())
    )


def _job(name: str, run: str, spec: Json, scheduler: str) -> Json:
    containers = [{"name": "main", "image": "img", "command": ["sh", "-c", run]}]
    template = {"spec": {"restartPolicy": "Never", "schedulerName": scheduler, "containers": containers}}
    return {
        "apiVersion": BATCH_JOBS.api_version,
        "kind": BATCH_JOBS.kind,
        "metadata": {"name": name},
        "spec": {**spec, "template": template},
    }


def _comparable(job: Json, pods: Sequence[Json], events: Sequence[Json]) -> Json:
    uid, name = job["metadata"]["uid"], job["metadata"]["name"]
    own = [pod for pod in pods if any(owner["uid"] == uid for owner in pod["metadata"].get("ownerReferences", ()))]
    reported = Counter[str]()
    for event in events:
        if event["involvedObject"].get("uid") == uid:
            line = f"{event['type']} {event['reason']} {event['message']} by {event['source']['component']}"
            reported[_plain(line, uid, name)] += event.get("count", 1)
    job["spec"]["template"]["spec"].pop("schedulerName")
    left: Json = {
        "metadata": {key: value for key, value in job["metadata"].items() if key not in _OF_THE_SERVER},
        "spec": job["spec"],
        "status": job["status"],
    }
    checked_at = sorted(_plain(json.dumps(_of_pod(pod), sort_keys=True), uid, name) for pod in own)
    return {
        **json.loads(_plain(json.dumps(left, sort_keys=True), uid, name)),
        "pods": [json.loads(pod) for pod in checked_at],
        "events": dict(reported),
    }


def _plain(text: str, uid: str, name: str) -> str:
    """Without what is different each time."""
    text = _TIME.sub("TIME", text.replace(uid, "UID"))
    return re.sub(rf"\b{name}(-\d+)?-[a-z0-9]{{5}}\b", rf"{name}\1-RANDOM", text)


def _of_pod(pod: Json) -> Json:
    """What the Job's controller decides about it, and how it ended."""
    metadata, spec = pod["metadata"], pod["spec"]
    annotations = {key: value for key, value in metadata.get("annotations", {}).items() if key != GROUP_NAME}
    kept = ("name", "generateName", "labels", "finalizers", "ownerReferences", "deletionTimestamp")
    return {
        "metadata": {key: metadata[key] for key in kept if key in metadata} | {"annotations": annotations},
        "hostname": spec.get("hostname"),
        "env": [container.get("env") for container in spec["containers"]],
        "phase": pod["status"]["phase"],
    }
