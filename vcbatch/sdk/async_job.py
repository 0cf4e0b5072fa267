"""One job on a server: its state, logs and events, and actions on it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import aclosing, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from vcbatch.api.bus import command_manifest
from vcbatch.api.loose import part
from vcbatch.api.phases import Action, JobPhase
from vcbatch.api.resources import COMMANDS, JOBS, PODGROUPS, PRIORITYCLASSES, QUEUES, Resource
from vcbatch.core.waiting import Surroundings, Waiting, waiting_of
from vcbatch.interfaces.api import ApiError, PatchKind
from vcbatch.runtime.named_by_pods import missing_of
from vcbatch.sdk.display import JobDisplay
from vcbatch.sdk.errors import JobEnded, JobFailed, NotFound, ServerError, WaitTimeout
from vcbatch.sdk.models.job import Job
from vcbatch.sdk.records import JobEvent, events_of, exit_codes_of

if TYPE_CHECKING:
    from vcbatch.sdk.logs import LogLine
    from vcbatch.sdk.session import Session

Json = dict[str, Any]
Phases = JobPhase | str | Collection[JobPhase | str]

_log = logging.getLogger("vcbatch")
FINISHED = frozenset(phase for phase in JobPhase if phase.finished)


class AsyncJobHandle(JobDisplay):
    """A job by name. No request is sent before a method is called; `last` is the last observed state of the job.

    Once the job has been read, the handle refers to the job with that UID: a later job of the same name is another one.
    Every method raises a `VcbatchError`, most often `NotFound`, `Forbidden` or `Unavailable`.
    """

    def __init__(self, session: Session, *, namespace: str, name: str, last: Job | None = None) -> None:
        self._session = session
        self.namespace = namespace
        self.name = name
        self.last = last

    async def get(self) -> Job:
        """Read the job and return it. Raises `NotFound` where it doesn't exist."""
        return self._seen(Job.from_manifest(await self._manifest()))

    async def _manifest(self) -> Json:
        with self._session.translated():
            api = await self._session.api()
            try:
                manifest = await api.get(JOBS, self.name, namespace=self.namespace)
            except ApiError as error:
                if error.not_found and error.details.get("name"):
                    raise self._absent() from error
                raise
        self._is_ours(Job.from_manifest(manifest))
        return manifest

    def _is_ours(self, job: Job) -> None:
        if self.last is not None and self.last.uid and job.uid != self.last.uid:
            raise self._gone("it was deleted, and another has its name")

    def _absent(self) -> NotFound:
        if self.last is not None:
            return self._gone("it was deleted")
        hint = "client.jobs() lists those of a namespace, client.jobs(all_namespaces=True) all of them."
        return NotFound(f"there is no job {self.namespace}/{self.name}", hint=hint, code=404, reason="NotFound")

    def _gone(self, why: str) -> NotFound:
        hint = "client.job(name) gives the one that has the name now."
        return NotFound(f"job {self.namespace}/{self.name} is no more: {why}", hint=hint, code=404, reason="NotFound")

    def _seen(self, job: Job) -> Job:
        self.last = job
        return job

    # Waiting

    async def watch(self) -> AsyncGenerator[Job, None]:
        """Yield the job, and then its new state after each change, without end. Raises `NotFound` once it is
        deleted."""
        from vcbatch.sdk.watching import changes

        with self._session.translated():
            api = await self._session.api()
            first = True
            batches = changes(
                api,
                JOBS,
                namespace=self.namespace,
                field_selector=f"metadata.name={self.name}",
                clock=self._session.clock,
                random=self._session.random,
                on_trouble=self._session.trouble,
            )
            async with aclosing(batches):
                async for batch in batches:
                    found = [change for change in batch if self._concerns(change.object)]
                    if first and not any(not change.deleted for change in found):
                        await self._manifest()  # raises the server's own error
                    first = False
                    for change in found:
                        if change.deleted:
                            raise self._gone("it was deleted")
                        yield self._seen(Job.from_manifest(change.object))

    def _concerns(self, manifest: Json) -> bool:
        job = Job.from_manifest(manifest)
        return job.name == self.name and (self.last is None or not self.last.uid or job.uid == self.last.uid)

    async def wait(
        self,
        *,
        until: Phases = FINISHED,
        timeout: float | None = None,
        on_change: Callable[[Job], None] | None = None,
    ) -> Job:
        """Wait until the job's phase is one of `until`, by default until it has ended in any way, and return the job.

        `timeout` is in seconds, None for no limit; `on_change` is called with the job after each change. Raises
        `JobEnded` (`JobFailed` for a failed job) when it has ended in another phase, and `WaitTimeout` with the reason
        why the job waits when the timeout is over. Raises `ValueError` where `until` has an unknown phase.
        """
        async with aclosing(self.states(until=until, timeout=timeout)) as jobs:
            async for job in jobs:
                if on_change is not None:
                    on_change(job)
        return self.last or await self.get()

    async def states(self, *, until: Phases = FINISHED, timeout: float | None = None) -> AsyncGenerator[Job, None]:
        """Yield the states that `wait` observes: the job, then its state after each change, up to the one waited for.

        Arguments and errors are those of `wait`.
        """
        wanted = wanted_phases(until)
        deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout
        async with aclosing(self.watch()) as jobs:
            while True:
                try:
                    # Not around the `yield`: the reader's time doesn't count.
                    async with asyncio.timeout_at(deadline):
                        job = await anext(jobs)
                        done = await self._reached(job, wanted)
                except TimeoutError:
                    raise await self._too_late(wanted, timeout or 0.0) from None
                yield job
                if done:
                    return

    async def _reached(self, job: Job, wanted: Collection[JobPhase]) -> bool:
        """Whether the job has reached one of these phases. Raises `JobEnded` where it never will."""
        if job.phase in wanted:
            return True
        if not job.phase.finished:
            return False
        if job.phase is JobPhase.COMPLETED:
            if JobPhase.RUNNING in wanted:
                return True  # it was Running between two observations
            raise JobEnded(f"job {self.namespace}/{self.name} is Completed, and won't be {_or(wanted)}", job=job)
        raise await self.failure(job)

    async def failure(self, job: Job) -> JobFailed:
        """Return the error for a failed job, with the exit codes of its pods."""
        with self._session.translated():
            codes = await exit_codes_of(await self._session.api(), job.to_manifest())
        status = job.status
        said = f"job {self.namespace}/{self.name} is {status.phase}{f': {status.why}' if status.why else ''}"
        if codes:
            said += f" (exit codes: {', '.join(f'{pod} {code}' for pod, code in sorted(codes.items())[:10])})"
        hint = "handle.logs() shows what its pods printed, handle.events() what happened to them."
        return JobFailed(said, hint=hint, job=job, exit_codes=codes)

    async def _too_late(self, wanted: Collection[JobPhase], seconds: float) -> WaitTimeout:
        job = self.last or await self.get()
        why = job.status.why
        with suppress(ServerError):
            why = (await self.explain()).message
        said = f"job {self.namespace}/{self.name} isn't {_or(wanted)} after {seconds:g} s: it is {job.phase}"
        if job.phase in (JobPhase.ABORTED, JobPhase.ABORTING):
            why, hint = "", "It is suspended: handle.resume() lets it go on, handle.cancel() ends it."
        elif job.phase is JobPhase.RUNNING:
            hint = "It goes on: handle.logs(follow=True) shows what it prints, handle.cancel() ends it."
        else:
            hint = "It goes on: handle.explain() says what it waits for, handle.cancel() ends it."
        return WaitTimeout(said, hint=why or hint, job=job)

    async def result(self, *, timeout: float | None = None) -> Any:
        """Wait for the end and return the result: the return value of a function's job, else the job itself.

        `timeout` is in seconds, None for no limit. Raises `JobFailed` unless the job is Completed, `TaskFailed` where
        the function raised, and `WaitTimeout`.
        """
        job = await self.wait(timeout=timeout)
        if job.phase is not JobPhase.COMPLETED:
            raise await self.failure(job)
        return job

    # Looking

    async def logs(
        self,
        *,
        follow: bool = False,
        tail: int | None = None,
        since: datetime | None = None,
        tasks: str | Collection[str] | None = None,
        indices: int | Collection[int] | None = None,
        containers: str | Collection[str] | None = None,
        attempt: int | None = None,
        previous: bool = False,
    ) -> AsyncGenerator[LogLine, None]:
        """Yield the log lines of all its pods: the present ones or, with `follow`, all until the job has ended.

        `tail` limits the present lines to the last ones of each container, `since` to those after a time. `tasks`,
        `indices` (of the pods of a task) and `containers` select; `attempt`, from 1, and `previous`, the attempt before
        the latest, need a server that keeps the logs of deleted pods, as the local one does. Raises `NotFound` for a
        name, index or attempt that the job doesn't have, and `ValueError` for a negative `tail`, and for an attempt
        with `follow`.
        """
        from vcbatch.sdk.log_choice import chosen
        from vcbatch.sdk.log_sources import NoSuchAttemptError
        from vcbatch.sdk.logs import follow_job

        if tail is not None and tail < 0:
            raise ValueError(f"tail={tail}: want 0 or more")
        if follow and (attempt is not None or previous):
            raise ValueError("follow: only the running attempt can be followed")
        parts = chosen(self._seen(Job.from_manifest(await self._manifest())), tasks, indices, containers)
        with self._session.translated():
            lines = follow_job(
                await self._session.api(),
                namespace=self.namespace,
                name=self.name,
                follow=follow,
                tail=tail,
                since=since,
                tasks=parts.tasks,
                indices=parts.indices,
                containers=parts.containers,
                attempt=attempt,
                previous=previous,
                on_trouble=self._session.trouble,
                on_silence=lambda sentence: _log.warning("%s", sentence),
                clock=self._session.clock,
                random=self._session.random,
            )
            try:
                async with aclosing(lines):
                    async for line in lines:
                        yield line
            except NoSuchAttemptError as error:
                hint = f"Attempts with logs: {', '.join(map(str, error.known)) or 'none'}."
                raise NotFound(f"job {self.namespace}/{self.name}: {error}", hint=hint) from error

    async def events(self) -> list[JobEvent]:
        """Return the events of the job, its PodGroup and its pods, oldest first."""
        manifest = await self._manifest()
        with self._session.translated():
            return await events_of(await self._session.api(), manifest)

    async def explain(self) -> Waiting:
        """Return why the job waits: the reason with its numbers, its position in the queue, the gangs ahead of it, and
        the gangs that use the resources it needs. Objects that you may not read are left out."""
        manifest = await self._manifest()
        self._seen(Job.from_manifest(manifest))
        groups = await self._readable(PODGROUPS) or await self._readable(PODGROUPS, namespace=self.namespace)
        queues = await self._readable(QUEUES)
        classes = await self._readable(PRIORITYCLASSES)
        priorities = {one["metadata"]["name"]: int(one.get("value") or 0) for one in classes}
        missing, tasks = await self._missing(manifest)
        around = Surroundings(
            pod_groups=groups, queues=queues, priorities=priorities, missing=missing, missing_for=tasks
        )
        return waiting_of(manifest, around)

    async def _missing(self, manifest: Json) -> tuple[Sequence[tuple[str, str]], Sequence[str]]:
        with self._session.translated():
            return await missing_of(await self._session.api(), manifest)

    async def _readable(self, resource: Resource, namespace: str | None = None) -> list[Json]:
        with self._session.translated():
            api = await self._session.api()
            try:
                return list((await api.list(resource, namespace=namespace)).items)
            except ApiError as error:
                if error.code not in (403, 404):
                    raise
                return []

    # Acting

    async def suspend(self) -> None:
        """Request the suspension of the job: its pods are deleted until it is resumed; succeeded ones are kept.

        `wait(until="Aborted")` waits for it. Raises `JobEnded` where the job has ended.
        """
        await self._ask(Action.ABORT_JOB)

    async def resume(self) -> None:
        """Request the resumption of a suspended job: indices that hadn't succeeded run again.

        Raises `JobEnded` where the job has ended.
        """
        await self._ask(Action.RESUME_JOB)

    async def restart(self) -> None:
        """Request a restart: all pods are deleted and recreated, which uses one retry.

        Raises `JobEnded` where the job has ended.
        """
        await self._ask(Action.RESTART_JOB)

    async def cancel(self) -> None:
        """Request the cancellation of the job: it becomes Terminated, and its record is kept until it is deleted.

        A job that has ended already is ignored.
        """
        with suppress(JobEnded):
            await self._ask(Action.TERMINATE_JOB)

    async def _ask(self, action: Action) -> None:
        manifest = await self._manifest()
        self._must_go_on(Job.from_manifest(manifest), action)
        uid = str(part(manifest, "metadata").get("uid"))
        command = command_manifest(JOBS, self.name, uid, action, namespace=self.namespace)
        with self._session.translated():
            api = await self._session.api()
            await api.create(COMMANDS, command, namespace=self.namespace)

    def _must_go_on(self, job: Job, deed: str) -> None:
        if job.phase.finished:
            hint = "To run it again, submit it under another name: client.submit(job.replace(name=...))."
            said = f"job {self.namespace}/{self.name} is {job.phase}: {deed} has no effect any more"
            raise JobEnded(said, hint=hint, job=self._seen(job))

    async def delete(self) -> None:
        """Delete the job with all its dependents. A missing job is ignored."""
        try:
            manifest = await self._manifest()
        except NotFound:
            return
        with self._session.translated():
            api = await self._session.api()
            try:
                await api.delete(
                    JOBS,
                    self.name,
                    namespace=self.namespace,
                    uid=manifest["metadata"]["uid"],
                    propagation="Background",
                )
            except ApiError as error:
                if not error.not_found and not error.conflict:  # a conflict: another job has its name
                    raise

    async def scale(self, task: str, replicas: int, *, min_available: int | None = None) -> Job:
        """Set the number of replicas of a task and, where given, the job's `min_available`; return the job.

        Surplus pods are deleted from the highest index on. Raises `NotFound` where the job has no such task,
        `AdmissionDenied` where the result is invalid, and `JobEnded` where the job has ended.
        """
        job = Job.from_manifest(await self._manifest())
        self._must_go_on(job, "scale")
        index = next((at for at, one in enumerate(job.tasks) if one.name == task), None)
        if index is None:
            known = ", ".join(one.name for one in job.tasks)
            raise NotFound(f"job {self.namespace}/{self.name} has no task {task!r}", hint=f"Its tasks: {known}.")
        path = f"/spec/tasks/{index}"
        patch: list[Json] = [
            {"op": "test", "path": "/metadata/uid", "value": job.uid},
            {"op": "test", "path": f"{path}/name", "value": task},
            {"op": "add", "path": f"{path}/replicas", "value": replicas},
        ]
        if min_available is not None:
            patch.append({"op": "add", "path": "/spec/minAvailable", "value": min_available})
            least = job.tasks[index].min_available
            if least is not None and least > replicas:
                patch.append({"op": "add", "path": f"{path}/minAvailable", "value": replicas})
        with self._session.translated():
            api = await self._session.api()
            written = await api.patch(JOBS, self.name, patch, namespace=self.namespace, kind=PatchKind.JSON)
        return self._seen(Job.from_manifest(written))


def wanted_phases(until: Phases) -> frozenset[JobPhase]:
    """The phases of these names in any capitalisation. Raises `ValueError` for an unknown phase."""
    known = {phase.casefold(): phase for phase in JobPhase}
    given = {until} if isinstance(until, str) else set(until)
    unknown = sorted(str(phase) for phase in given if str(phase).casefold() not in known)
    if unknown or not given:
        raise ValueError(f"until: {', '.join(unknown) or 'nothing'} is no phase of a job: want {', '.join(JobPhase)}")
    return frozenset(known[phase.casefold()] for phase in given)


def _or(phases: Collection[JobPhase]) -> str:
    return "finished" if phases == FINISHED else " or ".join(sorted(phases))
