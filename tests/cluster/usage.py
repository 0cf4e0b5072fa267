"""What programs cost: CPU seconds and memory, as the kernel counts them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.processes import Program

_TICKS = os.sysconf("SC_CLK_TCK")
_MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """CPU seconds since the start of the process; resident memory now and at its highest, in MiB."""

    cpu: float
    resident: float
    peak: float


def of(pid: int) -> Usage:
    folder = Path(f"/proc/{pid}")
    # The command's name is in parentheses and may hold anything; what follows it is in a fixed order.
    fields = (folder / "stat").read_text().rpartition(")")[2].split()
    sizes = {
        line.partition(":")[0]: int(line.split()[1]) * 1024 / _MIB
        for line in (folder / "status").read_text().splitlines()
        if line.startswith("Vm")
    }
    return Usage(cpu=(int(fields[11]) + int(fields[12])) / _TICKS, resident=sizes["VmRSS"], peak=sizes["VmHWM"])


def of_all(programs: Mapping[str, Program]) -> dict[str, Usage]:
    return {name: of(program.pid) for name, program in programs.items() if program.running}
