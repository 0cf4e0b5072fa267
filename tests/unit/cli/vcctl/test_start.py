"""A command that asks once and ends loads nothing that it doesn't need: that is most of the time it takes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.scripted_http import Answer, scripted

HEAVY = {"asyncio", "aiohttp", "click", "pydantic", "kubernetes", "rich", "numpy", "concurrent.futures", "shlex"}
PROGRAM = """
import sys
from vcbatch.cli.vcctl.main import vcctl
try:
    vcctl()
finally:
    print(*set(sys.modules), file=sys.stderr)
"""


@pytest.mark.parametrize("arguments", [["job", "list"], ["queue", "list"], ["pod", "list"], ["version"], ["--help"]])
def test_nothing_heavy_is_loaded(arguments: list[str]) -> None:
    with scripted(lambda _: Answer(body={"items": [{"metadata": {"name": "x"}}]})) as served:
        master = ["--master", served.url] if arguments[-1] == "list" else []
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *arguments, *master], capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    assert HEAVY & set(done.stderr.split()) == set()


def test_the_package_installs_none_of_volcanos_programs() -> None:
    """They would hide those of an installed Volcano; `vcbatch vcctl --install` writes them on request."""
    import tomllib
    from pathlib import Path

    from vcbatch.cli.vcctl import main
    from vcbatch.cli.vcctl.commands import PROGRAMS

    project = tomllib.loads((Path(__file__).parents[4] / "pyproject.toml").read_text())
    assert not set(PROGRAMS) & set(project["project"]["scripts"])
    assert all(callable(getattr(main, name)) for name in PROGRAMS)


def test_a_reader_that_went_away_isnt_complained_about() -> None:
    with scripted(lambda _: Answer(body={"items": [{"metadata": {"name": "x"}}]})) as served:
        command = [sys.executable, "-c", "from vcbatch.cli.vcctl.main import vcctl; vcctl()"]
        with subprocess.Popen(
            [*command, "job", "list", "--master", served.url], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as running:
            assert running.stdout is not None and running.stderr is not None
            running.stdout.close()
            said = running.stderr.read()
    assert (running.returncode, said) == (141, b"")
