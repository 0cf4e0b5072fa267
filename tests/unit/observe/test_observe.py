"""Logs and metrics: machine-readable, bounded, and without secrets."""

from __future__ import annotations

import io
import itertools
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.metrics import Scrape
from vcbatch.observe import logging as logs
from vcbatch.observe.definitions import METRICS
from vcbatch.observe.metrics import PrometheusMeter


@pytest.fixture
def restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def written(restored: None, *, json_lines: bool, call) -> str:
    stream = io.StringIO()
    logs.configure(level=logging.INFO, json_lines=json_lines, stream=stream)
    call(logging.getLogger("test"))
    return stream.getvalue()


def test_a_line_is_json_with_the_extra_fields(restored: None):
    said = written(
        restored, json_lines=True, call=lambda log: log.info("bound %s", "p", extra={"uid": "u", "count": 3})
    )
    line = json.loads(said)
    assert (line["msg"], line["level"], line["logger"], line["uid"], line["count"]) == (
        "bound p",
        "info",
        "test",
        "u",
        3,
    )


@pytest.mark.parametrize("json_lines", [True, False])
@pytest.mark.parametrize(
    "secret",
    [
        "Authorization: Bearer abcdefghijklmnop",
        "token eyJhbGciOiJSUzI1NiIs.eyJpc3MiOiJrdWJlcm5ldGVz.c2lnbmF0dXJl",
        "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIO\n-----END EC PRIVATE KEY-----",
    ],
)
def test_what_looks_like_a_secret_is_left_out(restored: None, json_lines: bool, secret: str):
    def call(log: logging.Logger) -> None:
        try:
            raise RuntimeError(secret)
        except RuntimeError:
            log.exception("failed with %s", secret, extra={"detail": secret})

    said = written(restored, json_lines=json_lines, call=call)
    for part in ("abcdefghijklmnop", "eyJpc3MiOiJrdWJlcm5ldGVz", "MHcCAQEEIO"):
        assert part not in said
    assert "[redacted]" in said


def test_a_line_is_bounded(restored: None):
    said = written(restored, json_lines=True, call=lambda log: log.info("x" * 1_000_000))
    assert len(said) < 20_000


def test_a_file_is_bounded_and_keeps_the_part_before(restored: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(logs, "_FILE_BYTES", 10_000)
    logs.configure(file=tmp_path / "log", json_lines=True)
    for number in range(1000):
        logging.getLogger("test").info("line %d", number)
    logging.getLogger().handlers[0].close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "log.1"]
    assert all(path.stat().st_size <= 10_000 for path in tmp_path.iterdir())
    assert json.loads((tmp_path / "log").read_text().splitlines()[-1])["msg"] == "line 999"


def test_a_person_gets_one_short_line(restored: None):
    said = written(restored, json_lines=False, call=lambda log: log.warning("no room", extra={"uid": "u"}))
    assert said.endswith("warning  no room\n")
    assert "\x1b" not in said, "colours are for terminals"


def test_metrics_are_exposed_with_their_labels():
    meter = PrometheusMeter()
    meter.count("binds", 2, result="bound")
    meter.gauge("leader", 1)
    meter.duration("cycle_duration_seconds", 0.02)
    content_type, body = meter.exposition()
    text = body.decode()
    assert content_type.startswith("text/plain")
    assert 'vcbatch_binds_total{result="bound"} 2.0' in text
    assert "vcbatch_leader 1.0" in text
    assert 'vcbatch_cycle_duration_seconds_bucket{le="0.025"} 1.0' in text


def test_a_metric_or_label_that_isnt_described_is_an_error():
    meter = PrometheusMeter()
    with pytest.raises(KeyError):
        meter.count("surprises")
    with pytest.raises(ValueError, match="label names"):
        meter.count("binds", job="a-users-name")


def test_series_of_objects_end_with_them_and_survive_odd_names():
    meter = PrometheusMeter()
    odd = 'a "quoted" \\ name\nof two lines'
    for queue in ("q", odd):
        meter.gauge("queue_share", 0.5, queue_name=queue)
    meter.gauge("queue_share", 1.5, queue_name=odd)
    meter.count("job_retry_counts", job_id="ns/g")
    meter.count("job_retry_counts", 2, job_id="ns/g")
    scrape = Scrape(meter)
    assert scrape.value("volcano_queue_share", queue_name="q") == 0.5
    assert scrape.value("volcano_queue_share", queue_name=odd) == 1.5
    text = meter.exposition()[1].decode()
    assert 'volcano_job_retry_counts{job_id="ns/g"} 3.0\n' in text, "the very name that Volcano's dashboards ask for"
    assert "# TYPE volcano_job_retry_counts counter\n" in text
    meter.forget("queue_share", queue_name="q")
    meter.forget("queue_share", queue_name="never there")
    assert [x["queue_name"] for x in Scrape(meter).labels("volcano_queue_share")] == [odd]
    meter.forget("queue_share", queue_name=odd)
    assert "volcano_queue_share" not in meter.exposition()[1].decode(), "no series, no mention"


def test_series_of_objects_refuse_other_labels():
    meter = PrometheusMeter()
    with pytest.raises(ValueError, match=r"volcano_queue_share: the label names are \['queue_name'\], got \['queue'\]"):
        meter.gauge("queue_share", 1, queue="q")


def test_buckets_are_geometric_as_in_volcano():
    buckets = METRICS["task_scheduling_latency_milliseconds"].buckets
    assert (len(buckets), buckets[0], buckets[-1]) == (30, 50, 60_000)
    ratios = [after / before for before, after in itertools.pairwise(buckets)]
    assert max(ratios) - min(ratios) < 0.01
