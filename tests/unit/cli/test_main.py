"""What the command line says when it can't go on."""

from __future__ import annotations

import sys

import click
import pytest

from vcbatch.cli.main import cli, main


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
