"""Resource quantities and shares of queues, under the names that dashboards for Volcano use."""

from __future__ import annotations

from vcbatch.runtime.metrics.meter import Meter
from vcbatch.scheduler.model.figures import Amount, Figures, QueueAmount, QueueShare

_OF_A_QUEUE = ("queue_share", "queue_overused", "queue_weight")


class QueueMetrics:
    """Exports what changed. The series of a queue are removed with the queue."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._shown: dict[str, dict[Amount, frozenset[str]]] = {}
        """Queue -> quantity -> the exported resources."""

    def of(self, figures: Figures) -> None:
        """Export one cycle."""
        for queue in figures.queues_gone:
            self._forget(queue)
        gone = frozenset(figures.queues_gone)
        for amount in figures.amounts:
            if amount.queue not in gone:
                self._amount(amount)
        for share in figures.shares:
            if share.queue not in gone:
                self._share(share)
        for queue, weight in figures.weights:
            self._meter.gauge("queue_weight", weight, queue_name=queue)

    def _amount(self, reported: QueueAmount) -> None:
        shown = self._shown.setdefault(reported.queue, {})
        for resource in shown.get(reported.amount, frozenset()) - reported.resources.keys():
            name, labels = _metric(reported.amount, resource, reported.queue)
            self._meter.forget(name, **labels)
        for resource, value in reported.resources.items():
            name, labels = _metric(reported.amount, resource, reported.queue)
            self._meter.gauge(name, value, **labels)
        shown[reported.amount] = frozenset(reported.resources)

    def _share(self, reported: QueueShare) -> None:
        if reported.share is None:
            self._meter.forget("queue_share", queue_name=reported.queue)
            self._meter.forget("queue_overused", queue_name=reported.queue)
            return
        self._meter.gauge("queue_share", reported.share, queue_name=reported.queue)
        self._meter.gauge("queue_overused", float(reported.overused), queue_name=reported.queue)

    def _forget(self, queue: str) -> None:
        for amount, resources in self._shown.pop(queue, {}).items():
            for resource in resources:
                name, labels = _metric(amount, resource, queue)
                self._meter.forget(name, **labels)
        for name in _OF_A_QUEUE:
            self._meter.forget(name, queue_name=queue)


def _metric(amount: Amount, resource: str, queue: str) -> tuple[str, dict[str, str]]:
    match resource:
        case "cpu":
            return f"queue_{amount}_milli_cpu", {"queue_name": queue}
        case "memory":
            return f"queue_{amount}_memory_bytes", {"queue_name": queue}
        case _:
            return f"queue_{amount}_scalar_resources", {"queue_name": queue, "resource": resource}
