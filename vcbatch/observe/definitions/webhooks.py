"""The metrics of the admission webhooks."""

from __future__ import annotations

from typing import Final

from vcbatch.observe.definitions.metric import BY_WEBHOOKS, Kind, Metric, Section, Unit

WEBHOOK_METRICS: Final = Section(
    title="Admission",
    metrics=(
        Metric(
            name="vcbatch_admission_reviews_total",
            kind=Kind.COUNTER,
            labels=("path", "allowed"),
            programs=BY_WEBHOOKS,
            help="Answered admission reviews.",
        ),
        Metric(
            name="vcbatch_admission_failures_total",
            kind=Kind.COUNTER,
            labels=("path", "reason"),
            programs=BY_WEBHOOKS,
            help="Admission reviews that were answered without a decision, by reason: timeout, unavailable (lookups of "
            "the rules failed), error (a bug in vcbatch).",
        ),
        Metric(
            name="vcbatch_admission_throttled_total",
            kind=Kind.COUNTER,
            labels=("code",),
            known=(("429",),),
            programs=BY_WEBHOOKS,
            help="Admission requests that were rejected before they were read, because too many were in progress.",
        ),
        Metric(
            name="vcbatch_admission_duration_seconds",
            kind=Kind.HISTOGRAM,
            unit=Unit.SECONDS,
            labels=("path",),
            programs=BY_WEBHOOKS,
            help="Time to answer an admission review.",
        ),
        Metric(
            name="vcbatch_certificate_expiration_timestamp_seconds",
            kind=Kind.GAUGE,
            unit=Unit.TIMESTAMP,
            labels=("certificate",),
            programs=BY_WEBHOOKS,
            help="Time at which the serving certificate (leaf) and its CA (authority) expire.",
        ),
    ),
)
