"""A job for resubmission: the user's manifest, without the fields that servers and controllers added."""

from __future__ import annotations

import copy
import re
from dataclasses import replace
from typing import Any, Final

from vcbatch.api import names
from vcbatch.api.loose import part
from vcbatch.api.resources import JOBS
from vcbatch.api.start_conditions import dependencies, meets
from vcbatch.cli.base.fields import dig, name_of, namespace_of, objects, text, words

Json = dict[str, Any]

_OF_OTHERS: Final = (
    names.LAST_APPLIED,
    names.CREATED_BY_JOB_FLOW,
    names.CREATED_BY_JOB_TEMPLATE,
    names.CRONJOB_SCHEDULED_TIMESTAMP,
    names.MOVING_JOB,
)
_START: Final = (names.AFTER, names.BEGIN_TIME, names.DEADLINE)
_AGAIN = re.compile(r"(.+)-r([0-9]{1,6})")


def manifest_of(job: Json, *, name: str = "", queue: str = "", again: bool = False) -> Json:
    """The job, optionally under another name or in another queue, without the owners, the status and the volume claims
    of the old one. One that is to run `again` starts at once: it has no dependencies, begin time and deadline. Else
    the dependencies that were met are left out, since only the old job's status has their results."""
    spec = copy.deepcopy(part(job, "spec"))
    for volume in objects(spec, "volumes"):
        if volume.get("volumeClaim"):  # the controllers set the name, with the claim that they created for this job
            volume.pop("volumeClaimName", None)
    if queue:
        spec["queue"] = queue
    metadata: Json = {"name": name or name_of(job), "namespace": namespace_of(job)}
    left_out = (*_OF_OTHERS, *_START) if again else _OF_OTHERS
    for field in ("labels", "annotations"):
        kept = {key: value for key, value in words(job, "metadata", field).items() if key not in left_out}
        if names.AFTER in kept:
            kept = _without_met(kept, job)
        if kept:
            metadata[field] = kept
    return {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": metadata, "spec": spec}


def _without_met(annotations: dict[str, str], job: Json) -> dict[str, str]:
    """The annotations with the dependencies that are still to be met, by UID where it is known. One whose job ended
    otherwise than required is kept."""
    if dig(job, "status", "ledger", "released"):
        return {key: value for key, value in annotations.items() if key not in (names.AFTER, names.BEGIN_TIME)}
    seen = {text(one, "name"): one for one in objects(job, "status", "ledger", "dependencies")}
    left: list[str] = []
    for wanted in dependencies(annotations):
        record = seen.get(wanted.name, {})
        ended = text(record, "outcome")
        if not ended or not meets(wanted.outcome, ended):
            left.append(str(replace(wanted, uid=text(record, "uid") or wanted.uid)))
    kept = {key: value for key, value in annotations.items() if key != names.AFTER}
    return {**kept, names.AFTER: ",".join(left)} if left or not dependencies(annotations) else kept


def name_again(name: str) -> str:
    """The name of a job's resubmission: `train`, `train-r2`, `train-r3`. It is deterministic, so that repeating the
    command doesn't create a second job."""
    found = _AGAIN.fullmatch(name)
    return f"{found[1]}-r{int(found[2]) + 1}" if found else f"{name}-r2"
