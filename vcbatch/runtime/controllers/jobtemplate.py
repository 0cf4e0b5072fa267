"""The JobTemplate controller: lists the jobs that were created from each template in its status."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from vcbatch.api.jobtemplate import JobTemplate
from vcbatch.api.names import CREATED_BY_JOB_TEMPLATE
from vcbatch.core.jobtemplate import decide
from vcbatch.core.machine import Decision
from vcbatch.hosting.supervise import Part
from vcbatch.interfaces.api import Json
from vcbatch.interfaces.clock import Clock
from vcbatch.interfaces.random import Random
from vcbatch.runtime.apply import Applier
from vcbatch.runtime.caches.cache import Cache, Change, identity
from vcbatch.runtime.controllers.controller import Controller, ControllerConfig
from vcbatch.runtime.metrics.meter import Meter
from vcbatch.runtime.pacing.pace import Pace

_TEMPLATE = "JobTemplate that it was made from"
# A thousand flows of one template may start together; the list is written once for all jobs created in this time.
_LIST_SECONDS = 0.5
_LONGEST_LIST_SECONDS = 10.0


class JobTemplateController:
    """Reconciles a template when it or the number of its jobs changes."""

    def __init__(
        self,
        templates: Cache[Json],
        jobs: Cache[Json],
        applier: Applier,
        *,
        clock: Clock,
        random: Random,
        meter: Meter | None = None,
    ) -> None:
        self._templates = templates
        self._jobs = jobs
        self._clock = clock
        self._lists: Pace[str] = Pace(first=_LIST_SECONDS, limit=_LONGEST_LIST_SECONDS)
        self.controller = Controller(
            ControllerConfig(name="jobtemplate-controller", workers=2),
            self.decide,
            applier,
            clock=clock,
            random=random,
            meter=meter,
        )
        jobs.add_index(_TEMPLATE, _template_of)
        templates.listen(self._on_template)
        jobs.listen(self._on_job)

    def part(self) -> Part:
        return self.controller.part()

    def _on_template(self, change: Change[Json]) -> None:
        if change.old is None or change.new is None:
            self.controller.queue.add(identity(change.current).uid)

    def _on_job(self, change: Change[Json]) -> None:
        before, after = (set(_template_of(held)) if held is not None else set() for held in (change.old, change.new))
        for key in before ^ after:
            template = self._templates.by_key(key)
            if template is not None:
                uid = identity(template).uid
                self.controller.queue.add_after(uid, self._lists.wait(uid, now=self._clock.monotonic()))

    async def decide(self, uid: str, _: datetime) -> Decision | None:
        stored = self._templates.get(uid)
        if stored is None:
            return None
        jobs = self._jobs.indexed(_TEMPLATE, identity(stored).key)
        decision = decide(JobTemplate.parse(stored), [job["metadata"]["name"] for job in jobs])
        if decision.status is not None:
            self._lists.acted(uid, now=self._clock.monotonic())
        return decision


def _template_of(job: Json) -> Iterable[str]:
    """The key of the template that a job names in its annotation; the label may be truncated and is for users only."""
    metadata = job["metadata"]
    namespace = metadata.get("namespace", "")
    made_from = str((metadata.get("annotations") or {}).get(CREATED_BY_JOB_TEMPLATE, ""))
    if made_from.startswith(f"{namespace}."):
        yield f"{namespace}/{made_from.removeprefix(f'{namespace}.')}"
