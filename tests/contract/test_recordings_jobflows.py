"""The JobFlow recordings of a real Volcano, played on the whole control plane under virtual time.

Compared are the flow, its templates, its jobs and the flow's events, field for field, without UIDs and times. What the
jobs' own controller leaves behind is held by `test_recordings_jobs`.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conformance import DATA
from tests.scenarios.conditions import BY_KIND
from tests.scenarios.history import Observer
from tests.scenarios.simulated import SimulatedWorld, simulated
from tests.support import virtual_time
from vcbatch.api import names
from vcbatch.api.resources import EVENTS, JOBFLOWS, JOBS, JOBTEMPLATES

Json = dict[str, Any]

RECORDINGS = ("jobflow", "jobflow-delete-policy")
_PLURALS = {f"{resource.plural}.{resource.group}": resource for resource in (JOBFLOWS, JOBS, JOBTEMPLATES)}
_SERVER_SET = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")
_TIMES = ("createTime", "startTimestamp", "runningDuration")


@pytest.mark.skipif(DATA is None, reason="no conformance data beside the repository")
@pytest.mark.parametrize("name", RECORDINGS)
def test_leaves_behind_what_volcano_does(name: str) -> None:
    assert DATA is not None
    recording = json.loads((DATA / "recordings" / f"{name}.json").read_text())
    ours, theirs = virtual_time.run(_play(name, recording["steps"])), recording["results"]
    assert len(ours) == len(theirs)
    for mine, volcanos in zip(ours, theirs, strict=True):
        if "saw" in volcanos:
            # Volcano's was recorded from when somebody looked, ours from the beginning.
            assert mine["saw"][-len(volcanos["saw"]) :] == volcanos["saw"]
            continue
        for plural in _PLURALS:
            wanted = [_comparable(each) for each in volcanos["objects"].get(plural, [])]
            if plural.startswith(JOBTEMPLATES.plural) and not mine["objects"][f"{JOBS.plural}.{JOBS.group}"]:
                wanted = [{**each, "status": {}} for each in wanted]  # jobs that are gone are listed no more
            assert [_comparable(each) for each in mine["objects"].get(plural, [])] == wanted, plural
        reported = [line for line in volcanos["objects"]["events"] if line.startswith("JobFlow/")]
        assert sorted(mine["objects"]["events"]) == sorted(reported)


async def _play(name: str, steps: list[Json]) -> list[Json]:
    namespace, results = f"r-{name}", list[Json]()
    async with simulated(namespace=namespace) as world, Observer(world.api) as observer:
        world.history = observer.history(namespace)
        if {"snapshot": "early"} in steps:
            await world.kill_kubelet()  # two seconds weren't enough there for a pod to start
        for step in steps:
            match step:
                case {"apply": objects}:
                    for body in objects:
                        await world.api.create(BY_KIND[body["apiVersion"], body["kind"]], body, namespace=namespace)
                case {"sleep": seconds}:
                    await world.pass_time(seconds)
                case {"until": {"is": values, "path": path}, "timeout": seconds}:
                    results.append(await _until(world, path, values, seconds))
                case {"snapshot": snapshot}:
                    results.append({"objects": await _snapshot(world)})
                    if snapshot == "early":
                        world.start_kubelet()
                case _:
                    raise AssertionError(f"a step that isn't played: {step}")
    return results


async def _until(world: SimulatedWorld, path: str, values: list[str], seconds: float) -> Json:
    for _ in range(int(seconds * 10)):
        saw = world.history.values("jobflows/f", path)
        if saw and saw[-1] in values:
            return {"saw": saw}
        await world.pass_time(0.1)
    raise AssertionError(f"never reached {values}")


async def _snapshot(world: SimulatedWorld) -> Json:
    lists = {
        plural: (await world.api.list(resource, namespace=world.namespace)).items
        for plural, resource in _PLURALS.items()
    }
    events = [
        f"{event['involvedObject']['kind']}/{event['involvedObject']['name']} "
        f"{event['type']} {event['reason']}: {event['message']}"
        for event in (await world.api.list(EVENTS, namespace=world.namespace)).items
        if event["involvedObject"]["kind"] == JOBFLOWS.kind
    ]
    return {**lists, "events": events}


def _comparable(body: Json) -> Json:
    metadata = {key: value for key, value in body["metadata"].items() if key not in _SERVER_SET}
    # Volcano doesn't record who created a job.
    metadata.get("annotations", {}).pop(names.USER, None)
    for owner in metadata.get("ownerReferences", ()):
        owner.pop("uid", None)
    status = body.get("status", {})
    if body["kind"] == JOBS.kind:
        status = {"phase": status["state"]["phase"], "conditions": [each["status"] for each in status["conditions"]]}
    elif body["kind"] == JOBFLOWS.kind:
        status = _of_flow(status)
    return {**body, "metadata": metadata, "spec": _without_empty(body["spec"]), "status": status}


def _of_flow(status: Json) -> Json:
    """Without the ledger, and with what docs/differences-jobflows.md says of each field."""
    comparable = {key: value for key, value in status.items() if key != "ledger"}
    if "completedJobs" in status:
        comparable["completedJobs"] = sorted(status["completedJobs"])  # theirs come in any order
    comparable["conditions"] = {name: _condition(entry) for name, entry in status["conditions"].items()}
    comparable["jobStatusList"] = [_entry(entry) for entry in status["jobStatusList"]]
    return comparable


def _condition(entry: Json) -> Json:
    kept = {key: value for key, value in entry.items() if key not in _TIMES}
    if entry["phase"] == "Completed":
        kept.pop("taskStatusCount", None)  # theirs is there or not, as the job's last write but one went
    return kept


def _entry(entry: Json) -> Json:
    histories = [{**each, "startTimestamp": "TIME"} for each in entry["runningHistories"]]
    histories = [{**each, **({"endTimestamp": "TIME"} if "endTimestamp" in each else {})} for each in histories]
    kept = {key: value for key, value in entry.items() if key not in _TIMES}
    kept.pop("endTimestamp", None)  # theirs comes with a later write of the job, which a deleted one doesn't have
    return {**kept, "runningHistories": histories}


def _without_empty(value: Any) -> Any:
    """An empty `metadata` of a template says nothing."""
    if isinstance(value, dict):
        return {key: _without_empty(entry) for key, entry in value.items() if entry != {}}
    return [_without_empty(entry) for entry in value] if isinstance(value, list) else value
