"""The randomness seam."""

from __future__ import annotations

from typing import Protocol


class Random(Protocol):
    """What needs chance: jitter of retries, generated names, identifiers."""

    def random(self) -> float:
        """A float in [0, 1)."""
        ...

    def token(self, length: int) -> str:
        """A lower-case alphanumeric string that nobody can guess."""
        ...

    def uid(self) -> str:
        """A new object UID (RFC 4122 text form)."""
        ...
