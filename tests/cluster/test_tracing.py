"""With `--tracing` a job's life is one trace, from its admission until all its pods run; without it there is none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cluster.components import CONTROLLERS, SCHEDULER, WEBHOOKS, Components
from tests.cluster.controlplane import ControlPlane, Json
from tests.cluster.gangs import gang, submit, wait_phase
from tests.cluster.processes import wait_until
from vcbatch.api.names import TRACEPARENT
from vcbatch.api.resources import JOBS, PODGROUPS

pytest.importorskip("opentelemetry.proto")

from tests.cluster.collector import Collector, collecting

PARTS = (WEBHOOKS, CONTROLLERS, SCHEDULER)
LIFE = ("job.admitted", "gang.enqueued", "pods.created", "gang.scheduled", "gang.running")
"""In the order in which they end."""


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> ControlPlane:
    control_plane.add_nodes(2)
    return control_plane


@contextmanager
def working(plane: ControlPlane, *flags: str, endpoint: str = "") -> Iterator[Components]:
    """One of each program, with these flags."""
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_BSP_SCHEDULE_DELAY": "200"} if endpoint else {}
    with Components(plane) as components:
        started = {part: components.start(part, *flags, env=env) for part in PARTS}
        for component in started.values():
            component.wait_ready()
        components.install_admission(started[WEBHOOKS])
        yield components


def run(plane: ControlPlane, name: str, **annotations: str) -> Json:
    """The job, once it runs."""
    body = gang(name, 3, command="sleep 600")
    body["metadata"]["annotations"] = annotations
    submit(plane, body)
    wait_phase(plane, name, "Running")
    found: Json = plane.call("GET", JOBS.path(namespace="default", name=name))
    return found


def context_of(obj: Json) -> str:
    return str((obj["metadata"].get("annotations") or {}).get(TRACEPARENT, ""))


def group_of(plane: ControlPlane, job: Json) -> Json:
    name = f"{job['metadata']['name']}-{job['metadata']['uid']}"
    found: Json = plane.call("GET", PODGROUPS.path(namespace="default", name=name))
    return found


def whole(collector: Collector, trace: str) -> bool:
    return set(LIFE) <= collector.of_trace(trace).keys()


def test_a_jobs_life_is_one_trace_across_all_programs(plane: ControlPlane) -> None:
    with collecting() as collector, working(plane, "--tracing", endpoint=collector.url):
        job = run(plane, "traced")
        context = context_of(job)
        _, trace, root, _ = context.split("-")
        assert context_of(group_of(plane, job)) == context
        wait_until("the trace is whole", lambda: whole(collector, trace))
        spans = collector.of_trace(trace)
        assert (spans["job"].id, spans["job"].parent, spans["job"].service) == (root, "", "vcbatch-webhooks")
        assert {spans[name].parent for name in LIFE} == {root}
        services = {name: spans[name].service for name in LIFE}
        assert services == {
            "job.admitted": "vcbatch-webhooks",
            "gang.enqueued": "vcbatch-scheduler",
            "pods.created": "vcbatch-controllers",
            "gang.scheduled": "vcbatch-scheduler",
            "gang.running": "vcbatch-controllers",
        }
        assert all(spans[name].begin <= spans[name].end for name in LIFE)
        assert spans["gang.enqueued"].end <= spans["gang.scheduled"].end <= spans["gang.running"].end
        assert {spans[name].attributes["vcbatch.job.name"] for name in LIFE} == {"traced"}
        assert {spans[name].attributes["vcbatch.pods"] for name in LIFE[1:]} == {3}
        assert_work_is_reported(collector)


def assert_work_is_reported(collector: Collector) -> None:
    """Cycles with their actions, reconciles and reviews."""
    cycles = collector.named("scheduler.cycle", "vcbatch-scheduler")
    assert sum(cycle.attributes["vcbatch.binds"] for cycle in cycles) == 3
    actions = collector.named("action.allocate", "vcbatch-scheduler")
    assert {action.parent for action in actions} <= {cycle.id for cycle in cycles}
    assert actions
    reconciles = collector.named("reconcile", "vcbatch-controllers")
    assert "job-controller" in {span.attributes["vcbatch.controller"] for span in reconciles}
    reviews = collector.named("admission.review", "vcbatch-webhooks")
    assert {"/jobs/mutate", "/jobs/validate"} <= {span.attributes["vcbatch.path"] for span in reviews}


def test_the_trace_of_who_submits_goes_on(plane: ControlPlane) -> None:
    theirs = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with collecting() as collector, working(plane, "--tracing", endpoint=collector.url):
        job = run(plane, "traced-on", **{TRACEPARENT: theirs})
        _, trace, root, _ = context_of(job).split("-")
        assert trace == theirs[3:35]
        wait_until("the trace is whole", lambda: whole(collector, trace))
        spans = collector.of_trace(trace)
        assert (spans["job"].id, spans["job"].parent) == (root, "b7ad6b7169203331")


def test_a_collector_that_is_away_costs_only_its_spans(plane: ControlPlane) -> None:
    with collecting() as collector:
        gone = collector.url
    with working(plane, "--tracing", endpoint=gone) as components:
        assert context_of(run(plane, "lonely"))
        for component in components.running:
            component.program.check()
            assert component.ready()
            assert component.program.stop() == 0


def test_without_tracing_nothing_is_written(plane: ControlPlane) -> None:
    with collecting() as collector, working(plane, endpoint=collector.url):
        job = run(plane, "untraced")
        assert not context_of(job)
        assert not context_of(group_of(plane, job))
    assert collector.spans == []
