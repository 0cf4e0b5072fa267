"""How near to each other the pods of a gang, or of a gang inside it, are to be: `spec.networkTopology`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class NetworkTopology:
    """A hard one keeps the pods within one domain up to a tier; without a tier any domain will do, the nearest that has
    room first, as in a soft one. The tier is given by number or by name."""

    hard: bool
    tier: int | None = None
    tier_name: str = ""

    @staticmethod
    def read(given: Mapping[str, Any] | None) -> NetworkTopology | None:
        """As written; the mode is hard where none is given. None where there is no topology."""
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
        """Whether there are domains that it rules out."""
        return self.hard and (self.tier is not None or bool(self.tier_name))
