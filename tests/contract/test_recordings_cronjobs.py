"""The CronJob recordings of a real Volcano, played on the whole control plane under virtual time.

Compared are the CronJob, its jobs and its events, field for field, without times, UIDs and the minute that each job is
called after. What the jobs' own controller leaves behind is held by `test_recordings_jobs`.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.conformance import DATA
from tests.scenarios.simulated import SimulatedWorld, simulated
from tests.support import virtual_time
from vcbatch.api import names
from vcbatch.api.resources import CRONJOBS, EVENTS, JOBS

Json = dict[str, Any]

RECORDINGS = ("cronjob", "cronjob-suspended")
INTO_THE_MINUTE = 50.0
"""When Volcano's was applied, as the two slots within its 72 seconds tell."""

_SERVER_SET = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")
_TIMES = ("lastScheduleTime", "lastSuccessfulTime", "lastTransitionTime")


@pytest.mark.skipif(DATA is None, reason="no conformance data beside the repository")
@pytest.mark.parametrize("name", RECORDINGS)
def test_leaves_behind_what_volcano_does(name: str) -> None:
    assert DATA is not None
    recording = json.loads((DATA / "recordings" / f"{name}.json").read_text())
    ours, theirs = virtual_time.run(_play(name, recording["steps"])), recording["results"][-1]["objects"]
    for plural in ("cronjobs.batch.volcano.sh", "jobs.batch.volcano.sh"):
        assert [_comparable(each) for each in ours[plural]] == [_comparable(each) for each in theirs.get(plural, [])]
    reported = [_numbered(line) for line in ours["events"]]
    assert sorted(reported) == sorted(_numbered(line) for line in theirs["events"] if line.startswith("CronJob/"))


async def _play(name: str, steps: list[Json]) -> Json:
    namespace = f"r-{name}"
    async with simulated(namespace=namespace) as world:
        await world.pass_time(INTO_THE_MINUTE)
        for step in steps:
            match step:
                case {"apply": objects}:
                    for body in objects:
                        await world.api.create(CRONJOBS, body, namespace=namespace)
                case {"until": {"is": ["never"]}, "timeout": seconds} | {"sleep": seconds}:
                    await world.pass_time(seconds)
                case {"snapshot": _}:
                    return await _snapshot(world)
                case _:
                    raise AssertionError(f"a step that isn't played: {step}")
    raise AssertionError("a recording without a snapshot")


async def _snapshot(world: SimulatedWorld) -> Json:
    events = (await world.api.list(EVENTS, namespace=world.namespace)).items
    return {
        "cronjobs.batch.volcano.sh": (await world.api.list(CRONJOBS, namespace=world.namespace)).items,
        "jobs.batch.volcano.sh": (await world.api.list(JOBS, namespace=world.namespace)).items,
        "events": [
            f"{event['involvedObject']['kind']}/{event['involvedObject']['name']} "
            f"{event['type']} {event['reason']}: {event['message']}"
            for event in events
            if event["involvedObject"]["kind"] == CRONJOBS.kind
        ],
    }


def _comparable(body: Json) -> Json:
    metadata = {key: value for key, value in body["metadata"].items() if key not in _SERVER_SET}
    for owner in metadata.get("ownerReferences", ()):
        owner.pop("uid", None)
    metadata["name"] = _numbered(metadata["name"])
    # Volcano doesn't record who created a job.
    metadata["annotations"] = sorted(set(metadata.get("annotations", ())) - {names.USER})
    status = {key: value for key, value in body.get("status", {}).items() if key not in _TIMES}
    if body["kind"] == JOBS.kind:
        status = {"phase": status["state"]["phase"], "conditions": [each["status"] for each in status["conditions"]]}
    return {**body, "metadata": metadata, "spec": _without_empty(body["spec"]), "status": status}


def _numbered(text: str) -> str:
    """Minutes since 1970 by their order in the recording: one after the other."""
    return re.sub(r"-(\d{8})", lambda found: "-even" if int(found[1]) % 2 == 0 else "-odd", text)


def _without_empty(value: Any) -> Any:
    """An empty `metadata` of a template says nothing."""
    if isinstance(value, dict):
        return {key: _without_empty(entry) for key, entry in value.items() if entry != {}}
    return [_without_empty(entry) for entry in value] if isinstance(value, list) else value
