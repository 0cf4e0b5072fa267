"""Metrics in Prometheus' form: base units, bounded labels, one registry per program.

prometheus-client is imported when the first registry is made, so that a program that exposes nothing doesn't pay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

_MILLISECONDS = tuple(round(5000 ** (step / 19), 3) for step in range(20))
"""From 1 to 5000 in 20 steps, as Volcano has them."""
_VOLCANO = "volcano"


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """One metric: its help text and its labels."""

    help: str
    labels: tuple[str, ...] = ()
    prefix: str = ""
    """In place of the program's own: `volcano` for what dashboards of Volcano show."""
    buckets: tuple[float, ...] = _SECONDS


COUNTERS: dict[str, Described] = {
    "relists": Described(help="Lists made because a watch could not be continued.", labels=("resource",)),
    "audit_repairs": Described(help="Objects that a list found different from the cache.", labels=("resource",)),
    "kopf_restarts": Described(help="Times that kopf was started again after it ended."),
    "looks": Described(help="Looks at objects by controllers.", labels=("controller", "result")),
    "binds": Described(help="Pods bound, or refused for good.", labels=("result",)),
    "policy_reloads": Described(help="Scheduling policies that came into force, or were refused.", labels=("result",)),
    "plugin_failures": Described(help="Errors raised by plugins and actions of the user's own.", labels=("plugin",)),
    "cycles": Described(help="Scheduling cycles."),
    "evictions": Described(help="Pods that were evicted for others.", labels=("action",)),
    "eviction_transactions": Described(help="Evictions, as Volcano counts them.", labels=("action",), prefix=_VOLCANO),
    "total_preemption_attempts": Described(help="Cycles with evictions.", prefix=_VOLCANO),
    "scheduler_writes_failed": Described(help="Writes of the scheduler that were refused.", labels=("kind",)),
    "admission_reviews": Described(help="Admission reviews answered.", labels=("path", "allowed")),
    "admission_turned_away": Described(help="Admission requests that were not looked at.", labels=("code",)),
    "events_dropped": Described(help="Events that were not sent: too many, or refused.", labels=("component",)),
}
GAUGES: dict[str, Described] = {
    "queue_depth": Described(help="Objects that wait to be looked at.", labels=("controller",)),
    "leading": Described(help="1 while this replica holds the Lease."),
    "policy_refused": Described(help="1 while the policy that is in force isn't the one that was given last."),
    "gangs_waiting": Described(
        help="Gangs that wait, by queue and by the reason that their PodGroup gives.", labels=("queue", "reason")
    ),
    "unschedule_job_count": Described(help="Gangs that wait.", prefix=_VOLCANO),
    "pod_preemption_victims": Described(help="Pods that the last cycle evicted.", prefix=_VOLCANO),
    "queue_allocated_milli_cpu": Described(help="CPU that a queue holds.", labels=("queue_name",), prefix=_VOLCANO),
    "queue_allocated_memory_bytes": Described(
        help="Memory that a queue holds.", labels=("queue_name",), prefix=_VOLCANO
    ),
    "queue_allocated_scalar_resources": Described(
        help="What else a queue holds, in thousandths.", labels=("queue_name", "resource"), prefix=_VOLCANO
    ),
    "queue_share": Described(
        help="The largest part that a queue holds of anything it deserves.", labels=("queue_name",), prefix=_VOLCANO
    ),
    "queue_overused": Described(
        help="1 where a queue holds more than it deserves.", labels=("queue_name",), prefix=_VOLCANO
    ),
    "certificate_remaining_seconds": Described(
        help="Until the serving certificate (leaf) and who signed it (authority) expire.", labels=("certificate",)
    ),
}
DURATIONS: dict[str, Described] = {
    "cycle_seconds": Described(help="Duration of a scheduling cycle."),
    "e2e_scheduling_latency_milliseconds": Described(
        help="Duration of a scheduling cycle.", prefix=_VOLCANO, buckets=_MILLISECONDS
    ),
    "admission_seconds": Described(help="Time to answer an admission review.", labels=("path",)),
    "look_seconds": Described(help="Duration of a look, writes included.", labels=("controller",)),
}


class PrometheusMeter:
    """Counts into a registry of its own. A name or a label that isn't described above is a programming error."""

    def __init__(self, *, prefix: str = "vcbatch") -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self.registry = CollectorRegistry()
        self._metrics: dict[str, Any] = {}

        def common(described: Described) -> dict[str, Any]:
            return {"namespace": described.prefix or prefix, "registry": self.registry}

        for name, described in COUNTERS.items():
            self._metrics[name] = Counter(name, described.help, described.labels, **common(described))
        for name, described in GAUGES.items():
            self._metrics[name] = Gauge(name, described.help, described.labels, **common(described))
        for name, described in DURATIONS.items():
            self._metrics[name] = Histogram(
                name, described.help, described.labels, buckets=described.buckets, **common(described)
            )

    def count(self, name: str, value: float = 1.0, **labels: str) -> None:
        self._labelled(name, labels).inc(value)

    def gauge(self, name: str, value: float, **labels: str) -> None:
        self._labelled(name, labels).set(value)

    def seconds(self, name: str, value: float, **labels: str) -> None:
        self._labelled(name, labels).observe(value)

    def _labelled(self, name: str, labels: dict[str, str]) -> Any:
        metric = self._metrics[name]
        return metric.labels(**labels) if labels else metric

    def exposition(self) -> tuple[str, bytes]:
        """Content type and text of a scrape."""
        from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

        return CONTENT_TYPE_LATEST, generate_latest(self.registry)
