"""Whether this machine can run the test bed: built already, or a Go toolchain to build it with.

In continuous integration (`CI=true`) the answer is always yes, so that a machine without Go fails there and is not
passed over. As a command, `python -m tests.cluster.binaries.available` says why not and ends with 3.
"""

from __future__ import annotations

import sys

from tests.cluster.binaries.build import cache, go
from tests.support.lacking import required

UNAVAILABLE = 3


def unavailable() -> str:
    """Why the tests on a real control plane can't run here; empty where they can or must."""
    if required() or cache().complete or go() is not None:
        return ""
    return "cluster tests skipped: the test bed isn't built, and there is no Go toolchain (PATH, /usr/local/go/bin)"


def main() -> int:
    """0 where the tests can run, else 3 with the reason."""
    reason = unavailable()
    if reason:
        print(reason, file=sys.stderr)
    return UNAVAILABLE if reason else 0


if __name__ == "__main__":
    raise SystemExit(main())
