"""Dominant shares of gangs: who may be evicted for whom, and which queue may have what back."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.cluster import Cluster
from tests.unit.scheduler.scoring import plugin_of, policy, requests, session, task_of
from vcbatch.scheduler import Policy, parse_policy
from vcbatch.scheduler.plugins.drf import DominantResourceFairness, HierarchicalFairness

TOTAL = 32 * 2**30
"""Bytes of memory of the cluster; its cpu is never what counts most."""


def holding(made: Cluster, name: str, *amounts: int, queue: str = "default") -> list[str]:
    """A gang that runs and holds so many bytes with each of its pods."""
    made.gang(name, len(amounts), queue=queue, minimum=1, pod={"nodeName": "n"})
    for index, amount in enumerate(amounts):
        requests(made, f"{name}-worker-{index}", memory=str(amount))
    made.run(name)
    return [f"{name}-worker-{index}" for index in range(len(amounts))]


def cluster(given: Policy) -> Cluster:
    made = Cluster(given)
    made.node("n", cpu="32", memory=str(TOTAL), pods="1000")
    return made


def victims(made: Cluster, actor: str, candidates: list[str]) -> list[str]:
    opened = session(made, policy("drf"))
    plugin = plugin_of(opened, DominantResourceFairness)
    found = plugin.preemptable(task_of(opened, actor), [task_of(opened, name) for name in candidates])
    return [task.name for task in found]


def test_a_gang_loses_pods_until_its_share_would_be_smaller_than_the_other_s() -> None:
    """The other has an eighth and would have a quarter; these have a half each, in pods of an eighth."""
    made = cluster(policy("drf"))
    pods = [*holding(made, "one", *[TOTAL // 8] * 4), *holding(made, "two", *[TOTAL // 16] * 2)]
    holding(made, "poor", TOTAL // 8)
    made.pod("poor", 1)
    requests(made, "poor-worker-1", memory=str(TOTAL // 8))
    assert victims(made, "poor-worker-1", pods) == ["one-worker-0", "one-worker-1"]


def test_what_a_gang_has_left_goes_by_the_pods_that_went_before() -> None:
    """A large pod that stays counts as gone for those after it, as in Volcano."""
    made = cluster(policy("drf"))
    pods = holding(made, "old", TOTAL // 16, TOTAL // 2, TOTAL // 16)
    made.gang("new", 1)
    requests(made, "new-worker-0", memory=str(TOTAL // 8))
    assert victims(made, "new-worker-0", pods) == ["old-worker-0"]
    assert victims(made, "new-worker-0", [pods[0], pods[2]]) == ["old-worker-0", "old-worker-2"]


PREEMPTING = """
actions: "allocate, preempt"
tiers:
- plugins: [{name: gang, enablePreemptable: false}, {name: drf}]
- plugins: [{name: predicates}]
"""


@pytest.mark.parametrize(("bytes_more", "gone"), [(30_000, ["old-worker-1"]), (40_000, [])])
def test_shares_that_differ_by_a_millionth_are_equal(bytes_more: int, gone: list[str]) -> None:
    """A millionth of the memory is 34,360 bytes."""
    made = cluster(parse_policy(PREEMPTING))
    holding(made, "old", TOTAL // 4, TOTAL // 2)
    holding(made, "small", TOTAL // 4)
    made.gang("new", 1)
    requests(made, "new-worker-0", memory=str(TOTAL // 4 + bytes_more))
    assert sorted(eviction.name for eviction in made.cycle().evictions) == gone


def test_what_a_gang_gets_in_the_cycle_counts_for_its_share() -> None:
    """It holds 9 sixteenths, gets 4 more, and keeps 7 without the pod of 6: more than the 5 of the other."""
    part = TOTAL // 16
    made = cluster(parse_policy(PREEMPTING))
    holding(made, "old", 3 * part, 6 * part)
    holding(made, "small", 3 * part)
    made.pod("old", 2)
    requests(made, "old-worker-2", memory=str(4 * part))
    made.gang("new", 1)
    requests(made, "new-worker-0", memory=str(5 * part))
    result = made.cycle()
    assert [bind.name for bind in result.binds] == ["old-worker-2"]
    assert [eviction.name for eviction in result.evictions] == ["old-worker-1"]


# With a hierarchy ----------------------------------------------------------------------------------------------------


def queue_victims(made: Cluster, actor: str, candidates: list[str]) -> list[str]:
    opened = session(made, policy("drf", None, enableHierarchy=True))
    plugin = plugin_of(opened, HierarchicalFairness)
    found = plugin.reclaimable(task_of(opened, actor), [task_of(opened, name) for name in candidates])
    return [task.name for task in found]


def wanting(made: Cluster, gang: str, amount: int) -> None:
    """The gang has two pods that wait for so much memory, so that it still wants something once the first has it."""
    for index in (1, 2):
        made.pod(gang, index)
        requests(made, f"{gang}-worker-{index}", memory=str(amount))


@pytest.mark.parametrize(("parts", "gone"), [(4, ["old-worker-0"]), (3, []), (2, [])])
def test_a_queue_has_back_only_what_leaves_it_the_poorer_one(parts: int, gone: list[str]) -> None:
    """The other would still have three, two or one eighth, and this one two."""
    made = cluster(policy("drf"))
    made.queue("rich")
    made.queue("poor")
    pods = holding(made, "old", *[TOTAL // 8] * parts, queue="rich")
    holding(made, "mine", TOTAL // 8, queue="poor")
    wanting(made, "mine", TOTAL // 8)
    assert queue_victims(made, "mine-worker-1", pods[:1]) == gone


def test_each_candidate_is_looked_at_as_if_it_went_alone() -> None:
    made = cluster(policy("drf"))
    made.queue("rich")
    made.queue("poor")
    pods = holding(made, "old", *[TOTAL // 8] * 4, queue="rich")
    made.gang("new", 0, minimum=1, queue="poor")
    wanting(made, "new", TOTAL // 4)
    assert queue_victims(made, "new-worker-1", pods) == pods


def test_a_queue_that_then_wants_nothing_more_has_nothing_back() -> None:
    """As in Volcano: who still wants something is served before who doesn't."""
    made = cluster(policy("drf"))
    made.queue("rich")
    made.queue("poor")
    pods = holding(made, "old", *[TOTAL // 8] * 4, queue="rich")
    made.gang("new", 1, queue="poor")
    requests(made, "new-worker-0", memory=str(TOTAL // 8))
    assert queue_victims(made, "new-worker-0", pods) == []


def test_queues_of_one_group_compare_by_their_own_shares_and_a_queue_of_its_own_by_the_group_s() -> None:
    made = cluster(policy("drf"))
    for name, path, weights in (
        ("dev", "root/eng/dev", "1/2/1"),
        ("prod", "root/eng/prod", "1/2/4"),
        ("sci", "root/sci", "1/1"),
    ):
        made.queue(name, annotations={"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights})
    dev = holding(made, "dev", *[TOTAL // 16] * 4, queue="dev")
    sci = holding(made, "sci", *[TOTAL // 16] * 3, queue="sci")
    made.gang("new", 0, minimum=1, queue="prod")
    wanting(made, "new", TOTAL // 16)
    # Within the group 1/16 by weight 4 against 3/16 by weight 1; the group has 4/16 by weight 2, sci 2/16 by weight 1.
    assert queue_victims(made, "new-worker-1", [dev[0]]) == [dev[0]]
    assert queue_victims(made, "new-worker-1", [sci[0]]) == []


def test_a_queue_has_nothing_back_from_those_below_it() -> None:
    """They are the same as far as both paths go."""
    made = cluster(policy("drf"))
    for name, path in (("eng", "root/eng"), ("dev", "root/eng/dev")):
        made.queue(name, annotations={"volcano.sh/hierarchy": path})
    pods = holding(made, "old", *[TOTAL // 8] * 4, queue="dev")
    made.gang("new", 0, minimum=1, queue="eng")
    wanting(made, "new", TOTAL // 8)
    assert queue_victims(made, "new-worker-1", pods) == []


@pytest.mark.parametrize("idle", [False, True])
def test_a_queue_without_gangs_says_nothing_about_its_group(idle: bool) -> None:
    """All of the group have what they ask for, so the queue beside it is served first, whatever its share."""
    made = cluster(policy("drf"))
    for name, path in (("dev", "root/eng/dev"), ("sci", "root/sci"), ("idle", "root/eng/idle")):
        if idle or name != "idle":
            made.queue(name, annotations={"volcano.sh/hierarchy": path})
    holding(made, "old", *[TOTAL // 8] * 2, queue="dev")
    holding(made, "mine", 3 * TOTAL // 8, queue="sci")
    wanting(made, "mine", TOTAL // 8)
    opened = session(made, policy("drf", None, enableHierarchy=True))
    keys = {
        name: plugin_of(opened, HierarchicalFairness).queue_key(opened.state.queues[name]) for name in ("dev", "sci")
    }
    assert keys == {"dev": (1.0, 0.25, 1.0, 0.25), "sci": (0.0, 0.375)}
