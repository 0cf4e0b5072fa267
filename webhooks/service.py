"""Answers reviews: bounded in time and in number, and the same way for every path."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from vcbatch.api import admission
from vcbatch.api.admission import Lookup, Operation, Request, Settings, User, Verdict
from vcbatch.api.defaults import json_patch
from vcbatch.api.model import MalformedObject
from vcbatch.api.resources import PODS, Resource
from vcbatch.interfaces.api import ApiError
from vcbatch.interfaces.clock import Clock
from vcbatch.runtime.metrics.meter import Meter
from vcbatch.runtime.tracing.tracer import Tracer
from webhooks.access import SubmitAccess, UpdateAccess
from webhooks.paths import Path
from webhooks.review import Answer, Asked
from webhooks.traces import with_trace

T = TypeVar("T")
log = logging.getLogger(__name__)

TIME_LIMIT: Final = 4.0
"""The time limit of one answer in seconds: one second less than the API server's timeout."""
_SMALL = 16 * 1024
"""The size in bytes of a review that is processed at once: more than a common job, and some 10 ms for the most
expensive one."""
_LARGE_AT_ONCE = 2
_UNAVAILABLE = 503


class ClusterView(Lookup, Protocol):
    """The view of the cluster for rules. `webhooks.world.World` is one."""

    complete: bool
    """Whether everything has been listed once."""
    version: int
    """A number that increases with every change of the view."""

    def needed(self, resource: Resource) -> bool:
        """Whether rules of that resource read any other object."""
        ...

    def changes_tree(self, request: Request) -> bool:
        """Whether the rules could allow the request because of a recent change that the caches don't have yet."""
        ...

    def lacks(self, request: Request) -> bool:
        """Whether a named object that a warning depends on is missing in the view."""
        ...

    async def refresh(self, request: Request) -> Lookup:
        """Read from the API server what the request's rules depend on, and return the resulting view. Raises
        `ApiError`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionService:
    """Answers requests."""

    world: ClusterView
    clock: Clock
    meter: Meter
    settings: Callable[[], Settings] = lambda: admission.DEFAULT_SETTINGS
    """The present settings; read once for each request."""
    access: SubmitAccess | None = None
    """The check that the user may submit to a queue; with None, every user may."""
    rights: UpdateAccess | None = None
    """The check that the user may update a queue that a Command targets; with None, every user may."""
    tracer: Tracer | None = None
    """Records reviews as spans, and starts the traces of new jobs."""

    async def answer(self, path: Path, asked: Asked, *, size: int) -> Answer:
        """Answer a request. `size`: bytes of the review, which decide whether it is processed in a thread, outside the
        event loop."""
        began, came = self.clock.monotonic(), self.clock.now()
        try:
            async with asyncio.timeout(TIME_LIMIT):
                answer = await self._answer(path, asked, size)
        except TimeoutError:
            log.warning("no response in time", extra=_attributes(path, asked))
            answer = _later(f"{path.url} found no answer within {TIME_LIMIT:g} s; try again")
            self._failed(path, "timeout")
        except Exception:
            log.exception("admission failed on an object", extra=_attributes(path, asked))
            answer = _broken(path)
            self._failed(path, "error")
        else:
            if answer.code == _UNAVAILABLE:
                self._failed(path, "unavailable")
        self.meter.duration("admission_duration_seconds", self.clock.monotonic() - began, path=path.url)
        self.meter.count("admission_reviews", path=path.url, allowed=str(answer.allowed).lower())
        if self.tracer is not None:
            attributes = {**_attributes(path, asked), "operation": asked.operation[:64], "allowed": answer.allowed}
            reported = {f"vcbatch.{key}": value for key, value in attributes.items()}
            self.tracer.record("admission.review", begin=came, end=self.clock.now(), attributes=reported)
        return answer

    def _failed(self, path: Path, reason: str) -> None:
        self.meter.count("admission_failures", path=path.url, reason=reason)

    async def _answer(self, path: Path, asked: Asked, size: int) -> Answer:
        resource = path.resource
        if (asked.resource.group, asked.resource.resource) != (resource.group, resource.plural):
            return Answer(allowed=False, message=f"{path.expectation}; got {asked.resource}"[:500])
        if asked.operation not in path.operations:
            return Answer(allowed=False, message=f"{path.expectation}; got {asked.operation}"[:500])
        if asked.sub_resource not in path.subresources:
            return Answer(allowed=True)  # status is written only by trusted clients
        if asked.object is None and asked.operation != Operation.DELETE:
            return Answer(allowed=False, message=f"{asked.operation} of {resource.kind} carries no object")
        request, settings = _request(path, asked), self.settings()
        if (self.world.needed(resource) or admission.resizes(request)) and not self.world.complete:
            return _later("admission is starting and doesn't know the queues of this cluster yet; try again")
        if path.mutates:
            return await _run(size, lambda: self._patch(request, settings))
        return await self._review(request, settings, size)

    def _patch(self, request: Request, settings: Settings) -> Answer:
        began = self.clock.now()
        try:
            filled = admission.mutate(request, self.world, settings)
        except MalformedObject as error:
            return Answer(allowed=False, message=str(error))
        warnings = tuple(admission.mutation_warnings(request, filled))
        if self.tracer is not None:
            filled = with_trace(self.tracer, request, filled, began=began, now=self.clock.now())
        return Answer(allowed=True, patch=json_patch(request.object, filled), warnings=warnings)

    async def _review(self, request: Request, settings: Settings, size: int) -> Answer:
        known = self.world.version
        verdict = await _run(size, lambda: admission.review(request, self.world, settings))
        doubtful = self.world.changes_tree(request) if verdict.allowed else self.world.needed(request.resource)
        if doubtful or self.world.lacks(request):
            try:
                read = await self.world.refresh(request)
            except ApiError as error:
                log.warning("a referenced object can't be read: %s", error, extra={"resource": request.resource.plural})
                if not doubtful:
                    return await self._let(request, settings, verdict)
                message = verdict.message or f"{request.resource.kind} {request.name} isn't judged yet"
                return _later(f"{message}; admission couldn't make sure, since {error}")
            if read is not self.world or self.world.version != known:  # or a watch reported it first
                verdict = await _run(size, lambda: admission.review(request, read, settings))
        return await self._let(request, settings, verdict) if verdict.allowed else _judged(verdict)

    async def _let(self, request: Request, settings: Settings, verdict: Verdict) -> Answer:
        """Allow what the rules allow, if the user may submit to the queues of the object, and update those that a
        Command targets."""
        access, rights = self.access, self.rights
        submitted = admission.submissions(request, settings, self.world) if access is not None else ()
        commanded = admission.commanded(request) if rights is not None else ()
        try:
            refusals = [await access.refusal(request, queue) for queue in submitted] if access else []
            refusals += [await rights.update_refusal(request, queue) for queue in commanded] if rights else []
        except ApiError as error:
            log.warning(
                "the permissions of the user can't be checked: %s", error, extra={"resource": request.resource.plural}
            )
            return _later(f"admission couldn't ask what {request.user.name} may do, since {error}")
        refused = "; ".join(filter(None, refusals))
        return Answer(allowed=False, message=refused, code=403, reason="Forbidden") if refused else _judged(verdict)


# A thread competes with the event loop. Many threads would starve it, so that small reviews waited for large ones.
_beside: Final = ThreadPoolExecutor(_LARGE_AT_ONCE, thread_name_prefix="large-review")


async def _run(size: int, work: Callable[[], T]) -> T:
    """Run `work` at once where it is short; else in a thread, so that other requests don't wait for it."""
    return work() if size <= _SMALL else await asyncio.get_running_loop().run_in_executor(_beside, work)


