"""Each way to install the package gives programs that start a server and run a job, without any extra."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from vcbatch.cli.commands import COMMANDS
from vcbatch.cli.vcctl.commands import PROGRAMS

ROOT = Path(__file__).parents[2]
CONSTRAINTS = ROOT / "constraints.txt"

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(1200)]


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV", "KUBE"))}
    done = subprocess.run(
        command, cwd=cwd, env={**kept, **variables}, capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the repository: what git doesn't ignore."""
    copy = tmp_path_factory.mktemp("source") / "vcbatch"
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    return copy


def environment(directory: Path) -> Path:
    """A new virtual environment; the directory of its programs."""
    venv.create(directory, with_pip=True, symlinks=True)
    return directory / "bin"


def pip(checkout: Path, folder: Path) -> Path:
    programs = environment(folder / "venv")
    run(programs / "python", "-m", "pip", "install", "-q", "-c", CONSTRAINTS, ".", cwd=checkout)
    return programs


def wheel(checkout: Path, folder: Path) -> Path:
    programs = environment(folder / "venv")
    run(programs / "python", "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ".", cwd=checkout)
    (built,) = folder.glob("vcbatch-*.whl")
    run(programs / "python", "-m", "pip", "install", "-q", "-c", CONSTRAINTS, built, cwd=folder)
    return programs


def pipx(checkout: Path, folder: Path) -> Path:
    tools = environment(folder / "tools")
    run(tools / "python", "-m", "pip", "install", "-q", "pipx", cwd=folder)
    programs = folder / "bin"
    given = f"--pip-args=-c {CONSTRAINTS}"
    places = {"PIPX_HOME": str(folder / "pipx"), "PIPX_BIN_DIR": str(programs), "PIPX_DEFAULT_PYTHON": sys.executable}
    run(tools / "pipx", "install", given, ".", cwd=checkout, **places)
    return programs


def uv(checkout: Path, folder: Path) -> Path:
    tools = environment(folder / "tools")
    run(tools / "python", "-m", "pip", "install", "-q", "uv", cwd=folder)
    programs = folder / "bin"
    places = {
        "UV_TOOL_DIR": str(folder / "uv"),
        "UV_TOOL_BIN_DIR": str(programs),
        "UV_CACHE_DIR": str(folder / "cache"),
    }
    run(
        tools / "uv",
        "tool",
        "install",
        "-q",
        "--python",
        sys.executable,
        "-c",
        CONSTRAINTS,
        ".",
        cwd=checkout,
        **places,
    )
    return programs


@pytest.mark.parametrize("way", [pip, wheel, pipx, uv])
def test_an_installation_runs_a_job(way: Callable[[Path, Path], Path], checkout: Path, tmp_path: Path) -> None:
    programs = way(checkout, tmp_path)
    vcbatch = programs / "vcbatch"
    empty = tmp_path / "empty"
    empty.mkdir()

    assert (programs / "kubectl-vcbatch").exists()
    assert not [name for name in PROGRAMS if (programs / name).exists()]
    for name in COMMANDS:
        assert f"Usage: vcbatch {name}" in run(vcbatch, name, "--help", cwd=empty)
    assert run(vcbatch, "examples", "anything", cwd=empty) == (ROOT / "examples/anything.yaml").read_text()
    assert "kind: CustomResourceDefinition" in run(vcbatch, "crds", cwd=empty)
    assert "kind: Deployment" in run(vcbatch, "install", "--print", cwd=empty)

    state: Mapping[str, str] = {"XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path)}
    run(vcbatch, "up", "--detach", "--port", "0", cwd=empty, **state)
    try:
        reached = {**state, "KUBECONFIG": str(tmp_path / "state/vcbatch/kubeconfig")}
        assert run(vcbatch, "run", "--", "echo", "hello", cwd=empty, **reached) == "hello\n"
    finally:
        run(vcbatch, "down", cwd=empty, **state)
