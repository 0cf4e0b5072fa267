"""All functions and operators that expressions may call, by name. Each takes its cost beyond the call itself from the
budget before it computes; source of the costs: k8s.io/apiserver `pkg/cel/library/cost.go`."""

from __future__ import annotations

from collections.abc import Mapping

from vcbatch.api.cel.evaluate import Function
from vcbatch.api.cel.kubernetes import KUBERNETES
from vcbatch.api.cel.lists import LISTS, NUMBERS
from vcbatch.api.cel.operators import STANDARD
from vcbatch.api.cel.text import TEXT

EVERYTHING: Mapping[str, Function] = {**STANDARD, **TEXT, **LISTS, **NUMBERS, **KUBERNETES}
