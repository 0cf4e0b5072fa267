"""Complete manifests in the documents are valid: `vcbatch lint` accepts them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = ("jobs", "gpus", "checkpoints", "multi-tenancy")
_BLOCK = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_manifests_are_valid(page: str, tmp_path: Path) -> None:
    blocks = _BLOCK.findall((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"))
    (manifest,) = (block for block in blocks if block.startswith("apiVersion:"))
    (tmp_path / "manifest.yaml").write_text(manifest, encoding="utf-8")
    command = [sys.executable, "-m", "vcbatch", "lint", "--strict", "-f", str(tmp_path / "manifest.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_configuration_for_several_teams_is_valid(tmp_path: Path) -> None:
    blocks = _BLOCK.findall((ROOT / "docs" / "multi-tenancy.md").read_text(encoding="utf-8"))
    (text,) = (block for block in blocks if block.startswith("actions:"))
    (tmp_path / "policy.yaml").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "vcbatch", "config", "check", str(tmp_path / "policy.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in done.stdout + done.stderr
