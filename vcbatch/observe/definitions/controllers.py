"""The metrics of the controllers' work queues and caches."""

from __future__ import annotations

from typing import Final

from vcbatch.observe.definitions.metric import BY_CONTROLLERS, Kind, Metric, Section, Unit

CONTROLLER_METRICS: Final = Section(
    title="Controllers",
    metrics=(
        Metric(
            name="vcbatch_reconcile_total",
            kind=Kind.COUNTER,
            labels=("controller", "result"),
            programs=BY_CONTROLLERS,
            help="Reconciles by result: done, gone (the object was deleted), stale (a conflict, and the reconcile is "
            "retried), refused (rejected by the API server), error.",
        ),
        Metric(
            name="vcbatch_reconcile_duration_seconds",
            kind=Kind.HISTOGRAM,
            unit=Unit.SECONDS,
            labels=("controller",),
            programs=BY_CONTROLLERS,
            help="Duration of a reconcile, writes included.",
        ),
        Metric(
            name="vcbatch_workqueue_depth",
            kind=Kind.GAUGE,
            labels=("controller",),
            programs=BY_CONTROLLERS,
            help="Objects that wait to be reconciled.",
        ),
        Metric(
            name="vcbatch_workqueue_retries_total",
            kind=Kind.COUNTER,
            labels=("controller",),
            programs=BY_CONTROLLERS,
            help="Objects that were requeued after a reconcile whose result wasn't done.",
        ),
        Metric(
            name="vcbatch_cache_drift_repairs_total",
            kind=Kind.COUNTER,
            labels=("resource",),
            programs=BY_CONTROLLERS,
            help="Cached objects that differed from a list and were corrected.",
        ),
        Metric(
            name="vcbatch_kopf_restarts_total",
            kind=Kind.COUNTER,
            programs=BY_CONTROLLERS,
            help="Restarts of kopf, the library that watches the objects.",
        ),
    ),
)
