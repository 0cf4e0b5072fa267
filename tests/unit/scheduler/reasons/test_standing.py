"""Who is served before whom, and why: what people are told is the order that cycles begin with."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.scheduler.cluster import Cluster
from vcbatch.scheduler import DEFAULT_POLICY, Policy, parse_policy
from vcbatch.scheduler.framework.plugin import Plugin
from vcbatch.scheduler.framework.policy import Extensions
from vcbatch.scheduler.reasons.standing import QueueStanding, Standings, StandingsError, why_before


def _policy(*plugins: str, actions: str = "enqueue, allocate, backfill") -> Policy:
    named = "".join(f"  - {plugin}\n" for plugin in plugins)
    return parse_policy(f'actions: "{actions}"\ntiers:\n- plugins:\n{named}')


def _cluster(*plugins: str, cpu: str = "8") -> Cluster:
    cluster = Cluster(_policy(*plugins))
    cluster.node("n1", cpu=cpu)
    return cluster


def _reported(cluster: Cluster) -> Standings:
    return cluster.scheduler.standings(cluster.now)


def _queues(reported: Standings) -> list[str]:
    return [queue.name for queue in reported.queues]


def _queue(reported: Standings, name: str) -> QueueStanding:
    return next(queue for queue in reported.queues if queue.name == name)


def test_queues_are_told_by_share_of_what_they_deserve() -> None:
    cluster = _cluster("name: gang", "name: proportion")
    for name in ("full", "part"):
        cluster.queue(name, weight=1)
    cluster.gang("f", 4, queue="full")
    cluster.gang("p", 1, queue="part")
    cluster.cycle()
    cluster.gang("f2", 9, queue="full")
    cluster.gang("p2", 9, queue="part")
    reported = _reported(cluster)
    assert _queues(reported) == ["part", "full"]
    part, full = reported.queues
    assert [(one.resource, one.held, one.deserved) for one in part.parts] == [
        ("cpu", "1", "4"),
        ("memory", "1Gi", "10Gi"),
    ]
    assert (part.share, full.share) == (0.25, 1.0)
    assert why_before(part, full) == "share 0.25 below 1.00"
    assert why_before(full, part) == ""
    assert part.closed == ""


def test_a_queue_that_has_all_it_deserves_is_told_to_get_nothing() -> None:
    cluster = Cluster(_policy("name: gang", "name: proportion"))
    cluster.node("n1", memory="8Gi", pods="8")
    cluster.queue("full", weight=1)
    cluster.queue("other", weight=1)
    cluster.gang("f", 4, queue="full")
    cluster.gang("o", 1, queue="other")
    cluster.cycle()
    cluster.gang("f2", 16, queue="full")
    cluster.gang("o2", 16, queue="other")
    full = _queue(_reported(cluster), "full")
    assert full.closed == (
        "queue full has all it deserves: cpu allocated 4 of 4 deserved, memory allocated 4Gi of 4Gi deserved"
    )
    assert (_queue(_reported(cluster), "other").closed, full.share) == ("", 1.0)


def test_a_queue_that_is_closed_is_told_to_get_nothing() -> None:
    cluster = _cluster("name: proportion")
    cluster.queue("shut", state="Closed")
    cluster.gang("s", 1, queue="shut")
    assert _queue(_reported(cluster), "shut").closed == "queue shut is Closed"


def test_the_priority_of_a_queue_goes_before_its_share() -> None:
    cluster = _cluster("name: proportion")
    cluster.queue("high", weight=1, priority=10)
    cluster.queue("low", weight=1)
    cluster.gang("h", 4, queue="high")
    cluster.cycle()
    cluster.gang("h2", 1, queue="high")
    cluster.gang("l", 1, queue="low")
    reported = _reported(cluster)
    assert _queues(reported) == ["high", "low"]
    assert why_before(*reported.queues) == "priority 10 above 0"


def test_queues_below_others_are_told_by_the_shares_of_those_above() -> None:
    cluster = Cluster(_policy("{name: capacity, enableHierarchy: true}"))
    cluster.node("n1", cpu="16")
    deserved: dict[str, Any] = {"deserved": {"cpu": "8", "memory": "16Gi"}}
    cluster.queue("root")
    for parent in ("eng", "ops"):
        cluster.queue(parent, parent="root", **deserved)
    for name, parent in (("dev", "eng"), ("test", "eng"), ("night", "ops")):
        cluster.queue(name, parent=parent, deserved={"cpu": "4"})
    cluster.gang("d", 4, queue="dev")
    cluster.gang("n", 2, queue="night")
    cluster.cycle()
    for gang, queue in (("d2", "dev"), ("t", "test"), ("n2", "night")):
        cluster.gang(gang, 9, queue=queue)
    reported = _reported(cluster)
    assert _queues(reported) == ["night", "test", "dev"]
    night, test, dev = reported.queues
    assert why_before(night, test) == "share 0.25 of ops below 0.50 of eng"
    assert why_before(test, dev) == "share 0.00 below 1.00"
    assert (dev.share, [(one.held, one.deserved) for one in dev.parts]) == (1.0, [("4", "4")])


def test_gangs_are_told_by_the_plugin_that_decides() -> None:
    cluster = _cluster("name: priority", "name: gang", "name: drf")
    cluster.priority("high", 100)
    cluster.gang("growing", 9, minimum=2)
    cluster.cycle()
    cluster.gang("first", 9, priorityClassName="high")
    cluster.gang("second", 9)
    cluster.gang("third", 9)
    (queue,) = _reported(cluster).queues
    assert [gang.name for gang in queue.gangs] == ["first", "second", "third", "growing"]
    first, second, third, growing = queue.gangs
    assert why_before(first, second) == "priority 100 above 0"
    assert why_before(second, third) == "older"
    assert why_before(third, growing) == "below its minimum"
    assert queue.share is None, "nobody says what queues deserve"


def test_dominant_shares_are_told_with_the_digits_that_tell_them_apart() -> None:
    cluster = Cluster(_policy("name: drf"))
    cluster.node("n1", cpu="1000", memory="1000Gi", pods="1000")
    cluster.gang("more", 3, minimum=1)
    cluster.gang("less", 3, minimum=1)
    for pod, node in (("more-worker-0", "n1"), ("more-worker-1", "n1"), ("less-worker-0", "n1")):
        cluster.change(pod, node=node, phase="Running")
    (queue,) = _reported(cluster).queues
    assert [gang.name for gang in queue.gangs] == ["less", "more"]
    assert why_before(*queue.gangs) == "share of the cluster 0.001 below 0.002"


def test_what_was_used_before_is_told_as_uncertain() -> None:
    cluster = _cluster("name: fair-share", "name: gang")
    cluster.gang("g", 20)
    reported = _reported(cluster)
    assert reported.remembering == ["fair-share"]
    assert _reported(_cluster("name: drf")).remembering == []


def test_switches_of_the_policy_count() -> None:
    cluster = _cluster("{name: proportion, enableQueueOrder: false}", "{name: priority, enableJobOrder: false}")
    cluster.priority("high", 100)
    cluster.queue("a", weight=1, priority=10)
    cluster.gang("old", 9, queue="default")
    cluster.gang("high", 9, queue="default", priorityClassName="high")
    cluster.gang("a", 9, queue="a")
    reported = _reported(cluster)
    assert [queue.numbers for queue in reported.queues] == [[], []]
    assert [gang.name for gang in _queue(reported, "default").gangs] == ["old", "high"]


@pytest.mark.parametrize("plugin", ["proportion", "capacity", "{name: drf, enableHierarchy: true}", "fair-share"])
def test_what_is_told_is_the_order_of_the_cycle(plugin: str) -> None:
    """Who is placed first is the first of the first queue."""
    cluster = _cluster(plugin if plugin.startswith("{") else f"name: {plugin}", "name: gang", "name: predicates")
    for name, weight in (("a", 1), ("b", 3)):
        cluster.queue(name, weight=weight, deserved={"cpu": "4"}, capability={"cpu": "8"})
        cluster.gang(f"{name}-runs", weight, queue=name)
    cluster.cycle()
    for name in ("a", "b"):
        cluster.gang(f"{name}-old", 1, queue=name)
        cluster.gang(f"{name}-new", 1, queue=name)
    first = _reported(cluster).queues[0].gangs[0]
    assert cluster.cycle().binds[0].name.rpartition("-worker")[0] == first.name


def test_being_asked_decides_nothing() -> None:
    asked, other = Cluster(parse_policy(DEFAULT_POLICY)), Cluster(parse_policy(DEFAULT_POLICY))
    for cluster in (asked, other):
        cluster.node("n1")
        cluster.gang("g", 4)
        cluster.gang("wide", 8)
    _reported(asked)
    assert asked.cycle().binds == other.cycle().binds
    assert _reported(asked) == _reported(asked)


class Broken(Plugin):
    def queue_key(self, queue: Any) -> tuple[float, ...]:
        raise RuntimeError("no idea")


class Untold(Plugin):
    def queue_key(self, queue: Any) -> tuple[float, ...]:
        return (float(len(queue.name)),)


def _own(plugin: type[Plugin]) -> Cluster:
    text = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: mine\n'
    cluster = Cluster(parse_policy(text, extensions=Extensions(plugins={"mine": plugin}, actions={})))
    cluster.node("n1")
    cluster.queue("much-longer")
    cluster.gang("g", 1)
    cluster.gang("h", 1, queue="much-longer")
    return cluster


def test_a_plugin_of_the_users_own_needs_no_words() -> None:
    assert why_before(*_reported(_own(Untold)).queues) == "the number of plugin mine 7.00 below 11.00"


def test_a_plugin_that_fails_is_named() -> None:
    with pytest.raises(StandingsError, match=r"mine\.queue_key .* raised RuntimeError: no idea"):
        _reported(_own(Broken))
