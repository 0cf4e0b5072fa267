"""What is in the image: its size, its user, its labels, and nothing that isn't needed."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.image.build import LABELS, REPOSITORY
from tests.image.containers import UID, Image

pytestmark = pytest.mark.image

_LIMIT = 300_000_000
_ADDED_LIMIT = 170_000_000
"""What is added to the base, which may be larger than that of the tests."""


def distributions(root: Path) -> dict[str, str]:
    """The versions of what is installed beside vcbatch's interpreter, by normalized name."""
    found = {}
    for folder in root.glob("opt/vcbatch/lib/python3*/site-packages/*.dist-info"):
        name, _, version = folder.name.removesuffix(".dist-info").rpartition("-")
        found[normal(name)] = version
    return found


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def files(root: Path, *, folders: bool = False) -> Iterator[Path]:
    """All files below, and with `folders` all folders, too."""
    for folder, inner, names in os.walk(root):
        yield from (Path(folder, name) for name in (*names, *(inner if folders else ())))


def test_it_is_small(image: Image):
    base, *added = image.layers()
    print(f"unpacked: {(base + sum(added)) / 1e6:.0f} MB, of which {sum(added) / 1e6:.0f} MB on top of the base")
    assert base + sum(added) < _LIMIT
    assert sum(added) < _ADDED_LIMIT


def test_it_runs_vcbatch_as_a_user_without_rights(image: Image):
    config = image.config()
    assert config["User"] == f"{UID}:{UID}"
    assert config["Entrypoint"] == ["/opt/vcbatch/bin/vcbatch"]
    launcher = image.root() / "opt/vcbatch/bin/vcbatch"
    assert launcher.read_bytes().startswith(b"#!/opt/vcbatch/bin/python -I")
    assert launcher.stat().st_mode & 0o777 == 0o755


def test_no_file_runs_with_anothers_rights(image: Image):
    root = image.root()
    modes = ((path, path.lstat().st_mode) for path in files(root))
    risky = [str(path) for path, mode in modes if stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID)]
    assert risky == []


def test_the_user_owns_and_may_write_nothing(image: Image):
    found = {path: path.lstat() for path in files(image.root() / "opt", folders=True)}
    assert image.root() / "opt/vcbatch/bin/vcbatch" in found
    for path, state in found.items():
        assert state.st_uid == 0, path
        assert stat.S_ISLNK(state.st_mode) or not state.st_mode & 0o022, path


def test_its_labels_come_from_build_arguments(image: Image):
    labels = image.config()["Labels"]
    for argument, value in LABELS.items():
        assert labels[f"org.opencontainers.image.{argument.lower()}"] == value
    assert labels["org.opencontainers.image.title"] == "vcbatch"
    assert labels["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert labels["org.opencontainers.image.base.name"] == "docker.io/library/python:3.13-slim"


def test_what_only_builds_and_tests_need_is_not_in_it(image: Image):
    root = image.root()
    (site,) = root.glob("opt/vcbatch/lib/python3*/site-packages")
    inside = {path.relative_to(site) for path in site.rglob("*")}
    assert not [path for path in inside if path.name in {"tests", "test"} and (site / path).is_dir()]
    assert not [path for path in inside if path.suffix in {".pyi", ".h", ".c", ".a"}]
    names = {path.name for path in files(root / "opt")}
    assert not names & {"pyproject.toml", "constraints.txt", "Dockerfile", "Makefile", ".git"}
    assert not list(root.rglob(".git"))
    assert not (root / "build").exists()
    assert not list(root.glob("**/*-packages/pip"))
    assert sorted(path.name for path in (root / "opt/vcbatch/bin").iterdir() if not path.is_symlink()) == ["vcbatch"]


def test_licenses_and_metadata_stay(image: Image):
    for folder in image.root().glob("opt/vcbatch/lib/python3*/site-packages/*.dist-info"):
        assert (folder / "METADATA").is_file()
    assert list(image.root().glob("opt/vcbatch/lib/python3*/site-packages/numpy-*.dist-info/licenses/*"))


def test_each_distribution_is_pinned(image: Image):
    pins = dict(line.split("==") for line in (REPOSITORY / "constraints.txt").read_text().splitlines() if line)
    pinned = {normal(name): version for name, version in pins.items()}
    installed = distributions(image.root())
    assert installed.pop("vcbatch")
    assert {"aiohttp", "kopf", "numpy", "uvicorn"} <= set(installed)
    assert {name: pinned.get(name) for name in installed} == installed


def test_its_modules_are_compiled(image: Image):
    (site,) = image.root().glob("opt/vcbatch/lib/python3*/site-packages")
    for package in ("vcbatch", "webhooks", "kopf", "aiohttp", "numpy"):
        sources = list((site / package).rglob("*.py"))
        assert sources, package
        for source in sources:
            assert list((source.parent / "__pycache__").glob(f"{source.stem}.cpython-*.pyc")), source


def test_its_bill_of_materials_names_all_that_is_installed(image: Image, tmp_path: Path):
    written = tmp_path / "sbom.json"
    script = REPOSITORY / "image/sbom.py"
    subprocess.run([sys.executable, script, "--output", written, image.archive], check=True)
    document = json.loads(written.read_text())
    components = document["components"]
    python = {one["purl"] for one in components if one["purl"].startswith("pkg:pypi/")}
    assert python == {f"pkg:pypi/{name}@{version}" for name, version in distributions(image.root()).items()}
    status = (image.root() / "var/lib/dpkg/status").read_text()
    packages = set(re.findall(r"^Package: (\S+)$", status, re.MULTILINE))
    assert packages == {one["name"] for one in components if one["purl"].startswith("pkg:deb/")}
    assert len({one["bom-ref"] for one in components}) == len(components)
    assert document["metadata"]["component"]["version"] == LABELS["VERSION"]
