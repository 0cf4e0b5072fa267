"""What the command line says when it can't go on."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

from vcbatch.cli.commands import COMMANDS
from vcbatch.cli.main import cli, main

PROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]

BLOCKED_IMPORTS = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {modules!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
sys.argv = ["vcbatch", *{arguments!r}]
from vcbatch.cli.main import main
main()
"""


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["vcbatch", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


def test_a_missing_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: object
) -> None:
    for module in [name for name in sys.modules if name.startswith(("vcbatch.cli.local", "vcbatch.local.apiserver"))]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert run(monkeypatch, "up", "--state-dir", f"{tmp_path}/state", "--port", "0") == 1
    said = capsys.readouterr().err
    assert "requires uvicorn" in said
    assert "pip install 'vcbatch[local]'" in said


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["upp"], "vcbatch up"),
        (["jobs", "list"], "vcbatch job"),
        (["job", "lst"], "vcbatch job list"),
        (["logs", "train"], "vcbatch job logs"),
        (["queue", "dscribe", "a"], "vcbatch queue describe"),
        (["xyzzy"], ""),
    ],
)
def test_an_unknown_command_is_wrong_usage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: list[str], meant: str
) -> None:
    assert run(monkeypatch, *typed) == 2
    said = capsys.readouterr().err
    assert f'unknown command "{typed[typed[0] in ("job", "queue")]}"' in said
    assert said.partition("Did you mean this?\n")[2].partition("See")[0].strip() == meant


def test_every_command_is_listed_below_a_title(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "--help") == 0
    listed = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.startswith("  ")}
    for name in cli.list_commands(click.Context(cli)):
        assert name in listed


def test_help_imports_no_subcommand(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delitem(sys.modules, "vcbatch.cli.local.up", raising=False)
    assert run(monkeypatch, "--help") == 0
    assert "vcbatch up" in capsys.readouterr().out
    assert "vcbatch.cli.local.up" not in sys.modules


def _modules_of_extras() -> set[str]:
    """The modules that only the extras bring."""
    names = {re.split(r"[\[>=<]", text)[0] for extra in EXTRAS if extra != "training" for text in EXTRAS[extra]}
    own = {"google-re2": "re2", "opentelemetry-exporter-otlp-proto-http": "opentelemetry"}
    return {own.get(name, name.replace("-", "_")) for name in names} - {"vcbatch"} | {"opentelemetry"}


def _without_extras(*arguments: str) -> subprocess.CompletedProcess[str]:
    code = BLOCKED_IMPORTS.format(modules=_modules_of_extras(), arguments=arguments)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("name", ["", *(name for name, entry in COMMANDS.items() if not entry.extra)])
def test_help_needs_no_extra(name: str) -> None:
    done = _without_extras(*filter(None, [name]), "--help")
    assert done.returncode == 0, done.stderr
    assert "Usage: vcbatch" in done.stdout


def test_commands_need_extras_that_exist() -> None:
    assert {entry.extra for entry in COMMANDS.values()} - {""} <= set(EXTRAS)


@pytest.mark.parametrize("name", ["simulate", "controllers", "scheduler", "webhooks"])
def test_the_extra_of_a_command_is_named_where_it_is_missing(name: str) -> None:
    done = _without_extras(name)
    assert done.returncode == 1
    assert f"install vcbatch[{COMMANDS[name].extra}]" in done.stderr