def _judged(verdict: Verdict) -> Answer:
    return Answer(allowed=verdict.allowed, message=verdict.message, errors=verdict.errors, warnings=verdict.warnings)


def _later(message: str) -> Answer:
    """A rejection that isn't about the object: clients get a 503, which they may retry."""
    return Answer(allowed=False, message=message, code=_UNAVAILABLE, reason="ServiceUnavailable")


def _broken(path: Path) -> Answer:
    """The answer to an internal error. Pods are allowed; our own kinds aren't stored without validation."""
    if path.resource == PODS:
        return Answer(allowed=True, warnings=[f"{path.url} failed on this pod, which is let through unjudged"])
    message = f"{path.url} failed on this object, which is a bug in vcbatch; its log has the details"
    return Answer(allowed=False, message=message, code=500, reason="InternalError")


def _request(path: Path, asked: Asked) -> Request:
    who = asked.user_info
    return Request(
        resource=path.resource,
        operation=Operation(asked.operation),
        subresource=asked.sub_resource,
        name=asked.name,
        namespace=asked.namespace,
        object=asked.object,
        old=asked.old_object,
        user=User(name=who.username, uid=who.uid, groups=who.groups, extra=who.extra),
    )


def _attributes(path: Path, asked: Asked) -> dict[str, str]:
    return {"path": path.url, "review": asked.uid[:64], "namespace": asked.namespace[:64], "object": asked.name[:253]}
