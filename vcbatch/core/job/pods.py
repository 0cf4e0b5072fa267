"""The pods of a job as they are created (Volcano `pkg/controllers/job/job_controller_util.go`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from vcbatch.api import names
from vcbatch.api.model import owner_of
from vcbatch.api.resources import JOBS, PODS
from vcbatch.api.validate.budget import budget_of_pods
from vcbatch.core.job import volumes
from vcbatch.core.job.ledger import Ledger
from vcbatch.core.job.plan import Plan, Task
from vcbatch.core.job.plugins import PluginSet
from vcbatch.core.machine import Create, Json

_COPIED_ANNOTATIONS: Final = (names.PREEMPTABLE, names.COOLDOWN_TIME, names.REVOCABLE_ZONE)
_COPIED_LABELS: Final = (names.PREEMPTABLE, names.COOLDOWN_TIME)
_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", re.ASCII)


def creates(plan: Plan, ledger: Ledger, plugins: PluginSet, *, task: Task, indices: Iterable[int]) -> Iterator[Create]:
    """The creation of these pods of a task, lowest index first. Parts that all pods of a task share are built once."""
    shared = msgspec.json.encode(_shared(plan, ledger, task))
    for index in sorted(indices):
        body: Json = msgspec.json.decode(shared)
        metadata = body["metadata"]
        metadata["name"] = names.pod_name(plan.job.name, task.name, index)
        metadata["labels"][names.TASK_INDEX] = metadata["annotations"][names.TASK_INDEX] = str(index)
        if task.partition_size:
            metadata["labels"][names.PARTITION_ID] = str(index // task.partition_size)
        plugins.change_pod(body, task=task, index=index)
        yield Create(resource=PODS, body=body)


def _shared(plan: Plan, ledger: Ledger, task: Task) -> Json:
    job, template = plan.job, task.spec.pod_metadata
    spec: Json = dict(task.spec.pod_spec)
    spec["schedulerName"] = spec.get("schedulerName") or job.spec.scheduler_name or names.DEFAULT_SCHEDULER
    priority_class = spec.get("priorityClassName") or job.spec.priority_class_name
    if priority_class:
        spec["priorityClassName"] = priority_class
    volumes.mount(job, spec)
    return {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {
            "namespace": job.namespace,
            "labels": {**(template.get("labels") or {}), **_labels(plan, task)},
            "annotations": {**(template.get("annotations") or {}), **_annotations(plan, ledger, task)},
            "ownerReferences": [owner_of(job, JOBS)],
        },
        "spec": spec,
    }


def _labels(plan: Plan, task: Task) -> dict[str, str]:
    job = plan.job
    labels = {
        names.JOB_NAME: job.name,
        names.TASK_SPEC: task.name,
        names.JOB_NAMESPACE: job.namespace,
        names.QUEUE_NAME: plan.queue,
    }
    # A queue's name may be longer than the value of a label; the annotation has it in full.
    if not _LABEL_VALUE.fullmatch(plan.queue):
        del labels[names.QUEUE_NAME]
    return labels | {key: job.metadata.labels[key] for key in _COPIED_LABELS if key in job.metadata.labels}


def _annotations(plan: Plan, ledger: Ledger, task: Task) -> dict[str, str]:
    job = plan.job
    annotations = {
        names.TASK_SPEC: task.name,
        names.GROUP_NAME: names.pod_group_name(job.name, job.uid),
        names.JOB_NAME: job.name,
        names.QUEUE_NAME: plan.queue,
        names.JOB_VERSION: str(ledger.version),
        names.TEMPLATE_UID: names.template_uid(job.name, task.name),
        names.JOB_RETRY_COUNT: str(ledger.retry_count),
    }
    if task.spec.topology_policy:
        annotations[names.NUMA_TOPOLOGY_POLICY] = task.spec.topology_policy
    given = job.metadata.annotations
    return annotations | {key: given[key] for key in _COPIED_ANNOTATIONS if key in given} | budget_of_pods(given)
