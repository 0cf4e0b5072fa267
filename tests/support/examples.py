"""The number of examples of a property: all in `make explore`, a share of them in `make test`."""

from __future__ import annotations

import hypothesis

EXPLORE = "explore"
"""The Hypothesis profile of `make explore`."""
_SHARE = 3
_LEAST = 10


def examples(number: int) -> int:
    """`number` with the profile `explore`; else a third of it, but at least 10 unless `number` is less."""
    if hypothesis.settings.get_current_profile_name() == EXPLORE:
        return number
    return max(number // _SHARE, min(number, _LEAST))
