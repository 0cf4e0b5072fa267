"""The PodGroup and the pods of a job in a file, created by the controllers' own functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vcbatch.api.defaults import default_job
from vcbatch.api.job import Job
from vcbatch.api.model import MalformedObject
from vcbatch.api.resources import JOBS
from vcbatch.api.validate import sentence, type_errors
from vcbatch.cli.base.output import CliError
from vcbatch.cli.files.source import Origin
from vcbatch.core.job.ledger import read_ledger
from vcbatch.core.job.plan import plan_of
from vcbatch.core.job.plugins import load
from vcbatch.core.job.podgroup import ensure
from vcbatch.core.job.pods import creates

Json = Mapping[str, Any]
_MOST_PODS = 200_000
_UID = "simulated"
"""Of a job that the API server has never seen; its PodGroup is called so."""


def members_of(document: Json, priority_classes: Mapping[str, int], *, source: object) -> tuple[Json, list[Json]]:
    """The PodGroup, and all pods; `source` says where the job is written.

    Raises:
        CliError: the job isn't one, or has more pods than are worth a try.
    """
    meta = {"namespace": "default", "uid": _UID, **document.get("metadata", {})}
    name = f"job {meta['namespace']}/{meta.get('name')}"
    misfits = type_errors(JOBS, document)
    if misfits:
        where = source.place(misfits[0].field) if isinstance(source, Origin) else source
        raise CliError(f"{where}: {name}: {sentence(misfits)}")
    try:
        job = Job.parse(default_job({**document, "metadata": meta}))
        plan = plan_of(job)
        if plan.replicas > _MOST_PODS:
            raise CliError(f"{source}: {name}: at most {_MOST_PODS} pods, got {plan.replicas}")
        created = ensure(plan, None, priority_classes, out={})
        assert created is not None  # noqa: S101 - there is none yet
        plugins = load(plan)
        pods: list[Json] = [
            create.body
            for task in plan.tasks.values()
            for create in creates(plan, read_ledger(plan), plugins, task=task, indices=range(task.replicas))
        ]
    except (MalformedObject, ValueError, KeyError, TypeError) as error:
        raise CliError(f"{source}: {name}: {error}") from error
    since = {"creationTimestamp": meta["creationTimestamp"]} if meta.get("creationTimestamp") else {}
    return {**created.body, "metadata": {**since, **created.body["metadata"]}}, pods
