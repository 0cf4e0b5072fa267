"""Admission as one call: every kind, and what is malformed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.admission_world import World, queue
from vcbatch.api import admission, supported
from vcbatch.api.admission import Operation, Request
from vcbatch.api.model import Json
from vcbatch.api.resources import COMMANDS, CRONJOBS, HYPERNODES, JOBFLOWS, JOBS, PODGROUPS, PODS, QUEUES, Resource

WORLD = World(
    known=[queue("root"), queue("default"), queue("team"), queue("closed", state="Closed")],
    namespaces={"blue": {"scheduling.volcano.sh/queue-name": "team"}},
)
ALL = admission.Settings(unsupported=supported.NOTHING)
JOB_SPEC: Json = {
    "tasks": [{"name": "w", "replicas": 1, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}]
}


def request(resource: Resource, body: Json | None, **others: Any) -> Request:
    operation = others.pop("operation", Operation.CREATE)
    return Request(resource=resource, operation=operation, name="x", namespace="blue", object=body, **others)


def refusal(resource: Resource, **body: Any) -> str:
    made = {"metadata": {"name": "x"}, **body}
    return admission.review(request(resource, made), WORLD, ALL).message


def test_a_minimal_job_gets_its_defaults() -> None:
    given = request(JOBS, {"spec": {"tasks": [{"replicas": 2, "template": {}}]}})
    made = admission.mutate(given, World())
    task = {"name": "default0", "replicas": 2, "minAvailable": 2, "maxRetry": 3, "template": {}}
    assert made == {
        "spec": {"queue": "default", "schedulerName": "volcano", "maxRetry": 3, "minAvailable": 2, "tasks": [task]}
    }
    assert list(admission.mutation_warnings(given, made)) == []


@pytest.mark.parametrize(
    ("given", "old", "queue", "warned"),
    [
        ({}, None, "team", False),
        ({"queue": "default"}, None, "team", True),
        ({"queue": "other"}, None, "other", False),
        ({"queue": "root"}, None, "root", False),
        ({}, "team", "team", False),
        ({"queue": "default"}, "team", "team", False),
        ({"queue": "default"}, "default", "default", False),
        ({"queue": "default"}, "other", "default", False),
        ({"queue": 7}, None, 7, False),
    ],
)
def test_a_job_is_in_the_queue_of_its_namespace(given: Json, old: str | None, queue: object, warned: bool) -> None:
    operation = Operation.CREATE if old is None else Operation.UPDATE
    before = None if old is None else {"spec": {"queue": old}}
    asked = request(JOBS, {"spec": given}, operation=operation, old=before)
    made = admission.mutate(asked, WORLD)
    assert made is not None
    assert made["spec"]["queue"] == queue
    warnings = list(admission.mutation_warnings(asked, made))
    text = "spec.queue: default becomes team, by the annotation scheduling.volcano.sh/queue-name of namespace blue"
    assert warnings == ([text] if warned else [])


@pytest.mark.parametrize(
    ("plugins", "want"),
    [
        ({"pytorch": []}, {"pytorch": [], "svc": []}),
        ({"mpi": ["--port=22"]}, {"mpi": ["--port=22"], "svc": [], "ssh": []}),
        ({"svc": ["--disable-network-policy"], "ray": []}, {"svc": ["--disable-network-policy"], "ray": []}),
        ({"env": []}, {"env": []}),
    ],
)
def test_frameworks_bring_the_plugins_that_they_need(plugins: Json, want: Json) -> None:
    made = admission.mutate(request(JOBS, {"spec": {"plugins": plugins}}), WORLD)
    assert made is not None
    assert made["spec"]["plugins"] == want


def test_partitions_and_the_host_network_have_defaults_of_their_own() -> None:
    task = {
        "replicas": 8,
        "partitionPolicy": {"totalPartitions": 4, "partitionSize": 2, "minPartitions": 3},
        "template": {"spec": {"hostNetwork": True}},
    }
    made = admission.mutate(request(JOBS, {"spec": {"tasks": [task]}}), WORLD)
    assert made is not None
    assert made["spec"]["minAvailable"] == 6
    assert made["spec"]["tasks"][0]["template"]["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"


def test_a_podgroup_in_the_default_queue_goes_to_its_namespaces() -> None:
    made = admission.mutate(request(PODGROUPS, {"spec": {"queue": "default"}}), WORLD)
    assert made == {"spec": {"queue": "team"}}
    assert admission.mutate(request(PODGROUPS, {"spec": {"queue": "closed"}}), WORLD) == {"spec": {"queue": "closed"}}


def test_a_job_that_is_sent_again_without_its_defaults_is_unchanged() -> None:
    task: Json = {"name": "w", "replicas": 2, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}
    sent: Json = {"metadata": {"name": "j"}, "spec": {"tasks": [task]}}
    stored = admission.mutate(request(JOBS, sent), WORLD)
    assert stored is not None
    assert admission.mutate(request(JOBS, sent, operation=Operation.UPDATE, old=stored), WORLD) == stored


def test_other_kinds_are_completed_when_they_are_made() -> None:
    body: Json = {"spec": {}}
    assert admission.mutate(request(QUEUES, body, operation=Operation.UPDATE, old=body), WORLD) == body
    assert admission.mutate(request(QUEUES, None, operation=Operation.DELETE), WORLD) is None


def test_a_wrong_type_is_refused_with_its_field() -> None:
    message = refusal(JOBS, spec={"tasks": [{"replicas": "many"}]})
    assert message == 'spec.tasks[0].replicas: Invalid value: "many": must be of type integer'


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"queue": "nope"}, 'unable to find queue: queue.scheduling.volcano.sh "nope" not found'),
        ({"queue": "closed"}, "can only submit PodGroup to queue with state `Open`, queue `closed` status is `Closed`"),
        (
            {"subGroupPolicy": [{"name": "a", "networkTopology": {"highestTierAllowed": 1, "highestTierName": "b"}}]},
            "in subGroupPolicy 'a': must not specify 'highestTierAllowed'",
        ),
        ({"queue": "team", "minMember": 3}, ""),
    ],
)
def test_podgroups(spec: Json, said: str) -> None:
    message = refusal(PODGROUPS, spec=spec)
    assert message.startswith(said)
    assert bool(message) == bool(said)


@pytest.mark.parametrize(
    ("flows", "said"),
    [
        ([{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}], ""),
        ([{"name": "a", "dependsOn": {"targets": ["b"]}}], "jobflow Flow is not DAG: vertex is not defined: b"),
        ([{"name": "a", "dependsOn": {"targets": ["a"]}}], "jobflow Flow is not DAG: circle of a"),
        ([{"name": "a", "dependsOn": {"targets": ["a"]}}, {"name": "a"}], ""),
        ([{"name": "a"}, {"name": "a", "dependsOn": {"targets": ["a"]}}], "jobflow Flow is not DAG: circle of a"),
    ],
)
def test_jobflows(flows: list[Json], said: str) -> None:
    assert refusal(JOBFLOWS, spec={"flows": flows}) == said


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"schedule": "*/5 * * * *", "timeZone": "Europe/Berlin"}, ""),
        ({"schedule": ""}, "schedule is required, but got empty"),
        ({"schedule": "TZ=UTC * * * * *"}, "schedule should not contain TZ or CRON_TZ"),
        ({"schedule": "* * * *"}, "schedule is not a valid cron expression: 4 fields"),
        ({"schedule": "@hourly", "timeZone": ""}, "timeZone must be nil or non-empty string, got empty string"),
        ({"schedule": "@hourly", "timeZone": "local"}, "timeZone can't be Local"),
        ({"schedule": "@hourly", "timeZone": "../etc/passwd"}, "invalid timeZone ../etc/passwd"),
        ({"schedule": "@hourly", "timeZone": "Mars/Base"}, "invalid timeZone Mars/Base"),
        ({"schedule": "@hourly", "jobTemplate": {"spec": {}}}, "No task specified in job spec"),
    ],
)
def test_cronjobs(spec: Json, said: str) -> None:
    message = refusal(CRONJOBS, spec={"jobTemplate": {"spec": JOB_SPEC}, **spec})
    assert message.startswith(said)
    assert bool(message) == bool(said)


def test_a_cronjobs_name_leaves_room_for_its_jobs() -> None:
    body: Json = {"metadata": {"name": "c" * 53}, "spec": {"schedule": "@hourly", "jobTemplate": {"spec": JOB_SPEC}}}
    assert "no more than 52 characters" in admission.review(request(CRONJOBS, body), WORLD, ALL).message


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ([{"type": "Node", "selector": {"exactMatch": {"name": "n1"}}}], ""),
        ([{"type": "Node", "selector": {"regexMatch": {"pattern": "^n[0-9]+$"}}}], ""),
        ([], "spec.members: Invalid value: []: member must have at least one member"),
        (
            [{"type": "Node", "selector": {"regexMatch": {"pattern": "a(b"}}}],
            "spec.members[0].selector.regexMatch.pattern",
        ),
    ],
)
def test_hypernodes(members: list[Json], said: str) -> None:
    message = refusal(HYPERNODES, spec={"tier": 1, "members": members})
    assert message.startswith(said)
    assert bool(message) == bool(said)


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        ({"volcano.sh/jdb-min-available": "3"}, ""),
        ({"volcano.sh/jdb-max-unavailable": "50%"}, ""),
        ({"volcano.sh/jdb-min-available": "-1"}, "it must be a positive integer"),
        ({"volcano.sh/jdb-min-available": "100%"}, "it must be a valid percentage which between 1% ~ 99%"),
        ({"volcano.sh/jdb-min-available": "abc"}, 'strconv.Atoi: parsing "abc": invalid syntax'),
        (
            {"volcano.sh/jdb-min-available": "1", "volcano.sh/jdb-max-unavailable": "1"},
            "not allow configure multiple annotations",
        ),
    ],
)
def test_pods_of_ours(annotations: Json, said: str) -> None:
    def judged(scheduler: str) -> str:
        body: Json = {"metadata": {"annotations": annotations}, "spec": {"schedulerName": scheduler}}
        return admission.review(request(PODS, body), WORLD, ALL).message

    assert said in judged("volcano")
    assert bool(judged("volcano")) == bool(said)
    assert judged("default-scheduler") == ""


def test_kinds_that_nothing_acts_on_yet_come_with_a_warning() -> None:
    body: Json = {"metadata": {"name": "x"}, "spec": {"flows": []}}
    settings = admission.Settings(unsupported=supported.Unsupported(kinds=frozenset({"JobFlow"})))
    verdict = admission.review(request(JOBFLOWS, body), WORLD, settings)
    assert verdict.allowed
    assert verdict.warnings == ("JobFlow x is stored, but this version of vcbatch doesn't act on it",)
    assert admission.review(request(QUEUES, body), WORLD, settings).warnings == ()
    assert admission.review(request(JOBFLOWS, body), WORLD).warnings == ()


def test_kinds_without_rules_pass() -> None:
    assert admission.review(request(COMMANDS, {"action": "AbortJob"}), WORLD, ALL).allowed
    assert admission.review(request(JOBS, None, operation=Operation.DELETE), WORLD, ALL).allowed
