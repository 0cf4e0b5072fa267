"""How fast gangs get their places, in CPU time of one core."""

from __future__ import annotations

from tests.perf import bench_large, bench_queues, bench_relief, bench_scheduler, bench_topology
from tests.perf.figure import Figure


def placement() -> list[Figure]:
    """One cycle over everything, and one in which nothing has changed."""
    alike = bench_scheduler.run()
    mixed = bench_scheduler.run(kinds=4)
    share = alike["idle_cycle_s"] / alike["cycle_s"]
    what = f"{alike['gangs']:,} gangs of {alike['pods'] // alike['gangs']} pods on {alike['nodes']:,} nodes"
    return [
        Figure(
            what=f"placement of {what}",
            value=alike["pods_per_s"],
            unit="pods/s",
            aim=100_000,
            more_is_better=True,
            yardstick=f"all {alike['placed']:,} placed; a cycle without news costs {share:.1%} of it",
        ),
        Figure(what="the same with four kinds of pods", value=mixed["pods_per_s"], unit="pods/s"),
    ]


def large_cluster() -> list[Figure]:
    """Ten thousand pods that come at once to 5,000 nodes with 140,000 pods, each case in a process of its own."""
    figures: list[Figure] = []
    for policy in bench_large.POLICIES:
        cases = {shape: bench_large.alone(shape, policy) for shape in bench_large.SHAPES}
        figures += [
            Figure(
                what=f"10,000 pods as {shape}, {policy}",
                value=case["pods_per_s"],
                unit="pods/s",
                aim=bench_large.AIMS.get(shape),
                more_is_better=True,
                yardstick=f"{case['placed']:,} placed in {case['cycle_s'] * 1000:.0f} ms, "
                f"{case['first_load_s'] * 1000:.0f} ms in a process that had placed none",
            )
            for shape, case in cases.items()
        ]
        most = {key: max(case[key] for case in cases.values()) for key in ("told_s", "first_cycle_s", "memory_mb")}
        idle = max(case["idle_s"] for case in cases.values())
        changed = min(case["changed_s"] for case in cases.values())
        figures += [
            Figure(what="a cycle in which nothing changed, at most", value=idle * 1000, unit="ms", aim=5),
            Figure(what="a cycle after 1 % of the pods ended, the least", value=changed * 1000, unit="ms", aim=20),
            Figure(
                what="from nothing to the first cycle", value=most["told_s"] + most["first_cycle_s"], unit="s", aim=60
            ),
            Figure(what="memory, at most", value=most["memory_mb"], unit="MB", aim=1500),
        ]
    return figures


def queues() -> list[Figure]:
    """A tree of 200 queues with quotas."""
    placing, admitting = bench_queues.placing(), bench_queues.admitting()
    return [
        Figure(
            what=f"placement of {placing['placed']:,} pods of {placing['queues']} queues in a tree",
            value=placing["pods_per_s"],
            unit="pods/s",
            more_is_better=True,
        ),
        Figure(what="a cycle in which nothing changed", value=placing["idle_cycle_s"] * 1000, unit="ms", aim=5),
        Figure(what="a cycle with one more gang", value=placing["one_more_gang_s"] * 1000, unit="ms", aim=20),
        Figure(
            what=f"admission of {admitting['gangs']:,} gangs, {admitting['admitted']:,} of them admitted",
            value=admitting["gangs"] / admitting["first_cycle_s"],
            unit="gangs/s",
            more_is_better=True,
            yardstick="each is told why it waits",
        ),
        Figure(what="one more of them", value=admitting["one_more_gang_s"] * 1000, unit="ms", aim=100),
    ]


def relief() -> list[Figure]:
    """One gang of 64 for which others are evicted, 5,000 full nodes, 140,000 bound pods."""
    measured = [bench_scheduler.relieve(action, request=request) for action, request in bench_relief.ACTIONS.items()]
    return [
        Figure(
            what=f"{each['action']} for a gang of {each['promised']}, the whole cycle",
            value=each["cycle_s"] * 1000,
            unit="ms",
            aim=100,
            yardstick=f"{each['evicted']} of {each['bound']:,} pods evicted",
        )
        for each in measured
    ]


def topology() -> list[Figure]:
    """Gangs of 64 that must each be within a rack, 5,000 nodes in 313 racks, in CPU time of one core."""
    free = bench_topology.run(aware=False)
    racked = bench_topology.run(topology={"mode": "hard", "highestTierAllowed": 1})
    return [
        Figure(
            what=f"placement of {racked['gangs']} gangs of {racked['size']}, each within a rack",
            value=racked["pods_per_s"],
            unit="pods/s",
            more_is_better=True,
            yardstick=f"{free['pods_per_s']:,} anywhere",
        ),
        Figure(what="the tree of racks made again", value=racked["tree_made_again_s"] * 1000, unit="ms"),
    ]
