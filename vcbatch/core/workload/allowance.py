"""How many pods may be missing or surplus while pods are replaced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from vcbatch.api.apps import RollingUpdate, Strategy, StrategyType

_WHOLE: Final = 100
_DEFAULT: Final = "25%"


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """Up to `surge` pods more than wanted, and up to `unavailable` fewer available ones than wanted."""

    surge: int
    unavailable: int


def share_of(value: int | str, total: int, *, up: bool) -> int:
    """A number as it is, or a percentage of `total`, rounded up or down. The server rejects all other values."""
    if isinstance(value, int):
        return value
    amount = int(value.removesuffix("%")) * total
    return -(-amount // _WHOLE) if up else amount // _WHOLE


def allowance(strategy: Strategy, replicas: int) -> Allowance:
    """The allowance of a Deployment. With Recreate there is no surplus, and all pods may be missing; where both are
    zero, one pod may be missing, since nothing could change otherwise."""
    if strategy.type != StrategyType.ROLLING_UPDATE:
        return Allowance(surge=0, unavailable=0)
    rolling = strategy.rolling_update or RollingUpdate()
    surge = share_of(_DEFAULT if rolling.max_surge is None else rolling.max_surge, replicas, up=True)
    unavailable = share_of(_DEFAULT if rolling.max_unavailable is None else rolling.max_unavailable, replicas, up=False)
    if surge == unavailable == 0:
        unavailable = 1
    return Allowance(surge=surge, unavailable=min(unavailable, replicas))
