"""A job for resubmission: the user's manifest, without the fields that servers and controllers added."""

from __future__ import annotations

import copy
import re
from typing import Any, Final

from vcbatch.api import names
from vcbatch.api.loose import part
from vcbatch.api.resources import JOBS
from vcbatch.cli.base.fields import name_of, namespace_of, objects, words

Json = dict[str, Any]

_OF_OTHERS: Final = (
    names.LAST_APPLIED,
    names.CREATED_BY_JOB_FLOW,
    names.CREATED_BY_JOB_TEMPLATE,
    names.CRONJOB_SCHEDULED_TIMESTAMP,
    names.MOVING_JOB,
)
_AGAIN = re.compile(r"(.+)-r([0-9]{1,6})")


def manifest_of(job: Json, *, name: str = "", queue: str = "") -> Json:
    """The job, optionally under another name or in another queue, without the owners, the status and the volume claims
    of the old one."""
    spec = copy.deepcopy(part(job, "spec"))
    for volume in objects(spec, "volumes"):
        if volume.get("volumeClaim"):  # the controllers set the name, with the claim that they created for this job
            volume.pop("volumeClaimName", None)
    if queue:
        spec["queue"] = queue
    metadata: Json = {"name": name or name_of(job), "namespace": namespace_of(job)}
    for field in ("labels", "annotations"):
        kept = {key: value for key, value in words(job, "metadata", field).items() if key not in _OF_OTHERS}
        if kept:
            metadata[field] = kept
    return {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": metadata, "spec": spec}


def name_again(name: str) -> str:
    """The name of a job's resubmission: `train`, `train-r2`, `train-r3`. It is deterministic, so that repeating the
    command doesn't create a second job."""
    found = _AGAIN.fullmatch(name)
    return f"{found[1]}-r{int(found[2]) + 1}" if found else f"{name}-r2"
