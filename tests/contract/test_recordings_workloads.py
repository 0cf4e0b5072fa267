"""The recordings of plain pods, workloads and queues of a real Volcano, played on the whole control plane under virtual
time.

The embedded controllers make of Deployments and StatefulSets what kube-controller-manager made of them. Compared are
PodGroups, pods, queues, refusals and events, field for field, without UIDs, times, nodes, hashes and what is random in
names.
Where ours differs on purpose is in `docs/differences-podgroups.md`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest

from tests.conformance import DATA
from tests.scenarios.conditions import BY_KIND, BY_NAME
from tests.scenarios.history import Observer
from tests.scenarios.simulated import SimulatedWorld, simulated
from tests.support import virtual_time
from vcbatch.api import names
from vcbatch.api.resources import COMMANDS, EVENTS, PODGROUPS, PODS, QUEUES, Resource
from vcbatch.interfaces import ApiError

Json = dict[str, Any]

RECORDINGS = ("bare-pod", "closed-queue", "deployment", "deployment-min", "statefulset")
_COMPARED = {"pods": PODS, "podgroups.scheduling.volcano.sh": PODGROUPS, "queues.scheduling.volcano.sh": QUEUES}
_REPORTED_OF = ("Pod", "PodGroup", "Deployment", "ReplicaSet", "StatefulSet")
_SERVER_SET = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "deletionTimestamp")
_OF_A_MOMENT = ("transitionID", "lastTransitionTime")
_SLICE = 0.1
_BETWEEN_CHECKS = 1.5


@pytest.mark.skipif(DATA is None, reason="no conformance data beside the repository")
@pytest.mark.parametrize("name", RECORDINGS)
def test_leaves_behind_what_volcano_does(name: str) -> None:
    assert DATA is not None
    recording = _without_chance(json.loads((DATA / "recordings" / f"{name}.json").read_text()))
    ours = virtual_time.run(_Player(name, recording).play())
    assert len(ours) == len(recording["results"])
    for mine, theirs in zip(ours, recording["results"], strict=True):
        _compare(mine, theirs)


def _compare(mine: Json, theirs: Json) -> None:
    if "until" in theirs:
        # Volcano's was recorded from when somebody looked, ours from the beginning.
        assert mine["saw"][-len(theirs["saw"]) :] == theirs["saw"]
    elif "refused" in theirs:
        assert mine["refused"].rstrip(".; ") in theirs["refused"]
    else:
        for plural, ours in mine["objects"].items():
            wanted = [_comparable(each) for each in theirs["objects"].get(plural, []) if not _ending(each)]
            if plural.startswith(QUEUES.plural):
                wanted = [
                    _counted(queue, theirs["objects"].get("podgroups.scheduling.volcano.sh", [])) for queue in wanted
                ]
            assert ours == sorted(wanted, key=_name), plural
        reported = {_reported(line) for line in theirs["objects"]["events"] if line.partition("/")[0] in _REPORTED_OF}
        assert mine["events"] == {line for line in reported if not _of_one_that_waits_for_nothing(line)}


def _ending(body: Json) -> bool:
    """A pod in its grace period: theirs took 30 seconds, the pretended kubelet's end at once."""
    return "deletionGracePeriodSeconds" in body["metadata"]


def _counted(queue: Json, pod_groups: list[Json]) -> Json:
    """With the counts that ours has and Volcano's has no more: the PodGroups that were recorded beside it."""
    phases = Counter(each["status"]["phase"].lower() for each in pod_groups if each["spec"]["queue"] == _name(queue))
    return {**queue, "status": {**queue["status"], **phases}}


def _of_one_that_waits_for_nothing(line: str) -> bool:
    """Unschedulable, told of a gang whose pods are all placed already, or aren't made yet."""
    return " Unschedulable: 0/" in line


