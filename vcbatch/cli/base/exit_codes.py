"""Exit codes that several commands share."""

from __future__ import annotations

from typing import Final

TIMED_OUT: Final = 124
"""The time limit of the command or of the job was exceeded. The code of coreutils' `timeout`."""
