"""What Volcano's API has and this version doesn't run yet.

A kind that is stored and not acted on is told of at admission. The rules for these kinds are in `vcbatch.api.validate`
all the same; one that is done loses its entry here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported:
    """Kinds that are stored but not acted on."""

    kinds: frozenset[str] = frozenset()


NOTHING: Final = Unsupported()

THIS_VERSION: Final = NOTHING
