"""`vcbatch config`: all that is wrong with a policy at once, and all that it says in full."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from vcbatch.cli.base.output import CliError
from vcbatch.cli.files import plugin_files
from vcbatch.cli.whatif.config import command
from vcbatch.scheduler import DEFAULT_POLICY, parse_policy

POLICY = "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n"

MINE = """
from vcbatch.scheduler.framework.arguments import NO_ARGUMENTS
from vcbatch.scheduler.framework.plugin import Plugin

class Mine(Plugin):
    pass

class Walk:
    arguments = NO_ARGUMENTS
    def execute(self, cycle):
        pass

PLUGINS = {"mine": Mine}
ACTIONS = {"walk": Walk}
"""


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments], standalone_mode=False)


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_policy_that_works_is_said_to(tmp_path: Path):
    file = written(tmp_path / "policy.yaml", POLICY)
    result = run("check", file)
    assert result.return_value == 0
    assert result.stdout == f"{file}: OK (1 action, 1 plugin, 1 tier)\n"


def test_what_is_accepted_and_had_better_be_otherwise_is_a_warning_with_its_line(tmp_path: Path):
    arguments = "{binpack.weight: -2, binpack.cpu: -1, binpack.resources: gpu, binpack.resources.gpu: -3}"
    text = f"{POLICY}  - name: binpack\n    arguments: {arguments}\n  - name: usage\n"
    text += "  - name: overcommit\n    arguments: {overcommit-factor: 0.5}\n"
    file = written(tmp_path / "policy.yaml", text)
    result = run("check", file)
    assert result.return_value == 0
    *warnings, last = result.stdout.splitlines()
    start, plugins = len(POLICY.splitlines()), "policy.tiers[0].plugins"
    assert [warning.partition(": warning: ")[2] for warning in warnings] == [
        f"{plugins}[{text}"
        for text in (
            "1].arguments.binpack.weight: should be at least 0, got -2, by which the emptiest nodes are the best",
            "1].arguments.binpack.cpu: should be at least 0, got -1, which counts as 1",
            "1].arguments.binpack.resources.gpu: should be at least 0, got -3, which counts as 1",
            "2].name: usage should come with the section metrics (type, address), without which it decides nothing",
            "3].arguments.overcommit-factor: should be at least 1, got 0.5, which counts as 1.2",
        )
    ]
    assert [warning.split(":")[1] for warning in warnings] == [str(start + n) for n in (2, 2, 2, 3, 5)]
    assert last == f"{file}: OK (1 action, 4 plugins, 1 tier)"


def test_every_fault_is_a_line_that_an_editor_jumps_to(tmp_path: Path):
    file = written(tmp_path / "policy.yaml", POLICY.replace("gang", "gagn").replace("allocate", "fly"))
    result = run("check", file)
    assert result.return_value == 1
    first, second = result.stdout.splitlines()
    assert first.startswith(f"{file}:1:10: policy.actions: unknown action 'fly'; supported: allocate, backfill")
    assert second.startswith(
        f"{file}:4:11: policy.tiers[0].plugins[0].name: unknown plugin 'gagn' (did you mean 'gang'?); supported: "
    )
    assert result.stderr == "2 errors; the scheduler would keep the last valid configuration\n"


@pytest.mark.parametrize("data", [b"\xff\xfe", b"x" * ((1 << 20) + 1)])
def test_what_is_no_text_or_too_much_is_refused(tmp_path: Path, data: bytes):
    file = tmp_path / "policy.yaml"
    file.write_bytes(data)
    assert isinstance(run("check", file).exception, CliError)


def test_a_policy_may_come_on_standard_input():
    result = CliRunner().invoke(command, ["check", "-"], input=POLICY, standalone_mode=False)
    assert result.stdout == "-: OK (1 action, 1 plugin, 1 tier)\n"
    result = CliRunner().invoke(command, ["show", "-"], input=POLICY, standalone_mode=False)
    assert parse_policy(result.stdout).actions == ("allocate",)


def test_the_policy_is_shown_with_its_defaults(tmp_path: Path):
    shown = run("show").stdout
    assert parse_policy(shown).actions == parse_policy(DEFAULT_POLICY).actions
    assert "binpack.weight: 1" in shown
    assert "name: gang\n" in run("show", written(tmp_path / "policy.yaml", POLICY)).stdout
    bad = written(tmp_path / "policy.yaml", "actions: fly\ntiers: 3\n")
    error = run("show", bad).exception
    assert isinstance(error, CliError)
    first, second = str(error).splitlines()
    assert first.startswith(f"{bad}:1:10: policy.actions: unknown action 'fly'; supported: ")
    assert second.startswith(f"{bad}:2:8: policy.tiers: ")


def test_plugins_and_actions_of_a_file_may_be_named(tmp_path: Path):
    mine = written(tmp_path / "mine.py", MINE)
    file = written(tmp_path / "policy.yaml", POLICY.replace("allocate", "walk").replace("gang", "mine"))
    assert run("check", file, "--plugin", mine).return_value == 0
    assert run("check", file).return_value == 1


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("x = 1\n", "defines neither PLUGINS nor ACTIONS"),
        ("1 / 0\n", ":1: ZeroDivisionError: division by zero"),
        ("x = (\n", ":1: SyntaxError:"),
        ("PLUGINS = 3\n", "PLUGINS must be a dict keyed by name, got 3"),
        ("PLUGINS = {'x': int}\n", "plugin 'x' must be a subclass of vcbatch.scheduler.framework.plugin.Plugin"),
        ("ACTIONS = {'x': object}\n", "action 'x' must have a method execute(cycle) and an ArgumentSpec"),
        (
            "class Walk:\n    def __init__(self, x):\n        pass\nACTIONS = {'x': Walk}\n",
            "action 'x' can't be instantiated without arguments: TypeError: ",
        ),
        (MINE.replace('"mine"', '"gang"'), "plugin name 'gang' is reserved by vcbatch"),
        (MINE.replace('"walk"', '"allocate"'), "action name 'allocate' is reserved by vcbatch"),
        (
            MINE.replace("    pass\n\nclass", "    ARGUMENTS = 3\n\nclass", 1),
            "plugin 'mine': ARGUMENTS must be an ArgumentSpec",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, code: str, said: str):
    mine = written(tmp_path / "mine.py", code)
    error = run("show", "--plugin", mine).exception
    assert isinstance(error, CliError)
    assert str(error).startswith(str(mine))
    assert said in str(error)


def test_a_file_that_is_named_from_where_one_stands_has_lines_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    written(tmp_path / "mine.py", "x = 1\nimport nowhere\n")
    monkeypatch.chdir(tmp_path)
    error = run("show", "--plugin", "mine.py").exception
    assert str(error) == "mine.py:2: ModuleNotFoundError: No module named 'nowhere'"


def test_what_is_installed_may_be_named_and_what_is_broken_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    written(tmp_path / "installed_plugin.py", MINE)
    monkeypatch.syspath_prepend(tmp_path)
    entries = [
        EntryPoint("mine", "installed_plugin:Mine", plugin_files.PLUGIN_GROUP),
        EntryPoint("broken", "nowhere:Nothing", plugin_files.PLUGIN_GROUP),
        EntryPoint("walk", "installed_plugin:Walk", plugin_files.ACTION_GROUP),
    ]
    monkeypatch.setattr(plugin_files, "entry_points", lambda group: [one for one in entries if one.group == group])
    found = plugin_files.load([])
    assert (list(found.plugins), list(found.actions)) == (["mine"], ["walk"])
    assert "broken (nowhere:Nothing) can't be used: ModuleNotFoundError" in caplog.text


@pytest.mark.parametrize("name", ["up", "scheduler"])
def test_a_bad_policy_is_refused_before_anything_starts(tmp_path: Path, name: str):
    file = written(tmp_path / "policy.yaml", POLICY.replace("gang", "gagn"))
    state = ["--state-dir", str(tmp_path / "state")] if name == "up" else ["--kubeconfig", str(tmp_path / "none")]
    code = [sys.executable, "-m", "vcbatch", name, *state, "--scheduler-conf", str(file)]
    said = subprocess.run(code, capture_output=True, text=True, check=False, timeout=60)
    assert said.returncode == 1
    assert f"error: {file}:4:11: policy.tiers[0].plugins[0].name: unknown plugin 'gagn'" in said.stderr
    assert "Traceback" not in said.stderr
