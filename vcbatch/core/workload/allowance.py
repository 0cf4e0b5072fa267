"""How many pods may be missing, or be too many, while pods are exchanged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from vcbatch.api.apps import RollingUpdate, Strategy, StrategyType

_WHOLE: Final = 100
_DEFAULT: Final = "25%"


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """`surge` pods more than wanted, `unavailable` fewer available ones than wanted."""

    surge: int
    unavailable: int


def share_of(value: int | str, total: int, *, up: bool) -> int:
    """A number as it is, and a percentage of `total`, rounded up or down. The server lets nothing else pass."""
    if isinstance(value, int):
        return value
    amount = int(value.removesuffix("%")) * total
    return -(-amount // _WHOLE) if up else amount // _WHOLE


def allowance(strategy: Strategy, replicas: int) -> Allowance:
    """Of a Deployment. With Recreate there are never too many, and all may be missing; where neither is allowed, one
    may be missing, since nothing could change otherwise."""
    if strategy.type != StrategyType.ROLLING_UPDATE:
        return Allowance(surge=0, unavailable=0)
    rolling = strategy.rolling_update or RollingUpdate()
    surge = share_of(_DEFAULT if rolling.max_surge is None else rolling.max_surge, replicas, up=True)
    unavailable = share_of(_DEFAULT if rolling.max_unavailable is None else rolling.max_unavailable, replicas, up=False)
    if surge == unavailable == 0:
        unavailable = 1
    return Allowance(surge=surge, unavailable=min(unavailable, replicas))
