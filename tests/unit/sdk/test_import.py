"""What importing vcbatch costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import vcbatch

HEAVY = ("kopf", "fastapi", "numpy", "kubernetes", "aiohttp", "pydantic", "msgspec", "cloudpickle", "IPython", "click")
SCRIPT = "import sys; {}; print([name for name in {!r} if name in sys.modules])"


def loaded(statement: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", SCRIPT.format(statement, HEAVY)], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_the_names_of_the_client_load_nothing_heavy():
    assert loaded("from vcbatch import AsyncClient, Client, Job, Queue, Task, task") == "[]"


def test_the_names_of_the_client_load_few_modules():
    """Each costs about half a millisecond. Python's own network and TLS are half of these."""
    statement = "from vcbatch import AsyncClient, Client, Job, Queue, Task, task; assert len(sys.modules) < 280"
    assert loaded(statement) == "[]"


def test_vcbatch_alone_loads_nothing_of_itself():
    statement = "import vcbatch; assert not [m for m in sys.modules if m.startswith('vcbatch.sdk')]"
    assert loaded(statement) == "[]"


def test_every_name_is_there_and_listed():
    for name in vcbatch.__all__:
        assert getattr(vcbatch, name) is not None
    assert set(vcbatch.__all__) <= set(dir(vcbatch))
    assert sorted(vcbatch._PLACE_OF) == sorted(set(vcbatch.__all__) - {"__version__"})


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="Clint"):
        vcbatch.Clint  # type: ignore[attr-defined]  # noqa: B018
