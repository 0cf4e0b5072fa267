"""In worlds with one constraint the reason names it, with the right number, and its remedies let the gang start."""

from __future__ import annotations

from random import Random

import pytest

from tests.constraints.__main__ import KINDS
from tests.constraints.judge import judge

WORLDS = 5


@pytest.mark.parametrize("kind", KINDS)
def test_the_binding_constraint_is_named(kind: str) -> None:
    for nth in range(WORLDS):
        assert judge(KINDS[kind](Random(f"{kind}/{nth}"))) == []
