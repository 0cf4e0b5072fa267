"""How far jobs and gangs are is told in spans below their trace context, each once, and only of those that have one."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.spans import Spans
from tests.support.virtual_time import VirtualClock, run
from vcbatch.api.meta import ObjectMeta
from vcbatch.api.names import TRACEPARENT
from vcbatch.api.scheduling import PodGroupSpecView, PodGroupStatusView, PodGroupView
from vcbatch.api.timestamps import format_time
from vcbatch.api.traceparent import traceparent_of
from vcbatch.runtime.caches.cache import Cache
from vcbatch.runtime.tracing.cycles import CycleSpans
from vcbatch.runtime.tracing.gangs import GangSpans
from vcbatch.runtime.tracing.jobs import JobSpans
from vcbatch.scheduler.framework.laps import NoLaps, Part
from vcbatch.scheduler.model.figures import Figures, GangFigures
from vcbatch.scheduler.model.result import Bind, CycleResult

CONTEXT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize(
    ("text", "good"),
    [
        (CONTEXT, True),
        (CONTEXT[:-2] + "00", True),
        ("01" + CONTEXT[2:], False),
        (CONTEXT.upper(), False),
        (CONTEXT + "-more", False),
        ("00-" + "0" * 32 + CONTEXT[35:], False),
        (CONTEXT[:36] + "0" * 16 + "-01", False),
        ("", False),
        (7, False),
    ],
)
def test_a_context_is_read_as_w3c_says(text: Any, good: bool) -> None:
    assert traceparent_of({TRACEPARENT: text}) == (text if good else "")
    assert traceparent_of(None) == traceparent_of({}) == ""


def job(version: int, *, context: str = CONTEXT, created: datetime, **status: int) -> dict[str, Any]:
    tasks = [{"name": "a", "replicas": 3}, {"name": "b"}]
    return {
        "metadata": {
            "name": "j",
            "namespace": "ns",
            "uid": "u",
            "resourceVersion": str(version),
            "creationTimestamp": format_time(created),
            "annotations": {TRACEPARENT: context} if context else {},
        },
        "spec": {"tasks": tasks},
        "status": status,
    }


async def _reported_of(*statuses: dict[str, int], context: str = CONTEXT) -> tuple[Spans, list[datetime]]:
    """The spans of a job that gets these statuses, ten seconds apart, and when it got them."""
    clock, spans, jobs = VirtualClock(), Spans(), Cache[dict[str, Any]]()
    listening = JobSpans(spans, jobs, clock=clock)
    jobs.listen(listening._seen)
    created, times = clock.now().replace(microsecond=0), []
    for version, status in enumerate([{}, *statuses], start=1):
        jobs.observe("MODIFIED", job(version, context=context, created=created, **status))
        times.append(clock.now())
        await clock.sleep(10)
    return spans, times


def test_a_job_tells_when_its_pods_exist_and_when_all_run() -> None:
    async def main() -> None:
        spans, times = await _reported_of({"pending": 2}, {"pending": 4}, {"pending": 1, "running": 3}, {"running": 4})
        assert [(span.name, span.parent) for span in spans.reported] == [
            ("pods.created", CONTEXT),
            ("gang.running", CONTEXT),
        ]
        created, running = spans.reported
        assert created.end == times[2]
        assert created.begin == times[0].replace(microsecond=0)
        assert (running.begin, running.end) == (times[2], times[4])
        assert running.attributes["vcbatch.job.name"] == "j"
        assert running.attributes["vcbatch.pods"] == 4

    run(main())


def test_a_job_that_is_quick_or_changes_later_tells_each_once() -> None:
    async def main() -> None:
        spans, _ = await _reported_of({"running": 1, "succeeded": 3}, {"succeeded": 4}, {"succeeded": 4})
        assert [span.name for span in spans.reported] == ["pods.created", "gang.running"]

    run(main())


def test_a_job_that_is_restarted_tells_of_its_next_attempt() -> None:
    async def main() -> None:
        spans, _ = await _reported_of({"running": 4}, {"terminating": 1}, {}, {"running": 4})
        assert [span.name for span in spans.reported] == ["pods.created", "gang.running"] * 2

    run(main())


def test_of_a_job_without_a_context_nothing_is_told() -> None:
    async def main() -> None:
        for context in ("", "garbage"):
            spans, _ = await _reported_of({"pending": 4}, {"running": 4}, context=context)
            assert spans.reported == []

    run(main())


def group(version: int, phase: str, *, context: str = CONTEXT, created: datetime) -> PodGroupView:
    metadata = ObjectMeta(
        name="g",
        namespace="ns",
        uid="g-uid",
        resource_version=str(version),
        creation_timestamp=format_time(created),
        annotations={TRACEPARENT: context} if context else None,
    )
    spec = PodGroupSpecView(min_member=4, queue="q")
    return PodGroupView(metadata=metadata, spec=spec, status=PodGroupStatusView(phase=phase))


def figures(**more: Any) -> Figures:
    gang = {"lacking": 0, "placed": 4, "binding": 4, "ready": True, "tried": False, **more}
    return Figures(gangs=[GangFigures(uid="g-uid", namespace="ns", name="g", queue="q", creation="", **gang)])


def test_a_gang_tells_when_it_is_admitted_and_placed() -> None:
    async def main() -> None:
        clock, spans, groups = VirtualClock(), Spans(), Cache[PodGroupView](model=PodGroupView)
        gangs = GangSpans(spans, groups, clock=clock)
        gangs.watch()
        created = clock.now().replace(microsecond=0)
        groups.observe("ADDED", group(1, "Pending", created=created))
        await clock.sleep(5)
        groups.observe("MODIFIED", group(2, "Inqueue", created=created))
        enqueued = clock.now()
        gangs.of(figures(ready=False, placed=0, binding=0, lacking=4))
        await clock.sleep(5)
        gangs.of(figures())
        gangs.of(figures())
        groups.observe("MODIFIED", group(3, "Running", created=created))
        assert [(span.name, span.parent, span.begin, span.end) for span in spans.reported] == [
            ("gang.enqueued", CONTEXT, created, enqueued),
            ("gang.scheduled", CONTEXT, enqueued, clock.now()),
        ]
        assert spans.reported[1].attributes["vcbatch.queue"] == "q"

    run(main())


def test_of_gangs_without_a_context_or_from_before_nothing_is_told() -> None:
    async def main() -> None:
        clock, spans, groups = VirtualClock(), Spans(), Cache[PodGroupView](model=PodGroupView)
        gangs = GangSpans(spans, groups, clock=clock)
        gangs.watch()
        groups.observe("ADDED", group(1, "Inqueue", created=clock.now()))
        gangs.of(figures())
        groups.observe("MODIFIED", group(2, "Pending", context="", created=clock.now()))
        groups.observe("MODIFIED", group(3, "Inqueue", context="", created=clock.now()))
        gangs.of(figures())
        assert spans.reported == []

    run(main())


def test_a_cycle_has_its_actions_below_it() -> None:
    async def main() -> None:
        clock, spans = VirtualClock(), Spans()
        cycle = CycleSpans(spans, NoLaps(), clock=clock)
        for _ in range(2):
            cycle.start()
            await clock.sleep(1)
            cycle.lap(Part.OPENED)
            await clock.sleep(2)
            cycle.lap(Part.ACTION, "allocate")
            await clock.sleep(1)
            bind = Bind(namespace="ns", name="p", uid="p", node="n")
            cycle.of(CycleResult(binds=[bind], figures=figures(tried=True, lacking=3)))
        assert [span.name for span in spans.reported] == ["scheduler.cycle", "action.allocate"] * 2
        whole, action = spans.reported[2:]
        assert action.parent == whole.context
        assert (whole.end - whole.begin, action.end - action.begin) == (timedelta(seconds=4), timedelta(seconds=2))
        assert whole.attributes == {
            "vcbatch.gangs": 1, "vcbatch.pods": 4, "vcbatch.binds": 1, "vcbatch.evictions": 0,
        }  # fmt: skip

    run(main())


def test_the_actions_of_a_cycle_that_isnt_sampled_are_left_out() -> None:
    async def main() -> None:
        spans = Spans(sampled=False)
        cycle = CycleSpans(spans, NoLaps(), clock=VirtualClock())
        cycle.start()
        cycle.lap(Part.ACTION, "allocate")
        cycle.of(CycleResult())
        assert spans.reported == []

    run(main())