class _Player:
    def __init__(self, name: str, recording: Json) -> None:
        self._namespace = f"r-{name}"
        self._steps: list[Json] = recording["steps"]
        self._uids: dict[str, str] = {}

    async def play(self) -> list[Json]:
        results: list[Json] = []
        async with simulated(namespace=self._namespace) as world, Observer(world.api) as observer:
            world.history = observer.history(self._namespace)
            for step in self._steps:
                results += await self._step(world, step)
        return results

    async def _step(self, world: SimulatedWorld, step: Json) -> list[Json]:
        match step:
            case {"apply": objects}:
                return [refusal for body in objects for refusal in await self._apply(world, body)]
            case {"delete": what}:
                kind, _, name = what.partition("/")
                await world.api.delete(BY_NAME[kind], name, namespace=self._namespace)
                return []
            case {"sleep": seconds}:
                await world.pass_time(seconds)
                return []
            case {"until": {"get": what, "is": values, "path": path}, "timeout": seconds}:
                return [await self._until(world, what, path, values, seconds)]
            case {"snapshot": _}:
                return [await self._snapshot(world, [PODS, PODGROUPS, *([QUEUES] if "also" in step else [])])]
            case _:
                raise AssertionError(f"a step that isn't played: {step}")

    async def _apply(self, world: SimulatedWorld, body: Json) -> list[Json]:
        """What was answered, where it was refused."""
        resource = BY_KIND[body["apiVersion"], body["kind"]]
        namespace = self._namespace if resource.namespaced else None
        if resource is COMMANDS:
            target = await world.api.get(QUEUES, body["target"]["name"])
            body["target"]["uid"] = target["metadata"]["uid"]
        try:
            await world.api.create(resource, body, namespace=namespace)
        except ApiError as error:
            return [{"refused": error.message}]
        return []

    async def _until(self, world: SimulatedWorld, what: str, path: str, values: list[str], seconds: float) -> Json:
        for _ in range(int(seconds / _SLICE)):
            saw = world.history.values(what, path)
            if saw and saw[-1] in values:
                await world.pass_time(_BETWEEN_CHECKS)  # it was asked for so often there, and went on meanwhile
                return {"saw": saw}
            await world.pass_time(_SLICE)
        raise AssertionError(f"{what} never reached {values}")

    async def _snapshot(self, world: SimulatedWorld, resources: list[Resource]) -> Json:
        objects: dict[str, list[Json]] = {}
        for plural, resource in _COMPARED.items():
            if resource in resources:
                namespace = self._namespace if resource.namespaced else None
                found = (await world.api.list(resource, namespace=namespace)).items
                self._uids |= {each["metadata"]["uid"]: "UID" for each in found}
                for owner in (o for each in found for o in each["metadata"].get("ownerReferences", ())):
                    self._uids[owner["uid"]] = "UID"
                objects[plural] = list(found)
        reported = (await world.api.list(EVENTS, namespace=self._namespace)).items
        lines = {
            _reported(
                f"{event['involvedObject']['kind']}/{self._without_uids(event['involvedObject']['name'])} "
                f"{event['type']} {event['reason']}: {event['message']}"
            )
            for event in reported
            if event["involvedObject"]["kind"] in _REPORTED_OF
        }
        snapshot = _without_chance({"objects": objects, "events": sorted(lines)})
        return {
            "objects": {
                plural: sorted(
                    (_comparable(json.loads(self._without_uids(json.dumps(each)))) for each in found), key=_name
                )
                for plural, found in snapshot["objects"].items()
            },
            "events": set(snapshot["events"]),
        }

    def _without_uids(self, text: str) -> str:
        for uid, shown in self._uids.items():
            text = text.replace(uid, shown)
        return text


def _without_chance(value: Json) -> Json:
    """Without the hashes of templates, which everybody makes in a way of their own, and the random ends of names."""
    text = re.sub(
        r"\bx-[0-9a-z]{8,10}(-[0-9a-z]{5})?\b",
        lambda found: "x-HASH-RANDOM" if found[1] else "x-HASH",
        json.dumps(value),
    )
    return json.loads(re.sub(r'("pod-template-hash": ")\w+', r"\1HASH", text))


def _name(body: Json) -> str:
    return str(body["metadata"]["name"])


def _reported(line: str) -> str:
    """Without the node."""
    return re.sub(r"(Successfully assigned \S+ to) .*", r"\1 NODE", line)


def _comparable(body: Json) -> Json:
    """Without what the server and nodes say, and what is different from one moment to the next."""
    metadata = {key: value for key, value in body["metadata"].items() if key not in _SERVER_SET}
    for owner in metadata.get("ownerReferences", ()):
        owner.pop("uid", None)
    status: Json = body.get("status", {})
    spec: Json = body["spec"]
    match body["kind"]:
        case "Pod":
            status = {key: status[key] for key in ("phase", "qosClass")}
            spec = _of_pod(spec)
        case "PodGroup":
            conditions = [
                {key: value for key, value in each.items() if key not in _OF_A_MOMENT} for each in status["conditions"]
            ]
            status = {**status, "conditions": conditions}
            metadata = _without(_without(metadata, names.SCHEDULERS), names.USER)
        case _:
            spec, status = _filled(spec), _filled(status)
            metadata = _without(metadata, names.CLOSED_BY_PARENT)
    return {**body, "metadata": metadata, "spec": spec, "status": status}


def _without(metadata: Json, annotation: str) -> Json:
    """Without one that ours alone have, and without annotations where it was the only one."""
    kept = {key: value for key, value in metadata.get("annotations", {}).items() if key != annotation}
    rest = {key: value for key, value in metadata.items() if key != "annotations"}
    return {**rest, "annotations": kept} if kept else rest


def _filled(value: Json) -> Json:
    """Of a queue, without what is empty: no guarantee, and nothing allocated or counted."""
    kept = {key: _filled(each) if isinstance(each, dict) else each for key, each in value.items()}
    return {key: each for key, each in kept.items() if each not in ({}, "0") and (each or each is False)}


def _of_pod(spec: Json) -> Json:
    """Without its node, and the random name of the service account's volume."""
    named = json.loads(re.sub(r'"kube-api-access-\w{5}"', '"kube-api-access"', json.dumps(spec)))
    return {key: value for key, value in named.items() if key != "nodeName"}
