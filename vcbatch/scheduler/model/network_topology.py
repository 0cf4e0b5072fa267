"""The network topology that a gang or a sub-gang requests: `spec.networkTopology`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class NetworkTopology:
    """A hard topology keeps the pods within one domain up to a tier; without a tier any domain is allowed, the lowest
    tier with capacity first, as with a soft one. The tier is given by number or by name."""

    hard: bool
    tier: int | None = None
    tier_name: str = ""

    @staticmethod
    def read(given: Mapping[str, Any] | None) -> NetworkTopology | None:
        """The topology as written; the mode is hard if none is given. None without a topology."""
        if not given:
            return None
        tier = given.get("highestTierAllowed")
        return NetworkTopology(
            hard=(given.get("mode") or "hard") == "hard",
            tier=tier if isinstance(tier, int) else None,
            tier_name=str(given.get("highestTierName") or "") if tier is None else "",
        )

    @property
    def bounded(self) -> bool:
        """Whether it excludes any domains."""
        return self.hard and (self.tier is not None or bool(self.tier_name))
