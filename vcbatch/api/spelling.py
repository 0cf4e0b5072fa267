"""Suggestions for misspelt names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

_ALIKE: Final = 0.6
"""Similarity from which a name is a probable misspelling of another, by `difflib`'s ratio."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name most similar to this one; empty where none is similar."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=_ALIKE)), "")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'NAME'?` for the end of a message; empty where no known name is similar."""
    meant = nearest(name, known)
    return f"; did you mean {meant!r}?" if meant else ""
