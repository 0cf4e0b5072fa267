"""What jobs, flows, CronJobs and queues cost their controllers, in CPU time of one core."""

from __future__ import annotations

from tests.perf import bench_cronjobs, bench_jobflows, bench_jobs, bench_queue_counts, bench_retention, bench_small_jobs
from tests.perf.figure import Figure


def jobs() -> list[Figure]:
    """What jobs cost their controller, in CPU time of one core."""
    measured = bench_jobs.run()
    machine, large, many = measured["decisions"], measured["large"], measured["many"]
    passes = {name: f"{large[name] / large['bare_pass_s']:,.2g} bare passes" for name in ("changed_s", "unchanged_s")}
    return [
        *(
            Figure(
                what=f"the job machine, {machine['pods']:,.0f} pods, {what}",
                value=machine[key],
                unit="decisions/s",
                more_is_better=True,
                yardstick=f"each {1 / machine[key] / machine['bare_pass_s']:,.0f} bare passes over the pods",
            )
            for key, what in (
                ("quiet_per_s", "nothing to do"),
                ("restart_per_s", "a pod failed, RestartJob"),
                ("start_per_s", "all to be created"),
            )
        ),
        Figure(
            what=f"a look at an unchanged job of {large['pods']:,.0f} pods ({large['writes']:.0f} API writes)",
            value=large["unchanged_s"] * 1000,
            unit="ms",
            aim=5.0,
            yardstick=passes["unchanged_s"],
        ),
        Figure(
            what="the same after one pod changed",
            value=large["changed_s"] * 1000,
            unit="ms",
            yardstick=passes["changed_s"],
        ),
        Figure(
            what=f"memory of a resident job of {many['pods'] / many['jobs']:.0f} pods, of {many['jobs']:,.0f}",
            value=many["bytes"] / 1024,
            unit="KiB",
        ),
        Figure(
            what=f"a look at each after a restart ({many['writes']:.0f} API writes)", value=many["all_s"], unit="s CPU"
        ),
    ]


def small_jobs(count: int = 2000) -> list[Figure]:
    """What jobs of one pod cost all controllers until they run."""
    cost = bench_small_jobs.small_jobs(count)
    return [
        Figure(
            what=f"each of {count:,} jobs of one pod, until it runs ({cost.writes:.2g} API writes)",
            value=cost.cpu * 1000,
            unit="ms CPU",
            yardstick=f"{cost.cpu / cost.baseline:.0f} times making its objects and changing them",
        )
    ]


def cron_jobs(count: int = 5000) -> list[Figure]:
    """What CronJobs cost that are due in the same minute."""
    rush = bench_cronjobs.rush(count)
    return [
        Figure(
            what=f"{count:,} CronJobs due at once: the last job is made",
            value=rush.seconds,
            unit="s",
            aim=30.0,
            yardstick=f"virtual time, {bench_cronjobs.LATENCY_SECONDS * 1000:.0f} ms a write; {rush.twice} made twice",
        ),
        Figure(what=f"each of them ({rush.writes:.2g} API writes)", value=rush.cpu * 1000, unit="ms CPU"),
    ]


def job_flows(count: int = 10_000) -> list[Figure]:
    """What so many jobs of flows cost, in flows of ten and in large ones."""
    figures: list[Figure] = []
    for nodes, jobs in ((10, count), (100, count // 10)):
        cost = bench_jobflows.flows(jobs // nodes, nodes=nodes)
        figures.append(
            Figure(
                what=f"each of {jobs:,} jobs in flows of {nodes} ({cost.writes:.2g} API writes)",
                value=cost.cpu * 1000,
                unit="ms CPU",
                yardstick=f"{cost.cpu / cost.baseline:.0f} times making and changing it; {cost.twice} made twice",
            )
        )
    held = bench_jobflows.memory(10, nodes=100)
    return [*figures, Figure(what="memory of each beside the stored objects", value=held / 1024, unit="KiB")]


def queue_counts(queues: int = 1000, pod_groups: int = 20_000) -> list[Figure]:
    """What it costs to count the PodGroups of a tree of queues."""
    cost = bench_queue_counts.counted(queues, pod_groups=pod_groups)
    writes = f"{cost.writes:,} writes in all, {cost.later_writes:,} when {cost.few} change later"
    return [
        Figure(
            what=f"each of {pod_groups:,} PodGroups that start in {queues:,} queues", value=cost.cpu * 1e6,
            unit="µs CPU", yardstick=writes,
        ),
        Figure(what="the counts are true after", value=cost.seconds, unit="s", yardstick="virtual time"),
        Figure(
            what="memory for each queue", value=bench_queue_counts.memory(queues // 10, pod_groups=pod_groups // 10),
            unit="B",
        ),
    ]  # fmt: skip


def retention(jobs: int = 10_000) -> list[Figure]:
    """What it costs to delete finished jobs whose time is over at the same moment."""
    cost = bench_retention.retention(jobs)
    return [
        Figure(
            what=f"each of {jobs:,} finished jobs that go at once ({cost.writes:.2g} API writes)", value=cost.cpu * 1e3,
            unit="ms CPU", yardstick=f"the last one {cost.late:.1f} s late in virtual time, {cost.early} too early",
        ),
        Figure(what="memory for each that waits for it", value=bench_retention.memory(jobs // 10), unit="B"),
    ]  # fmt: skip
