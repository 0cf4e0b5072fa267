"""In which order a queue's screen has those that wait, and what it says of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from vcbatch.cli.base.terminal import Terminal
from vcbatch.cli.resources.job.order import Order
from vcbatch.cli.resources.queue.describe import QueueScreen, described
from vcbatch.cli.resources.queue.usage import usage_of
from vcbatch.core.waiting import Gang

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def gang(name: str, *, age: int, priority: int = 0, phase: str = "Inqueue") -> Gang:
    return Gang(
        namespace="n", name=name, uid=name, queue="q", phase=phase, priority=priority, pods=1, asks={},
        created=NOW - timedelta(minutes=age),
    )  # fmt: skip


GANGS = (
    gang("young", age=1),
    gang("old", age=9),
    gang("urgent", age=2, priority=5),
    gang("runs", age=5, phase="Running"),
)


def screen(*gangs: Gang, order: Order) -> QueueScreen:
    queue = {"metadata": {"name": "q"}, "spec": {}}
    return QueueScreen(queue=queue, usage=usage_of([queue], []), gangs=gangs, order=order)


def said(*gangs: Gang, order: Order) -> str:
    text = described(screen(*gangs, order=order), Terminal(width=None, colour=False), now=NOW)
    _, found, rest = text.partition("Policy:" if order.policy else "Order:")
    return " ".join(rest.partition("\n\n")[0].split()) if found else ""


def test_without_a_policy_it_is_priority_and_then_age() -> None:
    order = Order(unknown="nobody says so")
    assert [one.name for one in screen(*GANGS, order=order).waiting] == ["urgent", "old", "young"]
    assert said(*GANGS, order=order) == "priority, then age (nobody says so)"


def test_who_the_policy_places_goes_first_in_its_order() -> None:
    """`old` is another scheduler's, or has no pod that waits for a place."""
    order = Order(policy="the policy in f", lease="n/l", places={"young": 0, "urgent": 1})
    assert [one.name for one in screen(*GANGS, order=order).waiting] == ["young", "urgent", "old"]
    assert said(*GANGS, order=order) == ("the policy in f (Lease n/l); jobs of other schedulers last")


def test_where_nobody_waits_there_is_no_order() -> None:
    assert said(GANGS[-1], order=Order()) == ""
