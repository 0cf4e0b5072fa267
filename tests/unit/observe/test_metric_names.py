"""The metrics follow Prometheus' conventions, and programs export their own."""

from __future__ import annotations

import re

import pytest

from tests.support.metric_names import PROCESS, exported, scrape_of_all
from vcbatch.observe.definitions import METRICS, SECTIONS, Metric
from vcbatch.observe.definitions.metric import PROGRAMS, Kind, Unit
from vcbatch.observe.metrics import PrometheusMeter

OBJECTS = {"queue", "queue_name", "job_id", "job_ns", "job_name", "job_namespace", "jobflow_namespace"}
SUFFIXES = {
    Unit.SECONDS: "_seconds",
    Unit.TIMESTAMP: "_timestamp_seconds",
    Unit.BYTES: "_bytes",
    Unit.RATIO: "_ratio",
}
UNITS = re.compile(
    r"_(seconds|timestamp|bytes|ratio|milli\w*|micro\w*|minutes|hours|percent|kilo\w*|mega\w*|count)(_|$)"
)
"""Parts of a name that say, or would say, in which unit it is."""
VOLCANO = {
    "volcano_action_scheduling_latency_milliseconds",
    "volcano_controller_job_to_pod_creation_latency_milliseconds",
    "volcano_e2e_job_scheduling_duration",
    "volcano_e2e_job_scheduling_last_time",
    "volcano_e2e_job_scheduling_latency_milliseconds",
    "volcano_e2e_job_scheduling_start_time",
    "volcano_e2e_scheduling_latency_milliseconds",
    "volcano_eviction_transactions_total",
    "volcano_job_completed_phase_count",
    "volcano_job_failed_phase_count",
    "volcano_job_retry_counts",
    "volcano_job_share",
    "volcano_jobflow_failed_phase_count",
    "volcano_jobflow_succeed_phase_count",
    "volcano_open_session_duration_milliseconds",
    "volcano_plugin_scheduling_latency_milliseconds",
    "volcano_pod_preemption_victims",
    "volcano_queue_overused",
    "volcano_queue_share",
    "volcano_queue_weight",
    "volcano_schedule_attempts_total",
    "volcano_scheduling_stage_duration_milliseconds",
    "volcano_task_scheduling_latency_milliseconds",
    "volcano_total_preemption_attempts",
    "volcano_unschedule_job_count",
    "volcano_unschedule_task_count",
    *(
        f"volcano_queue_{quantity}_{resource}"
        for quantity in ("allocated", "request", "deserved", "capacity", "real_capacity", "inqueue")
        for resource in ("milli_cpu", "memory_bytes", "scalar_resources")
    ),
    *(f"volcano_queue_pod_group_{p}_count" for p in ("pending", "inqueue", "running", "unknown", "completed")),
}
"""Volcano's names, which dashboards of its users query."""

ALL = list(METRICS.values())
OURS = [metric for metric in ALL if not metric.volcano]
SCRAPE = scrape_of_all()


def lines(kind: str) -> dict[str, str]:
    """The HELP or TYPE lines of a scrape: the text after the name."""
    return dict(re.findall(rf"^# {kind} (\w+) (.*)$", SCRAPE, re.MULTILINE))


def test_every_definition_has_a_name_of_its_own() -> None:
    assert len(METRICS) == len(exported()) == sum(len(section.metrics) for section in SECTIONS)


def test_a_scrape_has_each_metric_with_its_type_and_help_text() -> None:
    assert lines("TYPE") == {
        **{name: metric.kind.value for name, metric in exported().items()},
        **{name: "counter" if name.endswith("_total") else "gauge" for name in PROCESS},
    }
    helps = lines("HELP")
    assert {name: helps[name] for name in exported()} == {name: metric.help for name, metric in exported().items()}


def test_every_sample_is_of_a_defined_metric_and_none_is_a_creation_time() -> None:
    names = set(re.findall(r"^(\w+)", SCRAPE, re.MULTILINE))
    assert names == PROCESS | {name for metric in ALL for name in metric.series}
    assert not [name for name in names if name.endswith("_created")]


