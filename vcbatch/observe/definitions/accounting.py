"""The metrics of the accounting records."""

from __future__ import annotations

from typing import Final

from vcbatch.observe.definitions.metric import BY_CONTROLLERS, Kind, Metric, Section

ACCOUNTING_METRICS: Final = Section(
    title="Accounting",
    metrics=(
        Metric(
            name="vcbatch_accounting_records_total",
            kind=Kind.COUNTER,
            programs=BY_CONTROLLERS,
            help="Accounting records of attempts that were written.",
        ),
        Metric(
            name="vcbatch_accounting_records_dropped_total",
            kind=Kind.COUNTER,
            programs=BY_CONTROLLERS,
            help="Accounting records that were dropped because too many waited for the store.",
        ),
        Metric(
            name="vcbatch_accounting_queue_depth",
            kind=Kind.GAUGE,
            programs=BY_CONTROLLERS,
            help="Accounting records that wait to be written.",
        ),
        Metric(
            name="vcbatch_accounting_store_failing",
            kind=Kind.GAUGE,
            programs=BY_CONTROLLERS,
            help="1 while accounting records can't be stored, else 0.",
        ),
    ),
)
