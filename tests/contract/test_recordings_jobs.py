"""The job recordings of a real Volcano, played on the pure job controller.

The player is `tests.support.job_world`: every gang is let in and started as soon as enough of its pods exist, nodes run
`sleep N` and `exit K`. What is compared: the phases on the way, and at each snapshot the job's status, pods, the
PodGroup's spec, Services, ConfigMaps, NetworkPolicies and the reasons of the job's events. Where we differ on purpose
it is listed here as data, and explained in `docs/differences-jobs.md`.
"""

from __future__ import annotations

import copy
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import DATA
from tests.support.job_world import Json, World
from vcbatch.api import names
from vcbatch.api.resources import (
    COMMANDS,
    CONFIGMAPS,
    JOBS,
    NETWORKPOLICIES,
    PODGROUPS,
    PODS,
    SERVICES,
    Resource,
)

OUT_OF_SCOPE = {
    "bare-pod": "played by test_recordings_workloads",
    "closed-queue": "played by test_recordings_workloads",
    "cronjob": "played by test_recordings_cronjobs",
    "cronjob-suspended": "played by test_recordings_cronjobs",
    "depends-on": "a gang never waits for tasks that wait for it: ours runs where Volcano's stays Pending for ever",
    "deployment": "played by test_recordings_workloads",
    "deployment-min": "played by test_recordings_workloads",
    "jobflow": "played by test_recordings_jobflows",
    "jobflow-delete-policy": "played by test_recordings_jobflows",
    "plugin-ssh-args": "arguments that aren't known are refused",
    "statefulset": "played by test_recordings_workloads",
}

KEPT_EVIDENCE = {
    "policy-podfailed-restartpod": {"a-bad-0"},
    "policy-podfailed-restarttask": {"a-bad-0"},
}
"""Pods that we keep and Volcano deletes: the last failed ones, when the budget is used up (volcano#1688)."""

OWN_EVENTS = {"PodEvicted", "PodFailed", "RetriesExhausted"}
"""Reasons of job events that Volcano doesn't have."""

REPLACED_EVENTS = {
    "policy-podfailed-restartjob": {"PodGroupPending"},
    "policy-evicted": {"PodGroupPending"},
}
"""Events of Volcano's that hang on the scheduler's conditions, which this player doesn't write."""

_SERVER_SET = frozenset(
    {
        "imagePullPolicy",
        "terminationMessagePath",
        "terminationMessagePolicy",
        "dnsPolicy",
        "enableServiceLinks",
        "preemptionPolicy",
        "priority",
        "restartPolicy",
        "securityContext",
        "serviceAccount",
        "serviceAccountName",
        "terminationGracePeriodSeconds",
        "tolerations",
        "defaultMode",
        "internalTrafficPolicy",
        "ipFamilies",
        "ipFamilyPolicy",
        "sessionAffinity",
        "type",
        "hostPort",
    }
)
"""Fields that the API server or the scheduler fills in."""

_ASSIGNED = frozenset({"clusterIP", "nodeName"})

_PLURALS: dict[str, Resource] = {
    "pods": PODS,
    "services": SERVICES,
    "configmaps": CONFIGMAPS,
    "networkpolicies": NETWORKPOLICIES,
    "podgroups.scheduling.volcano.sh": PODGROUPS,
}


def _recordings() -> list[str]:
    if DATA is None:
        return []
    return sorted(path.stem for path in (DATA / "recordings").glob("*.json"))


PAGE = Path(__file__).resolve().parents[2] / "docs" / "differences-jobs.md"


@pytest.mark.parametrize("name", sorted(OUT_OF_SCOPE))
def test_what_is_not_played_is_said_to_users(name: str) -> None:
    assert name in PAGE.read_text(encoding="utf-8")


@pytest.mark.skipif(DATA is None, reason="no conformance data beside the repository")
def test_what_is_not_played_is_recorded() -> None:
    assert OUT_OF_SCOPE.keys() <= set(_recordings())


@pytest.mark.parametrize("name", [name for name in _recordings() if name not in OUT_OF_SCOPE])
def test_plays_as_volcano_does(name: str) -> None:
    assert DATA is not None
    recording = json.loads((DATA / "recordings" / f"{name}.json").read_text())
    _Player(name, recording).play()


