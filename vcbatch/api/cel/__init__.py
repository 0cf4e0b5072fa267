"""The Common Expression Language as Kubernetes uses it: parsed, evaluated and bounded without any I/O.

`compiled` returns a program, whose `run` takes its cost from a `Budget`; `estimate` calculates the maximum cost in
advance.
"""

from __future__ import annotations

from functools import lru_cache

from vcbatch.api.cel.evaluate import Budget, OverBudget, Program
from vcbatch.api.cel.functions import EVERYTHING
from vcbatch.api.cel.syntax import CelSyntaxError
from vcbatch.api.cel.values import NO_OVERLOAD, CelError, Optional

CALL_LIMIT = 1_000_000
"""The cost limit of one evaluation. Source: k8s.io/apiserver `pkg/apis/cel/config.go`, PerCallLimit."""
REQUEST_LIMIT = 10_000_000
"""The cost limit of all evaluations for one request together. Source: there, RuntimeCELCostBudget."""


@lru_cache(maxsize=512)
def compiled(text: str) -> Program:
    """The program of an expression with all functions. Raises `CelSyntaxError`."""
    return Program(text, EVERYTHING)


__all__ = [
    "CALL_LIMIT",
    "NO_OVERLOAD",
    "REQUEST_LIMIT",
    "Budget",
    "CelError",
    "CelSyntaxError",
    "Optional",
    "OverBudget",
    "Program",
    "compiled",
]
