"""What keeps a job's plugins from doing their part: names that other objects have, and plugins that raise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from vcbatch.api import messages
from vcbatch.api.job import Job
from vcbatch.api.loose import part
from vcbatch.api.reasons import JobReason
from vcbatch.api.resources import JOBS
from vcbatch.api.timestamps import parse_time
from vcbatch.core.job import events
from vcbatch.core.job.plugins import Child, PluginFailedError, PluginSet
from vcbatch.core.job.view import ChildKey
from vcbatch.core.machine import Decision, Json, WriteStatus, ref_of, strip_unchanged

PLUGIN_RETRY = timedelta(seconds=60)
"""After so long a plugin that raised is tried again."""
_QUIET = timedelta(seconds=30)
"""So long the garbage collector has to remove what belonged to a previous job before anything is said."""
_RECHECK_QUIET = timedelta(seconds=1)
_RECHECK = timedelta(seconds=10)
_EPOCH = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Blocked:
    """Objects of plugins that can't be created for now. `message` is empty as long as they are expected to become free
    by themselves; `recheck_at` is when they are to be read again, since nothing announces that they are free."""

    names: frozenset[ChildKey] = frozenset()
    message: str = ""
    recheck_at: datetime | None = None

    def __bool__(self) -> bool:
        return bool(self.names)


NOTHING_BLOCKED = Blocked()


def blocked_by_others(
    job: Job, stored_children: Mapping[ChildKey, Json], plugins: PluginSet, *, now: datetime
) -> Blocked:
    """Which of the plugins' objects have to wait, because an object that isn't the job's has the name or because their
    own predecessor is still being deleted.

    An object that nobody controls and that has all that the plugin asks for is used as it is. What a previous job of
    the same name left is removed by the garbage collector: it is reported only after 30 seconds.
    """
    names: set[ChildKey] = set()
    reported: list[str] = []
    for child in plugins.children():
        key = child.resource, child.name
        stored = stored_children.get(key)
        if stored is None or not _in_the_way(job, child, stored):
            continue
        names.add(key)
        words, since = _why(job, child, stored)
        if since is None or now >= since + _QUIET:
            reported.append(words)
    if not names:
        return NOTHING_BLOCKED
    recheck = _RECHECK if len(reported) == len(names) else _RECHECK_QUIET
    return Blocked(frozenset(names), messages.shorten("; ".join(reported)), now + recheck)


def _in_the_way(job: Job, child: Child, stored: Json) -> bool:
    if stored["metadata"].get("deletionTimestamp"):
        return True
    controller = _controller(stored)
    if controller.get("uid") == job.uid:
        return False
    usable = not controller and child.keys is None and not strip_unchanged(stored=stored, decided=child.body)
    return not usable


def _why(job: Job, child: Child, stored: Json) -> tuple[str, datetime | None]:
    """The sentence, and since when that is so; None where it doesn't pass by itself."""
    what = f"{child.resource.kind} {job.namespace}/{child.name} can't be made"
    deleted, created = stored["metadata"].get("deletionTimestamp"), _time(job.metadata.creation_timestamp)
    if deleted:
        finalizers = stored["metadata"].get("finalizers") or ()
        held = f", and its finalizers hold it: {', '.join(map(str, finalizers))}" if finalizers else ""
        return f"{what}: the one that has the name is being deleted{held}", max(created, _time(deleted))
    controller = _controller(stored)
    if controller.get("kind") == JOBS.kind and controller.get("name") == job.name:
        return f"{what}: the name is taken by that of a previous job {job.name}", created
    owner = (
        f"with controller {controller.get('kind')} {controller.get('name')}" if controller else "without a controller"
    )
    return f"{what}: the name is taken by an object {owner}", None


def plugin_failed(job: Job, error: PluginFailedError, *, now: datetime) -> Decision:
    """Leave the job as it is, say why in its status, and try again later: the plugin may need something that comes, or
    a new release."""
    message = messages.shorten(str(error))
    state = job.status.state
    retry = now + PLUGIN_RETRY
    if (state.reason, state.message) == (JobReason.PLUGIN_ERROR, message):
        return Decision(requeue_at=retry)
    stored = job.status.dump()
    status = {**stored, "state": {**part(stored, "state"), "reason": JobReason.PLUGIN_ERROR.value, "message": message}}
    write = WriteStatus(ref=ref_of(JOBS, job), resource_version=job.metadata.resource_version, status=status)
    return Decision(status=write, events=[events.warning(job, JobReason.PLUGIN_ERROR, message)], requeue_at=retry)


def _controller(stored: Json) -> Json:
    owners: list[Json] = stored.get("metadata", {}).get("ownerReferences") or []
    nobody: Json = {}
    return next((owner for owner in owners if owner.get("controller")), nobody)


def _time(text: str | None) -> datetime:
    """The time; the oldest there is where it can't be read."""
    try:
        return parse_time(text) if text else _EPOCH
    except ValueError:
        return _EPOCH
