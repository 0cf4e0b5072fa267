"""What the command line says when it can't go on."""

from __future__ import annotations

import sys

import pytest

from vcbatch.cli.main import main


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
    assert "needs uvicorn" in said
    assert "pip install 'vcbatch[local]'" in said


def test_an_unknown_command_is_wrong_usage(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "upp") == 2
    assert "No such command 'upp'" in capsys.readouterr().err


def test_help_imports_no_subcommand(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delitem(sys.modules, "vcbatch.cli.up", raising=False)
    assert run(monkeypatch, "--help") == 0
    assert "vcbatch up" in capsys.readouterr().out
    assert "vcbatch.cli.up" not in sys.modules
