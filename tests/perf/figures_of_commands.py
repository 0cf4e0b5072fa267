"""What commands cost who types them, and the SDK who imports it."""

from __future__ import annotations

from tests.perf import bench_cli, bench_logs
from tests.perf.figure import Figure


def commands(jobs: int = 10_000) -> list[Figure]:
    """What `vcctl job list` costs who types it, and the SDK who imports it."""
    start, long, imported = bench_cli.start_up(), bench_cli.long_list(jobs), bench_cli.sdk_import()
    return [
        Figure(
            what="`vcctl job list`", value=start.seconds * 1000, unit="ms", aim=150.0,
            yardstick=f"{start.cpu * 1000:.0f} ms CPU, {start.memory / 1e6:.0f} MB",
        ),
        Figure(
            what=f"`vcctl job list` of {jobs:,} jobs", value=long.seconds, unit="s", aim=1.5,
            yardstick=f"{long.cpu:.2f} s CPU",
        ),
        Figure(what="its memory", value=long.memory / 1e6, unit="MB", aim=300.0),
        Figure(
            what="`from vcbatch import Client, task` and Python", value=imported.cpu * 1000, unit="ms CPU", aim=200.0,
            yardstick=f"{imported.seconds * 1000:.0f} ms, {imported.memory / 1e6:.0f} MB",
        ),
    ]  # fmt: skip


def followed_log(pods: int = 100, per_second: int = 10_000) -> list[Figure]:
    """What `vcbatch job logs -f` of a large gang costs, and that nothing of it is lost."""
    following = bench_logs.follow(pods=pods, per_second=per_second)
    return [
        Figure(
            what=f"`job logs -f` of {pods} pods that print {per_second:,} lines/s", value=following.rate,
            unit="lines/s", yardstick=f"{following.cpu:.3f} s CPU for 1,000 lines",
        ),
        Figure(
            what="lines lost, doubled or misplaced", value=following.lost, unit="", yardstick=f"of {following.lines:,}"
        ),
        Figure(
            what="its memory from the first third on", value=following.growth / 1e6, unit="MB more", aim=5.0,
            yardstick=f"{following.memory / 1e6:.0f} MB before",
        ),
    ]  # fmt: skip
