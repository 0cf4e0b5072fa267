"""`make bench`: what vcbatch costs on this machine, each figure beside its aim.

Absolute times say as much about the machine as about the program, so two yardsticks are measured in the same run: how
long Python takes to start, and how many HTTPS requests a minimal server of the same kind answers. Ratios to these can
be compared between machines and between days.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable, Sequence

import psutil
from rich.console import Console
from rich.table import Table

from tests.perf import figures_of_commands as commands
from tests.perf import figures_of_controllers as controllers
from tests.perf import figures_of_scheduler as scheduler
from tests.perf import figures_of_server as server
from tests.perf.figure import Figure

console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)

SECTIONS: dict[str, Sequence[Callable[[], list[Figure]]]] = {
    "server": (server.local_server,),
    "scheduler": (
        scheduler.placement,
        scheduler.large_cluster,
        scheduler.queues,
        scheduler.relief,
        scheduler.topology,
    ),
    "controllers": (
        controllers.jobs,
        controllers.small_jobs,
        controllers.cron_jobs,
        controllers.job_flows,
        controllers.queue_counts,
        controllers.retention,
    ),
    "commands": (commands.commands, commands.followed_log),
}


def main() -> None:
    """Measure the sections chosen, and print each part as soon as it is known."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    options.add_argument("sections", nargs="*", metavar="SECTION", help=f"{', '.join(SECTIONS)}; all of them if none")
    chosen: list[str] = options.parse_args().sections or list(SECTIONS)
    unknown = [name for name in chosen if name not in SECTIONS]
    if unknown:
        options.error(f"no section {unknown[0]!r}; there are {', '.join(SECTIONS)}")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = psutil.virtual_memory().total / 2**30
    machine = f"{platform.system()} {platform.machine()}, {cores} cores, {memory:.0f} GiB"
    console.print(f"{machine}, Python {platform.python_version()}; load average {os.getloadavg()[0]:.1f}")
    for name in chosen:
        console.print(f"\n[bold]{name}[/bold]")
        for measure in SECTIONS[name]:
            console.print(_table(measure()))


def _table(figures: Sequence[Figure]) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    for width in (72, 17, 16, 10, 40):
        table.add_column(width=width, overflow="fold")
    for figure in figures:
        table.add_row(*figure.row())
    return table


if __name__ == "__main__":
    main()
