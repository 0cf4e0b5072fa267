"""The labels of all nodes, matched value by value instead of node by node."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from vcbatch.scheduler.model.objects import NodeInfo
from vcbatch.scheduler.model.resources import Mask
from vcbatch.scheduler.model.selectors import NAME_FIELD, NodeAffinity, NodeTerm, Requirement


class _Column:
    """One label: the number of its value on each node, 0 without it, and the values by number."""

    __slots__ = ("ids", "numbers")

    def __init__(self, values: Sequence[str | None]) -> None:
        self.numbers: dict[str, int] = {}
        self.ids: npt.NDArray[np.intp] = np.zeros(len(values), dtype=np.intp)
        for row, value in enumerate(values):
            if value is not None:
                self.ids[row] = self.numbers.setdefault(value, len(self.numbers) + 1)

    def matching(self, requirement: Requirement) -> Mask:
        accepted = np.zeros(len(self.numbers) + 1, dtype=bool)
        if requirement.operator == "In":
            for value in requirement.values:
                accepted[self.numbers.get(value, 0)] = True
            accepted[0] = False
        else:
            accepted[0] = requirement.matches({})
            for value, number in self.numbers.items():
                accepted[number] = requirement.matches({requirement.key: value})
        return accepted[self.ids]


class NodeLabels:
    """Masks over the node table, shape [N]; columns are created when a label is first used."""

    def __init__(self, infos: Sequence[NodeInfo]) -> None:
        self.count = len(infos)
        self._infos = infos
        self._rows = {info.name: row for row, info in enumerate(infos)}
        self._columns: dict[str, _Column] = {}

    def row(self, name: str) -> int | None:
        """The row of the node of this name."""
        return self._rows.get(name)

    def named(self, name: str) -> Mask:
        """A mask of the node of this name alone."""
        mask = np.zeros(self.count, dtype=bool)
        row = self._rows.get(name)
        if row is not None:
            mask[row] = True
        return mask

    def matching(self, requirement: Requirement) -> Mask:
        """The nodes whose labels match the requirement."""
        column = self._columns.get(requirement.key)
        if column is None:
            values = [info.labels.get(requirement.key) for info in self._infos]
            column = self._columns[requirement.key] = _Column(values)
        return column.matching(requirement)

    def admitted(self, affinity: NodeAffinity) -> Mask:
        """The nodes that match one of the required terms; all if there are none."""
        if affinity.required is None:
            return np.ones(self.count, dtype=bool)
        mask = np.zeros(self.count, dtype=bool)
        for term in affinity.required:
            mask |= self._term(term)
        return mask

    def _term(self, term: NodeTerm) -> Mask:
        mask = np.full(self.count, bool(term.labels or term.fields))
        for requirement in term.labels:
            mask &= self.matching(requirement)
        for requirement in term.fields:
            mask &= self._by_name(requirement)
        return mask

    def _by_name(self, requirement: Requirement) -> Mask:
        if requirement.key != NAME_FIELD:
            return np.zeros(self.count, dtype=bool)
        if requirement.operator == "In":
            mask = np.zeros(self.count, dtype=bool)
            for value in requirement.values:
                mask |= self.named(value)
            return mask
        names = (requirement.matches({NAME_FIELD: info.name}) for info in self._infos)
        return np.fromiter(names, dtype=bool, count=self.count)
