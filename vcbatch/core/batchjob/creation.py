"""Creation of the pods of a Job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from vcbatch.api import names
from vcbatch.api.batch_job import BatchJob
from vcbatch.api.resources import PODS
from vcbatch.core.batchjob.ledger import Seen, failures_so_far
from vcbatch.core.machine import Create, Json
from vcbatch.core.workload.ownership import Owner
from vcbatch.core.workload.pods import LONGEST_STEM, free_names, pod_body


def creations(
    owner: Owner,
    job: BatchJob,
    indexes: Sequence[int | None],
    now_seen: Seen,
    *,
    taken: Callable[[str], bool],
    started: str,
) -> Iterator[Create]:
    """One pod for each entry. The names follow from the pods that ended before: a pod that is created again after a
    crash has the same name."""
    seed = f"{job.uid}/{started}/{now_seen.succeeded}/{now_seen.failed}"
    free = {stem: free_names(stem, seed, taken) for stem in {_stem(job, index) for index in indexes}}
    for index in indexes:
        stem = _stem(job, index)
        body = pod_body(owner, job.spec.template, name=next(free[stem]), generate_name=stem)
        metadata = body["metadata"]
        finalizers: list[str] = metadata.get("finalizers") or []
        metadata["finalizers"] = [*(each for each in finalizers if each != names.POD_TRACKING), names.POD_TRACKING]
        if index is not None:
            _mark_index(job, index, body, now_seen)
        yield Create(resource=PODS, body=body)


def _stem(job: BatchJob, index: int | None) -> str:
    if index is None:
        return f"{job.name}-"
    tail = f"-{index}-"
    return job.name[: LONGEST_STEM - len(tail)] + tail


def _mark_index(job: BatchJob, index: int, body: Json, now_seen: Seen) -> None:
    """Write the index where the pod's containers find it: label, annotation, host name and environment."""
    metadata, spec = body["metadata"], body["spec"]
    metadata["labels"] = {**(metadata.get("labels") or {}), names.COMPLETION_INDEX: str(index)}
    annotations: dict[str, str] = {**(metadata.get("annotations") or {}), names.COMPLETION_INDEX: str(index)}
    if job.counts_per_index:
        failures, ignored = failures_so_far(job, now_seen.held.get(index))
        annotations[names.INDEX_FAILURES] = str(failures)
        if ignored:
            annotations[names.INDEX_IGNORED_FAILURES] = str(ignored)
    metadata["annotations"] = annotations
    spec["hostname"] = f"{job.name}-{index}"
    source: Json = {"fieldRef": {"fieldPath": f"metadata.labels['{names.COMPLETION_INDEX}']"}}
    containers: list[dict[str, Any]] = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    for container in containers:
        environment: list[dict[str, Any]] = container.get("env") or []
        if all(each.get("name") != names.ENV_COMPLETION_INDEX for each in environment):
            container["env"] = [*environment, {"name": names.ENV_COMPLETION_INDEX, "valueFrom": source}]
