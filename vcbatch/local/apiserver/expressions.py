"""Common Expression Language expressions in the API server: errors, values, and Kubernetes' error messages.
`vcbatch.api.cel` evaluates them.

Source: k8s.io/apiserver `pkg/cel`, KEP-2876.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from vcbatch.api import cel

INLINE_LIMIT = 50_000
"""The limit of an evaluation on the event loop, in units of `cel.Budget`: some 50 ms. Longer ones run in a thread."""


class Trouble:
    """An expression that couldn't be evaluated."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def explain(self, rule: str) -> str:
        if self.text == cel.NO_OVERLOAD:
            what = "call arguments did not match a supported operator, function or macro signature for rule"
            return f"'{self.text}': {what}: {rule}"
        return f"{self.text} evaluating rule: {rule}"


class TooLong(Exception):
    """The evaluation costs more than is allowed on the event loop."""


class Costs:
    """The remaining cost of the expressions of one request: `limit` together, and `per_call` each. Where the limit is
    `INLINE_LIMIT`, `TooLong` is raised when it is reached."""

    def __init__(self, *, patient: bool, limit: int = cel.REQUEST_LIMIT, per_call: int = cel.CALL_LIMIT) -> None:
        self._patient = patient
        self._per_call = per_call
        self.left = limit if patient else min(limit, INLINE_LIMIT)
        self._patterns: set[str] = set()
        self.call_too_dear = False
        """Whether the last evaluation alone reached its limit."""

    def run(self, expression: str, variables: Mapping[str, Any], *, base: int = 0) -> Any:
        """The value of the expression, or a `Trouble`. `base`: an additional cost of the evaluation."""
        limit = min(self._per_call, self.left - base)
        budget = cel.Budget(limit, self._patterns)
        try:
            if limit < 0:
                raise cel.OverBudget
            return cel.compiled(expression).run(variables, budget)
        except cel.OverBudget as error:
            self.call_too_dear = limit == self._per_call
            if not self._patient:
                raise TooLong from None
            return Trouble(str(error))
        except cel.CelError as error:
            return Trouble(str(error))
        finally:
            self.left -= base + limit - max(0, budget.left)

    @property
    def exhausted(self) -> bool:
        return self.left <= 0


def error(expression: str, declared: Collection[str]) -> str:
    """Why an expression over the `declared` variables is invalid, or "" where it is valid."""
    try:
        program = cel.compiled(expression)
    except cel.CelSyntaxError as error:
        return f"compilation failed: {error}"
    unknown = sorted(program.variables - set(declared)) or program.unknown_functions
    if unknown:
        return f"compilation failed: undeclared reference to '{unknown[0]}' (in container '')"
    return ""


def mentions(expression: str, variable: str) -> bool:
    """Whether an expression uses the variable."""
    return variable in cel.compiled(expression).variables


def run(expression: str, variables: Mapping[str, Any]) -> Any:
    """The value of one expression, or a `Trouble`."""
    return Costs(patient=True).run(expression, variables)