def test_every_metric_has_our_prefix_or_is_one_of_volcanos() -> None:
    assert {metric.name for metric in ALL if metric.volcano} == VOLCANO
    assert all(name.startswith(("vcbatch_", "process_")) for name in lines("TYPE").keys() - VOLCANO)


@pytest.mark.parametrize("name", sorted(lines("TYPE")))
def test_a_help_text_is_a_sentence(name: str) -> None:
    text = lines("HELP")[name]
    assert re.match(r"[A-Z1]", text) and text.endswith("."), text


@pytest.mark.parametrize("metric", ALL, ids=lambda metric: metric.name)
def test_labels_are_snake_case(metric: Metric) -> None:
    foreign = {"OnSession"} if metric.name == "volcano_plugin_scheduling_latency_milliseconds" else set()
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", label) for label in set(metric.labels) - foreign)
    assert all(len(values) == len(metric.labels) for values in metric.known)


@pytest.mark.parametrize("metric", OURS, ids=lambda metric: metric.name)
def test_a_name_follows_the_conventions(metric: Metric) -> None:
    assert re.fullmatch(r"vcbatch_[a-z]+(_[a-z]+)*", metric.name)
    assert metric.name.endswith("_total") == (metric.kind is Kind.COUNTER)
    if metric.unit is Unit.NONE:
        assert not UNITS.search(metric.name)
    else:
        assert metric.name.removesuffix("_total").endswith(SUFFIXES[metric.unit])
        assert ("timestamp" in metric.name) == (metric.unit is Unit.TIMESTAMP)
    if metric.kind is Kind.HISTOGRAM:
        assert metric.unit in (Unit.SECONDS, Unit.BYTES)
        assert metric.unit is not Unit.SECONDS or metric.name.endswith("_duration_seconds")


@pytest.mark.parametrize("metric", OURS, ids=lambda metric: metric.name)
def test_labels_are_bounded_or_end_with_their_object(metric: Metric) -> None:
    assert not {label for label in metric.labels if re.search(r"uid|^(le|quantile|instance|job|pod|node)$", label)}
    assert metric.objects == bool(OBJECTS & set(metric.labels))


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_exports_its_own_metrics_from_the_start(program: str) -> None:
    text = PrometheusMeter(programs=(program,)).exposition()[1].decode()
    types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))
    expected = {
        metric.name: metric.kind.value
        for metric in ALL
        if program in metric.programs and metric.from_start and not (metric.exact and metric.labels)
    }
    ours = {name: kind for name, kind in types.items() if not name.startswith("process_")}
    assert ours == expected
    assert set(types) - set(ours) == PROCESS


def test_a_metric_of_another_program_appears_with_its_first_value() -> None:
    meter = PrometheusMeter(programs=("webhooks",))
    assert "vcbatch_last_cycle_timestamp_seconds" not in meter.exposition()[1].decode(), "0 would be an age of 56 years"
    meter.gauge("last_cycle_timestamp_seconds", 5)
    assert "vcbatch_last_cycle_timestamp_seconds 5.0" in meter.exposition()[1].decode()


def test_a_scheduler_without_a_configuration_yet_reports_no_failed_reload() -> None:
    meter = PrometheusMeter(programs=("scheduler",))
    assert "vcbatch_config_last_reload_successful" not in meter.exposition()[1].decode(), "0 would be an alert"
    meter.gauge("config_last_reload_successful", 1)
    assert "vcbatch_config_last_reload_successful 1.0" in meter.exposition()[1].decode()


def test_label_values_that_are_known_are_there_before_the_first_increment() -> None:
    text = PrometheusMeter(programs=("scheduler",)).exposition()[1].decode()
    assert 'vcbatch_binds_total{result="refused"} 0.0' in text
    assert "volcano_total_preemption_attempts 0.0" in text
