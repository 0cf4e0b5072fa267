"""The table of what may change, against the rules and the document."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from tests.corpus.corpus import bases, changed, world
from vcbatch.api import admission
from vcbatch.api.admission import Operation, Request
from vcbatch.api.cronjob import CronJobSpec
from vcbatch.api.hypernode import HyperNodeSpec
from vcbatch.api.job import JobSpec, TaskSpec
from vcbatch.api.jobflow import JobFlowSpec
from vcbatch.api.model import Json, Model, wire_name
from vcbatch.api.podgroup import PodGroupSpec
from vcbatch.api.queue import QueueSpec
from vcbatch.api.resources import CRONJOBS, HYPERNODES, JOBFLOWS, JOBS, PODGROUPS, QUEUES, Resource
from vcbatch.api.validate.mutability import FIELDS, FILLED_CLAIM_NAME, Change, Field, table

DOCUMENT = Path(__file__).parents[3] / "docs/mutability.md"
TOPOLOGY = {"mode": "soft", "highestTierAllowed": 2}
POLICIES = [{"event": "PodFailed", "action": "RestartJob"}]
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
TASK: Json = {"name": "more", "replicas": 1, "minAvailable": 1, "maxRetry": 3,
              "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}  # fmt: skip

# For each field: how its base is changed so, and validly.
CHANGES: dict[Resource, tuple[str, Json]] = {
    JOBS: ("pair", {
        "minAvailable": {"/spec/minAvailable": 2}, "priorityClassName": {"/spec/priorityClassName": "high"},
        "tasks[*].replicas": {"/spec/tasks/1/replicas": 5}, "tasks[*].minAvailable": {"/spec/tasks/1/minAvailable": 1},
        FILLED_CLAIM_NAME: {"/spec/volumes/0/volumeClaimName": "made"}, "tasks": {"/spec/tasks/-": TASK},
        "tasks[*].name": {"/spec/tasks/0/name": "other"},
        "tasks[*].template": {"/spec/tasks/0/template/spec/containers/0/image": "other"},
        "tasks[*].policies": {"/spec/tasks/0/policies": POLICIES},
        "tasks[*].topologyPolicy": {"/spec/tasks/0/topologyPolicy": "none"},
        "tasks[*].maxRetry": {"/spec/tasks/0/maxRetry": 9},
        "tasks[*].dependsOn": {"/spec/tasks/1/dependsOn": {"name": ["master"]}},
        "tasks[*].partitionPolicy": {"/spec/tasks/1/partitionPolicy": {"totalPartitions": 2, "partitionSize": 1}},
        "schedulerName": {"/spec/schedulerName": "other"}, "queue": {"/spec/queue": "open"},
        "volumes": {"/spec/volumes/-": {"mountPath": "/e", "volumeClaimName": "e"}},
        "policies": {"/spec/policies": POLICIES}, "plugins": {"/spec/plugins": {"env": []}},
        "runningEstimate": {"/spec/runningEstimate": "1h"}, "maxRetry": {"/spec/maxRetry": 9},
        "ttlSecondsAfterFinished": {"/spec/ttlSecondsAfterFinished": 9}, "minSuccess": {"/spec/minSuccess": 1},
        "networkTopology": {"/spec/networkTopology": TOPOLOGY},
    }),
    QUEUES: ("queue", {
        "weight": {"/spec/weight": 5}, "capability": {"/spec/capability": {"cpu": 5}},
        "deserved": {"/spec/deserved": {"cpu": 5}}, "reclaimable": {"/spec/reclaimable": False},
        "guarantee": {"/spec/deserved": {"cpu": 5}, "/spec/guarantee": {"resource": {"cpu": 5}}},
        "parent": {"/spec/parent": "open"}, "priority": {"/spec/priority": 5},
        "dequeueStrategy": {"/spec/dequeueStrategy": "fifo"}, "affinity": {"/spec/affinity": {}},
        "extendClusters": {"/spec/extendClusters": [{"name": "far"}]}, "type": {"/spec/type": "gpu"},
    }),
    PODGROUPS: ("podgroup", {
        "queue": {"/spec/queue": "open"}, "minMember": {"/spec/minMember": 5},
        "minTaskMember": {"/spec/minTaskMember": {"w": 5}}, "priorityClassName": {"/spec/priorityClassName": "high"},
        "minResources": {"/spec/minResources": {"cpu": 5}}, "networkTopology": {"/spec/networkTopology": TOPOLOGY},
        "subGroupPolicy": {"/spec/subGroupPolicy": [{"name": "a"}]},
    }),
    JOBFLOWS: ("jobflow", {
        "flows": {"/spec/flows/-": {"name": "d"}}, "jobRetainPolicy": {"/spec/jobRetainPolicy": "delete"},
    }),
    CRONJOBS: ("cronjob", {
        "schedule": {"/spec/schedule": "@daily"}, "timeZone": {"/spec/timeZone": "Etc/UTC"},
        "startingDeadlineSeconds": {"/spec/startingDeadlineSeconds": 5}, "suspend": {"/spec/suspend": True},
        "concurrencyPolicy": {"/spec/concurrencyPolicy": "Forbid"},
        "jobTemplate": {"/spec/jobTemplate/spec/queue": "open"},
        "successfulJobsHistoryLimit": {"/spec/successfulJobsHistoryLimit": 5},
        "failedJobsHistoryLimit": {"/spec/failedJobsHistoryLimit": 5},
    }),
    HYPERNODES: ("hypernode", {
        "tier": {"/spec/tier": 5}, "tierName": {"/spec/tierName": "rack"},
        "members": {"/spec/members/0/selector": {"exactMatch": {"name": "other"}}},
    }),
}  # fmt: skip

SPECS: dict[Resource, type[Model]] = {
    JOBS: JobSpec, QUEUES: QueueSpec, PODGROUPS: PodGroupSpec, JOBFLOWS: JobFlowSpec, CRONJOBS: CronJobSpec,
    HYPERNODES: HyperNodeSpec,
}  # fmt: skip


@pytest.mark.parametrize(
    ("resource", "field"),
    [(resource, field) for resource, fields in FIELDS.items() for field in fields],
    ids=lambda value: value.path if isinstance(value, Field) else value.plural,
)
def test_a_change_is_taken_as_the_table_says(resource: Resource, field: Field) -> None:
    base, changes = CHANGES[resource]
    old = copy.deepcopy(bases()[base]["object"])
    if resource == JOBS:
        old = changed(old, {"/spec/volumes": [{"mountPath": "/d", "volumeClaim": CLAIM}]})
    new = changed(old, changes[field.path])
    assert new != old
    metadata: Any = old["metadata"]
    request = Request(resource=resource, operation=Operation.UPDATE, name=metadata["name"], object=new, old=old,
                      namespace=metadata.get("namespace", ""))  # fmt: skip
    verdict = admission.review(request, world())
    assert verdict.allowed is (field.change is not Change.NO), verdict.message


@pytest.mark.parametrize("resource", FIELDS, ids=lambda resource: resource.plural)
def test_the_table_has_every_field(resource: Resource) -> None:
    reported = {field.path for field in FIELDS[resource]}
    assert reported == set(CHANGES[resource][1])
    assert {wire_name(name) for name in SPECS[resource].model_fields} <= {path.partition("[")[0] for path in reported}
    if resource == JOBS:
        assert {f"tasks[*].{wire_name(name)}" for name in TaskSpec.model_fields} <= reported


def test_the_document_has_the_tables() -> None:
    text = DOCUMENT.read_text()
    for resource in FIELDS:
        assert f"## {resource.kind}\n\n{table(resource)}" in text, table(resource)
