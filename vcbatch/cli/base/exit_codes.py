"""Exit codes that several commands share."""

from __future__ import annotations

from typing import Final

TIMED_OUT: Final = 124
"""The time limit of the command or of the job was exceeded. The code of coreutils' `timeout`."""
IMPOSSIBLE: Final = 125
"""The job can't start on the cluster as it is, so its program didn't run. The code with which `docker run` reports that
no container was started."""
