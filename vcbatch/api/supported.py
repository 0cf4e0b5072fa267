"""Parts of Volcano's API that this version doesn't support yet.

Admission warns about a kind that is stored and not acted on. The rules for these kinds are in `vcbatch.api.validate`
all the same; a kind that becomes supported is removed from this list.
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
