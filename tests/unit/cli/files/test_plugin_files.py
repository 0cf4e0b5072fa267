"""Plugins in files that a user names: what is refused before it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from vcbatch.cli.base.output import CliError
from vcbatch.cli.files.plugin_files import load

TEXT = """\
from vcbatch.scheduler.framework.plugin import Plugin

class Mine(Plugin):
    NAME

PLUGINS = {"mine": Mine}
"""


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("def scoers(self, cls, columns): return 1", "scores"),
        ("def Scores(self, cls, columns): return 1", "scores"),
        ("def opened(self, session): pass", "open"),
        ("ARGUMENT = None", "ARGUMENTS"),
    ],
)
def test_a_name_that_is_nearly_a_hook_is_refused(tmp_path: Path, name: str, meant: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(TEXT.replace("NAME", name))
    with pytest.raises(CliError, match=f"did you mean '{meant}'"):
        load([file])


@pytest.mark.parametrize(
    "name", ["def scores(self, cls, columns): return 1", "def _scoers(self): pass", "rack = 'a/b'"]
)
def test_hooks_and_helpers_are_taken(tmp_path: Path, name: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(TEXT.replace("NAME", name))
    assert list(load([file]).plugins) == ["mine"]
