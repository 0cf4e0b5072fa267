"""Whether this machine can build and run the image. As a command, `python -m tests.image.available` says what is
missing and ends with 3; in continuous integration (`CI=true`) with 1."""

from __future__ import annotations

import sys

from tests.image.build import missing
from tests.support.lacking import required

UNAVAILABLE = 3


def main() -> int:
    """0 where the image can be built and run."""
    reason = missing()
    if not reason:
        return 0
    must = required()
    said = f"error: the image can't be tested here: missing: {reason}"
    print(said if must else f"image tests skipped: missing: {reason}", file=sys.stderr)
    return 1 if must else UNAVAILABLE


if __name__ == "__main__":
    raise SystemExit(main())
