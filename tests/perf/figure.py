"""A measured value beside its aim."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured value. `more_is_better` decides which way the ratio to the aim is read."""

    what: str
    value: float
    unit: str
    aim: float | None = None
    more_is_better: bool = False
    yardstick: str = ""

    def row(self) -> tuple[str, str, str, str, str]:
        aim = "" if self.aim is None else f"{self.aim:,.6g} {self.unit}"
        ratio = "" if self.aim is None else f"{self.value / self.aim:.2f}"
        met = "" if self.aim is None else ("yes" if (self.value >= self.aim) == self.more_is_better else "no")
        return self.what, f"{self.value:,.4g} {self.unit}", aim, f"{ratio} {met}".strip(), self.yardstick
