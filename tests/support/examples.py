"""How many examples a property draws: all in `make explore`, a share of them in `make test`."""

from __future__ import annotations

import hypothesis

EXPLORE = "explore"
"""The Hypothesis profile of `make explore`."""
_SHARE = 3
_LEAST = 10


def examples(number: int) -> int:
    """`number` under the profile `explore`; else a third of it, and not fewer than 10 where `number` isn't less."""
    if hypothesis.settings.get_current_profile_name() == EXPLORE:
        return number
    return max(number // _SHARE, min(number, _LEAST))