class _Player:
    def __init__(self, name: str, recording: Json) -> None:
        self._name = name
        self._steps = recording["steps"]
        self._results = iter(recording["results"])
        self._world = World(namespace=f"r-{name}")
        self._world.lets_in = name != "unschedulable"
        if name == "unschedulable-inqueue":
            self._world.binds = False
            self._world.on_create = lambda _: self._say_unschedulable()
        self._jobs: list[str] = []
        self._trouble: str | None = None

    def play(self) -> None:
        for step in self._steps:
            if "apply" in step:
                for body in step["apply"]:
                    self._apply(body)
            elif "delete" in step:
                kind, _, name = step["delete"].partition("/")
                self._delete(kind, name)
            elif "jsonpatch" in step:
                self._patch(step)
            elif "until" in step:
                self._until(step["until"])
            elif "sleep" in step:
                self._let_pass(timedelta(seconds=step["sleep"]))
            else:
                self._compare(next(self._results))

    def _apply(self, body: Json) -> None:
        if body["kind"] == "Job":
            self._world.submit(body)
            self._jobs.append(body["metadata"]["name"])
            return
        assert body["kind"] == "Command"
        target = self._world.job(body["target"]["name"])
        body["target"]["uid"] = target["metadata"]["uid"]
        self._world.put(COMMANDS, body)

    def _delete(self, kind: str, name: str) -> None:
        if kind == "pod":
            self._world.delete_pod(name)
            return
        assert kind == "jobs.batch.volcano.sh"
        self._world.remove(JOBS, name)
        self._jobs.remove(name)

    def _patch(self, step: Json) -> None:
        def change(job: Json) -> None:
            for operation in step["body"]:
                assert operation["op"] == "replace"
                *path, last = operation["path"].strip("/").split("/")
                target: Any = job
                for part in path:
                    target = target[int(part)] if isinstance(target, list) else target[part]
                target[last] = operation["value"]

        self._world.change(JOBS, step["jsonpatch"].partition("/")[2], change)

    def _say_unschedulable(self) -> None:
        """What the scheduler writes once it has looked at the pods of a gang."""
        condition = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "no node"}
        for group in self._world.all(PODGROUPS):
            group["status"]["conditions"] = [condition]

    def _until(self, until: Json) -> None:
        expected = next(self._results)
        name = until["get"].partition("/")[2]
        if until["is"] == ["NotFound"]:
            assert name not in self._jobs
            return
        before = len(self._world.status_history)
        self._world.run(name, until=lambda: self._world.phase(name) in until["is"])
        saw = [status["state"]["phase"] for status in self._world.status_history[before:]]
        assert expected["reached"]
        assert _in_order(expected["saw"], saw or [self._world.phase(name)]), f"Volcano {expected['saw']}, ours {saw}"

    def _let_pass(self, time: timedelta) -> None:
        ends = self._world.now + time
        while self._world.now < ends:
            for name in self._jobs:
                self._world.settle(name)
            self._world.step()
        for name in self._jobs:
            self._world.settle(name)

    def _compare(self, expected: Json) -> None:
        objects = expected["objects"]
        for job in objects.get("jobs.batch.volcano.sh", ()):
            ours = self._world.job(job["metadata"]["name"])
            assert _clean(ours["spec"]) == _clean(job["spec"], like=ours["spec"])
            assert self._status(ours) == _expected_status(job)
        for plural, resource in _PLURALS.items():
            theirs = {body["metadata"]["name"]: body for body in objects.get(plural, ())}
            ours = {self._uid(body["metadata"]["name"]): body for body in self._world.all(resource)}
            kept = KEPT_EVIDENCE.get(self._name, set()) if resource is PODS else set()
            assert ours.keys() - kept == theirs.keys(), plural
            for name, body in theirs.items():
                self._same_object(ours[name], body)
        self._same_events(expected.get("events") or objects.get("events") or [])

    def _status(self, job: Json) -> Json:
        status = copy.deepcopy(job["status"])
        for key in ("ledger", "runningDuration"):
            status.pop(key, None)
        finished = status["state"]["phase"] in ("Completed", "Failed", "Terminated", "Aborted")
        if finished:
            for key in ("succeeded", "failed", "taskStatusCount"):
                status.pop(key, None)
        status["state"] = {"phase": status["state"]["phase"]}
        status["conditions"] = [{"status": entry["status"]} for entry in status["conditions"]]
        version = status.pop("version", 0)
        assert version <= status.get("retryCount", 0) + 2
        return status

    def _same_object(self, ours: Json, theirs: Json) -> None:
        assert ours["kind"] == theirs["kind"]
        for field in ("labels", "annotations"):
            have = self._uid_values(ours["metadata"].get(field) or {})
            want = dict(theirs["metadata"].get(field) or {})
            # Both count attempts in it, and theirs each further pass of a kill too.
            version, theirs_version = have.pop(names.JOB_VERSION, None), want.pop(names.JOB_VERSION, None)
            assert version == theirs_version or int(version) < int(theirs_version), names.JOB_VERSION
            have.pop(names.SCHEDULERS, None)
            assert have == want, field
        owner = {key: value for key, value in ours["metadata"]["ownerReferences"][0].items() if key != "uid"}
        assert [owner] == theirs["metadata"]["ownerReferences"]
        for field in ("spec", "data"):
            have, want = ours.get(field), theirs.get(field)
            assert _clean(have) == _clean(want, like=have), f"{ours['kind']} {ours['metadata']['name']} {field}"
        if ours["kind"] == "Pod":
            assert ours["status"]["phase"] == theirs["status"]["phase"]

    def _same_events(self, lines: list[str]) -> None:
        theirs = {_reason(line) for line in lines if line.startswith("Job/")}
        ours = {(str(event.type), str(event.reason)) for event in self._world.events}
        ours = {(kind, reason) for kind, reason in ours if reason not in OWN_EVENTS}
        theirs = {(kind, reason) for kind, reason in theirs if reason not in REPLACED_EVENTS.get(self._name, set())}
        if any(reason == "RetriesExhausted" for reason in (str(event.reason) for event in self._world.events)):
            ours.add(("Normal", "ExecuteAction"))
        assert ours == theirs
        for line in lines:
            if line.startswith("Job/") and " PodGroupPending:" not in line:
                said = line.partition(": ")[2].strip()
                assert any(str(event.message).startswith(said) for event in self._world.events), said

    def _uid(self, text: str) -> str:
        for job in self._world.all(JOBS):
            text = text.replace(job["metadata"]["uid"], "UID")
        return text

    def _uid_values(self, values: dict[str, str]) -> dict[str, str]:
        return {key: self._uid(value) for key, value in values.items()}


