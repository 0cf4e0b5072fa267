"""The PodGroup and the pods of a job from a file, created by the functions of the controllers."""

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
"""The UID of a job that isn't on an API server, and the name of its PodGroup."""


def members_of(document: Json, priority_classes: Mapping[str, int], *, source: object) -> tuple[Json, list[Json]]:
    """The PodGroup and all pods; `source` is the file and position of the job, for errors.

    Raises:
        CliError: the object isn't a valid job, or has too many pods for a simulation.
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
