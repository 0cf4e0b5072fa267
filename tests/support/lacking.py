"""Handles missing prerequisites of tests: the test is skipped, but fails in continuous integration (`CI=true`)."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest


def required() -> bool:
    """Whether this is continuous integration, where no test may be skipped."""
    return os.environ.get("CI") == "true"


def lacks(reason: str) -> NoReturn:
    """End the test: failed in continuous integration, else skipped."""
    if required():
        pytest.fail(reason)
    pytest.skip(reason)


def need_kubectl() -> None:
    """End the test where there is no kubectl on the PATH."""
    if shutil.which("kubectl") is None:
        lacks("no kubectl on the PATH")
