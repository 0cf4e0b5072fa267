"""Tests whose machine lacks something: they are skipped, but fail in continuous integration (`CI=true`)."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest


def required() -> bool:
    """Whether this is continuous integration, where nothing may be left out."""
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
