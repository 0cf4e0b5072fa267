"""Every start of another program by vcbatch, and that no start of a Python looks into the current folder."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from vcbatch.interfaces import interpreter

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for package in ("vcbatch", "webhooks") for path in (ROOT / package).rglob("*.py"))

STARTS = {"Popen", "run", "call", "check_call", "check_output", "getoutput", "getstatusoutput"}
EXECUTIONS = {
    "execv", "execve", "execvp", "execvpe", "execl", "execle", "execlp", "spawnv", "spawnve", "posix_spawn", "fork",
    "create_subprocess_exec", "create_subprocess_shell", "subprocess_exec", "subprocess_shell",
}  # fmt: skip

KNOWN = {
    "vcbatch/cli/local/up.py": "interpreter",
    "vcbatch/cli/run/place.py": "the Python that the user's program is run with, in its folder",
    "vcbatch/local/apiserver/schema/descriptions.py": "interpreter",
    "vcbatch/sdk/connecting.py": "interpreter",
    "vcbatch/sdk/functions/runner.py": "its own flags again, in a pod",
    "vcbatch/local/kubelet/processes.py": "isolated, without site",
    "vcbatch/local/kubelet/devices.py": "nvidia-smi, found on the PATH",
    "vcbatch/local/kubelet/supervisor/command.py": "a container's command",
    "vcbatch/local/kubelet/supervisor/main.py": "a container's command, and forks of itself",
    "vcbatch/local/kubelet/supervisor/ssh.py": "the ssh of the machine, found on the PATH",
    "vcbatch/runtime/client/exec_plugin.py": "the command that a kubeconfig names",
}
"""The modules that start something, and what."""

INTERPRETERS = {
    "vcbatch/interfaces/interpreter.py": '"-P"',
    "vcbatch/sdk/functions/runner.py": '"-P"',
    "vcbatch/local/kubelet/processes.py": '"-I", "-S"',
    "vcbatch/local/kubelet/logins.py": "{python} -I -S",
    "vcbatch/cli/run/place.py": "",  # the Python that the user's own program is run with
}
"""The modules that name this interpreter, and what they must say with it."""


def _starts(tree: ast.AST) -> set[int]:
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
            shell = of == "os" and node.func.attr in ("system", "popen")
            if shell or (of == "subprocess" and node.func.attr in STARTS) or node.func.attr in EXECUTIONS:
                found.add(node.lineno)
    return found


def test_every_start_of_a_program_is_known() -> None:
    found = {str(path.relative_to(ROOT)): lines for path in SOURCES if (lines := _starts(ast.parse(path.read_text())))}
    assert set(found) == set(KNOWN), found


def test_every_start_of_a_python_leaves_the_current_folder_out() -> None:
    naming = [path for path in SOURCES if "sys.executable" in path.read_text()]
    assert {str(path.relative_to(ROOT)) for path in naming} == set(INTERPRETERS)
    for path in naming:
        assert INTERPRETERS[str(path.relative_to(ROOT))] in path.read_text(), path


def test_modules_that_start_us_ask_the_one_that_knows_how() -> None:
    for name, what in KNOWN.items():
        if what == "interpreter":
            assert "interpreter." in (ROOT / name).read_text(), name


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A folder in which whatever is imported leaves a trace."""
    for name in ("queue", "json", "yaml", "click", "sitecustomize", "usercustomize", "ssl", "asyncio", "webhooks"):
        text = f"from pathlib import Path\nPath({str(tmp_path)!r}, 'executed-{name}').touch()\nraise SystemExit(9)\n"
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def _executed(trap: Path) -> list[str]:
    return sorted(path.name for path in trap.glob("executed-*"))


def test_our_command_executes_nothing_of_the_current_folder(trap: Path) -> None:
    done = subprocess.run(
        interpreter.vcbatch("config", "show"), cwd=trap, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, _executed(trap)) == (0, []), done.stderr
    assert "actions:" in done.stdout


def test_the_module_executes_nothing_of_the_current_folder(trap: Path) -> None:
    """`python -m vcbatch`, as people type it."""
    done = subprocess.run(
        [sys.executable, "-m", "vcbatch", "config", "show"],
        cwd=trap, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, _executed(trap)) == (0, []), done.stderr


def test_a_function_of_ours_executes_nothing_of_the_current_folder(trap: Path) -> None:
    done = subprocess.run(
        interpreter.function("json", "loads", "7"), cwd=trap, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, _executed(trap)) == (0, []), done.stderr


def test_a_package_that_is_not_installed_is_found(trap: Path) -> None:
    """As in a checkout that nobody has installed: without `site` the interpreter knows nothing of us."""
    main = interpreter.vcbatch()[-1]
    code = f"import runpy; runpy.run_path({main!r})['_only_our_own_path'](); import vcbatch; print(vcbatch.__file__)"
    done = subprocess.run(
        [sys.executable, "-P", "-S", "-c", code], cwd=trap, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout.strip(), _executed(trap)) == (str(ROOT / "vcbatch" / "__init__.py"), []), done.stderr
