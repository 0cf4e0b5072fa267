"""All metrics: their names, types, labels, units and help texts, and which programs export them.

The reference page `docs/metrics.md` is generated from these definitions. Metrics with the prefix `volcano_` have the
names, labels, units and buckets of Volcano's scheduler and controllers, so that its dashboards show them
(https://github.com/volcano-sh/volcano, pkg/scheduler/metrics, pkg/controllers/metrics).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from vcbatch.observe.definitions.accounting import ACCOUNTING_METRICS
from vcbatch.observe.definitions.controllers import CONTROLLER_METRICS
from vcbatch.observe.definitions.gangs import GANG_METRICS
from vcbatch.observe.definitions.jobs import JOB_METRICS
from vcbatch.observe.definitions.metric import Metric, Section
from vcbatch.observe.definitions.programs import PROGRAM_METRICS
from vcbatch.observe.definitions.queues import QUEUE_METRICS
from vcbatch.observe.definitions.scheduler import SCHEDULER_METRICS
from vcbatch.observe.definitions.webhooks import WEBHOOK_METRICS

SECTIONS: Final[tuple[Section, ...]] = (
    PROGRAM_METRICS,
    SCHEDULER_METRICS,
    QUEUE_METRICS,
    GANG_METRICS,
    JOB_METRICS,
    CONTROLLER_METRICS,
    ACCOUNTING_METRICS,
    WEBHOOK_METRICS,
)
"""In the order of the reference page."""
METRICS: Final = MappingProxyType({metric.short: metric for section in SECTIONS for metric in section.metrics})
"""By `Metric.short`."""

__all__ = ["METRICS", "SECTIONS", "Metric", "Section"]
