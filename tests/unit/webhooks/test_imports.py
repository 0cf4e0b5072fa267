"""What a start pays for."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("fastapi", "starlette", "kubernetes")


@pytest.mark.parametrize("modules", ["vcbatch.cli.local.up, vcbatch.cli.local.process", "webhooks.configurations"])
def test_whoever_doesnt_serve_admission_doesnt_pay_for_the_service(modules: str) -> None:
    """`vcbatch up` asks the rules in process and has to be there in a second."""
    program = f"import sys, {modules}; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
