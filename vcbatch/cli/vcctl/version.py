"""`vcctl version`."""

from __future__ import annotations

import platform
import sys

from vcbatch._version import __version__
from vcbatch.cli.base.output import say
from vcbatch.cli.vcctl.flags import Given

_UNKNOWN = "Not provided."
_ARCHITECTURES = {"x86_64": "amd64", "AMD64": "amd64", "aarch64": "arm64"}


def version(_: Given) -> int:
    machine = platform.machine()
    lines = {
        "API Version": "v1alpha1",
        "Version": __version__,
        "Git SHA": _UNKNOWN,
        "Built At": _UNKNOWN,
        "Go Version": f"none, Python {platform.python_version()}",
        "Go OS/Arch": f"{sys.platform}/{_ARCHITECTURES.get(machine, machine)}",
    }
    say("\n".join(f"{title}: {value}" for title, value in lines.items()))
    return 0