def _expected_status(job: Json) -> Json:
    status = copy.deepcopy(job["status"])
    status.pop("version", None)
    phases = [entry["status"] for entry in status["conditions"]]
    if status["state"]["phase"] == "Failed" and status.get("retryCount", 0) == job["spec"]["maxRetry"]:
        # Volcano's last entry before Failed is a restart that the budget didn't allow, and ours has none; since the log
        # keeps one entry of each phase, the restart before it is there instead.
        earlier = ["Restarting"] if status["retryCount"] > 1 else []
        rest = [phase for phase in phases if phase not in ("Restarting", "Failed")]
        phases = [*earlier, *rest, "Failed"]
    status["conditions"] = [{"status": phase} for phase in phases]
    return status


def _in_order(theirs: list[str], ours: list[str]) -> bool:
    """Whether Volcano's phases occur among ours in this order; its watcher missed some that were short."""
    remaining = iter(ours)
    return all(any(phase == seen for seen in remaining) for phase in theirs[1:])


def _reason(line: str) -> tuple[str, str]:
    _, kind, reason = line.split(" ", 2)
    return kind, reason.partition(":")[0]


def _clean(value: Any, *, like: Any = None) -> Any:
    """Without what the server fills in (unless ours has it too), the service account's mount, and with environment
    and volumes in a fixed order: Volcano applies plugins in random order."""
    if isinstance(value, dict):
        other = like if isinstance(like, dict) else {}
        cleaned = {
            key: _clean(entry, like=other.get(key))
            for key, entry in value.items()
            if not (key in _SERVER_SET and like is not None and key not in other)
        }
        return {key: entry for key, entry in cleaned.items() if entry not in ({}, [], None) and key not in _ASSIGNED}
    if isinstance(value, list):
        entries = [entry for entry in value if not _is_service_account(entry)]
        others = like if isinstance(like, list) and len(like) == len(entries) else [None] * len(entries)
        if all(isinstance(entry, dict) and "name" in entry for entry in [*entries, *[o for o in others if o]]):
            entries = sorted(entries, key=_name)
            others = sorted(others, key=lambda other: _name(other) if other else "")
        return [_clean(entry, like=other) for entry, other in zip(entries, others, strict=True)]
    return value


def _name(entry: Json) -> str:
    return str(entry["name"])


def _is_service_account(entry: Any) -> bool:
    return isinstance(entry, dict) and str(entry.get("name", "")).startswith("kube-api-access-")
