"""What keeps a job's plugins from working: names that other objects have, and plugins that raise."""

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
"""The delay after which a plugin that raised is called again."""
_QUIET = timedelta(seconds=30)
"""How long the garbage collector may take to remove a previous job's objects before it is reported."""
_RECHECK_QUIET = timedelta(seconds=1)
_RECHECK = timedelta(seconds=10)
_EPOCH = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Blocked:
    """Plugin objects that can't be created for now. `message` is empty while their names are expected to become free;
    `recheck_at` is when to read them again, since no event announces that they are free."""

    names: frozenset[ChildKey] = frozenset()
    message: str = ""
    recheck_at: datetime | None = None

    def __bool__(self) -> bool:
        return bool(self.names)


NOTHING_BLOCKED = Blocked()


def blocked_by_others(
    job: Job, stored_children: Mapping[ChildKey, Json], plugins: PluginSet, *, now: datetime
) -> Blocked:
    """The plugins' objects that have to wait, because an object that isn't the job's has the name or because their own
    predecessor is still being deleted.

    An object without a controller that has all that the plugin needs is used as it is. The objects of a previous job of
    the same name are removed by the garbage collector: they are reported only after 30 seconds.
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
    """The message, and since when it applies; None where it doesn't resolve by itself."""
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
    """Leave the job unchanged, report the error in its status, and retry later: the plugin may need an object that is
    created later, or a new release."""
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
    """The time; the earliest possible time where it is malformed."""
    try:
        return parse_time(text) if text else _EPOCH
    except ValueError:
        return _EPOCH
