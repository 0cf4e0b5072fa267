"""Exponential delays between retries, with jitter so that clients don't retry in step."""

from __future__ import annotations

from dataclasses import dataclass

from vcbatch.interfaces.random import Random


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Delays in seconds: `initial`, then `factor` times longer with each failure, never above `limit`.

    `jitter` is the largest share by which a delay is randomly shortened.
    """

    initial: float
    limit: float
    factor: float = 2.0
    jitter: float = 0.5

    def delay(self, failures: int, random: Random) -> float:
        """The delay in seconds after that many failures in a row (1 is the first)."""
        # The exponent is bounded before the power is computed: a float overflows near 2 ** 1024.
        grown = self.initial * self.factor ** min(max(failures, 1) - 1, 64)
        return min(grown, self.limit) * (1.0 - self.jitter * random.random())
