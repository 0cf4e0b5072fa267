"""Exponential waiting between tries, with jitter so that many clients don't try in step."""

from __future__ import annotations

from dataclasses import dataclass

from vcbatch.interfaces.random import Random


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Delays in seconds: `initial`, then `factor` times longer with each failure, never above `limit`.

    `jitter` is the share of a delay that chance may take away.
    """

    initial: float
    limit: float
    factor: float = 2.0
    jitter: float = 0.5

    def delay(self, failures: int, random: Random) -> float:
        """How long to wait after that many failures in a row (1 is the first)."""
        # The exponent is bounded before the power is taken: a float overflows near 2 ** 1024.
        grown = self.initial * self.factor ** min(max(failures, 1) - 1, 64)
        return min(grown, self.limit) * (1.0 - self.jitter * random.random())
