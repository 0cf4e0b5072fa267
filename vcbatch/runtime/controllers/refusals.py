"""What the server doesn't let us do for a job: said on the job once, and remembered until a try went well."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from vcbatch.api.reasons import JobReason, shorten
from vcbatch.api.resources import JOBS, PERSISTENTVOLUMECLAIMS, PODS
from vcbatch.core.machine import Emit, EventType, ObjectRef
from vcbatch.runtime.apply import NotAppliedError
from vcbatch.runtime.cache import Cache
from vcbatch.runtime.recorder import Recorder
from vcbatch.seams.api import Json

_REASONS: Final = {
    f"create {PODS.kind}": JobReason.FAILED_CREATE,
    f"delete {PODS.kind}": JobReason.FAILED_DELETE,
    f"ensure {PERSISTENTVOLUMECLAIMS.kind}": JobReason.PVC_ERROR,
    f"mark {JOBS.kind}": JobReason.PVC_ERROR,
    "ensure PodGroup": JobReason.POD_GROUP_ERROR,
    "ensure Service": JobReason.PLUGIN_ERROR,
    "ensure ConfigMap": JobReason.PLUGIN_ERROR,
    "ensure Secret": JobReason.PLUGIN_ERROR,
    "ensure NetworkPolicy": JobReason.PLUGIN_ERROR,
    "write status of Job": JobReason.JOB_STATUS_ERROR,
}


class Refusals:
    """By job UID and reason, in the server's words."""

    def __init__(self, jobs: Cache[Json], recorder: Recorder) -> None:
        self._jobs = jobs
        self._recorder = recorder
        self._held: dict[str, dict[JobReason, str]] = {}

    def of_pods(self, uid: str) -> str:
        """Why the job's pods can't be created; empty once a try went well."""
        return self._held.get(uid, {}).get(JobReason.FAILED_CREATE, "")

    def of_claims(self, uid: str) -> str:
        """Why the job's claims can't be."""
        return self._held.get(uid, {}).get(JobReason.PVC_ERROR, "")

    def without_pods(self, namespace: str) -> Iterator[str]:
        """The jobs of that namespace whose pods can't be created."""
        for uid, held in self._held.items():
            job = self._jobs.get(uid)
            if JobReason.FAILED_CREATE in held and job and job["metadata"].get("namespace") == namespace:
                yield uid

    def note(self, uid: str, refused: NotAppliedError) -> None:
        """Something was refused. What passes by itself isn't worth a word, and neither is what was said already."""
        job = self._jobs.get(uid)
        reason = _REASONS.get(refused.part)
        # A server that answers 500 tells of what may not pass by itself: an admission webhook that can't be called.
        passing = (refused.error.transient and refused.error.code != 500) or refused.error.conflict
        if job is None or reason is None or passing:
            return
        held = self._held.setdefault(uid, {})
        if held.get(reason) == refused.error.message:
            return
        held[reason] = refused.error.message
        metadata = job["metadata"]
        ref = ObjectRef(resource=JOBS, namespace=metadata.get("namespace", ""), name=metadata["name"], uid=uid)
        self._recorder.emit(Emit(ref=ref, type=EventType.WARNING, reason=reason, message=shorten(str(refused))))

    def forget(self, uid: str) -> None:
        """All went well, or the job is gone."""
        self._held.pop(uid, None)
