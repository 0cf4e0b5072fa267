"""The programs that the image is built with, and what the build is given. These need no container."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import re
import shutil
import stat
import subprocess
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import pytest

from image import finish, listing, sbom, slim
from image.requirements import UnknownExtraError, requirements
from tests.image import base
from tests.image.build import DOCKERFILE, REPOSITORY, context, extras
from tests.support.caches import digest, made_once, tree_digest


def project() -> dict[str, Any]:
    return dict(tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"])


# -- what the build is given ------------------------------------------------------------------------------------------


def test_the_dockerfile_installs_extras_that_exist():
    wanted = extras(DOCKERFILE.read_text())
    assert {"webhooks"} <= set(wanted) <= set(project()["optional-dependencies"])


def test_the_base_of_the_tests_has_the_name_of_the_dockerfiles():
    assert re.findall(r"^ARG BASE=(\S+)$", DOCKERFILE.read_text(), re.MULTILINE) == [base.NAME]


def test_the_context_holds_what_the_wheel_is_built_from():
    names = context((REPOSITORY / ".dockerignore").read_text())
    assert all((REPOSITORY / name).exists() for name in names)
    hatch = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    wanted = [*hatch["packages"], *hatch["force-include"], project()["readme"], *project()["license-files"]]
    for name in wanted:
        assert name.split("/")[0] in names, name
    assert not {"tests", "docs", ".git"} & set(names)


def test_no_component_needs_the_official_client():
    """It would be a third of the image."""
    assert not [name for name in requirements(project(), extras(DOCKERFILE.read_text())) if "kubernetes" in name]


# -- requirements -----------------------------------------------------------------------------------------------------


def test_extras_may_name_each_other():
    made = {
        "name": "Vcbatch",
        "dependencies": ["click>=8"],
        "optional-dependencies": {"all": ["vcbatch[a, b]"], "a": ["x", "vcbatch[all]"], "b": ["y[z]", "click>=8"]},
    }
    assert requirements(made, ["all"]) == ["click>=8", "x", "y[z]"]
    assert requirements(made, []) == ["click>=8"]
    with pytest.raises(UnknownExtraError, match="no extra 'c'; there are: a, all, b"):
        requirements(made, ["a", "c"])


# -- slim and finish --------------------------------------------------------------------------------------------------


def write(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")


def test_slim_leaves_what_is_imported_and_the_licenses(tmp_path: Path):
    site = tmp_path / "lib/python3.13/site-packages"
    kept = ["a/__init__.py", "a/tests.py", "a/testing/__init__.py", "a/data.json", "tests/__init__.py",
            "a-1.dist-info/METADATA", "a-1.dist-info/entry_points.txt", "a-1.dist-info/licenses/LICENSE"]  # fmt: skip
    gone = ["a/tests/test_a.py", "a/b/test/c.py", "a/x.pyi", "a/x.h", "a-1.dist-info/RECORD", "numpy/_core/include/n"]
    write(site, *kept, *gone)
    write(tmp_path / "bin", "python", "python3.13", "vcbatch", "uvicorn")
    assert slim.main(tmp_path) == 0
    left = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    assert left == set(kept)
    assert list((site / "a/__pycache__").glob("tests.*.pyc"))
    assert sorted(path.name for path in (tmp_path / "bin").iterdir()) == ["python", "python3.13", "vcbatch"]


def test_slim_says_what_is_no_folder_of_packages(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert slim.main(tmp_path) == 1
    assert "site-packages" in capsys.readouterr().err


def test_compiled_modules_are_not_compared_with_their_source(tmp_path: Path):
    site = tmp_path / "lib/python3.13/site-packages"
    write(site, "a.py")
    assert slim.compile_packages(site)
    (compiled,) = site.glob("__pycache__/a.*.pyc")
    assert compiled.read_bytes()[4:8] == b"\x01\0\0\0"  # PEP 552: hash-based, not checked


def test_privileged_files_are_found(tmp_path: Path):
    write(tmp_path, "plain", "in/owner", "group")
    (tmp_path / "in/owner").chmod(0o4755)
    (tmp_path / "group").chmod(0o2755)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder").chmod(0o2755)
    assert sorted(finish.privileged(tmp_path)) == [tmp_path / "group", tmp_path / "in/owner"]


def test_the_user_is_named_once(tmp_path: Path):
    (tmp_path / "passwd").write_text("root:x:0:0:root:/root:/bin/bash\n")
    for _ in range(2):
        finish.name_user(tmp_path, 10001)
    assert (tmp_path / "passwd").read_text().splitlines()[1:] == [
        "vcbatch:x:10001:10001:vcbatch:/tmp:/usr/sbin/nologin"
    ]
    assert (tmp_path / "group").read_text() == "vcbatch:x:10001:\n"


# -- bill of materials ------------------------------------------------------------------------------------------------


def archive(path: Path, *layers: dict[str, str], config: dict[str, Any] | None = None) -> Path:
    """An OCI archive with these layers; a name that ends in `/` is a folder."""
    blobs: dict[str, bytes] = {}

    def blob(data: bytes) -> dict[str, str]:
        name = hashlib.sha256(data).hexdigest()
        blobs[f"blobs/sha256/{name}"] = data
        return {"digest": f"sha256:{name}"}

    manifest = {
        "config": blob(json.dumps({"config": config or {}}).encode()),
        "layers": [blob(packed(layer)) for layer in layers],
    }
    index = {"manifests": [blob(json.dumps(manifest).encode())]}
    path.write_bytes(packed({"index.json": json.dumps(index), **blobs}))
    return path


def packed(files: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            data = content if isinstance(content, bytes) else content.encode()
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


SITE = "opt/vcbatch/lib/python3.13/site-packages"
STATUS = """Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2.41-12+deb13u1

Package: gone
Status: deinstall ok config-files
Architecture: all
Version: 1
"""


def purls(document: dict[str, Any]) -> set[str]:
    return {one["purl"] for one in document["components"]}


def test_a_bill_of_materials_is_of_what_the_last_layer_leaves(tmp_path: Path):
    file = archive(
        tmp_path / "image.tar",
        {
            f"{SITE}/pip-25.dist-info/METADATA": "Name: pip\nVersion: 25\n",
            f"{SITE}/Foo_Bar-1.dist-info/METADATA": "Name: Foo_Bar\nVersion: 1\nLicense-Expression: MIT\n",
            "var/lib/dpkg/status": STATUS,
            "etc/os-release": 'ID=debian\nVERSION_ID="13"\n',
            "usr/local/bin/python3.13": "",
        },
        {
            f"{SITE}/.wh.pip-25.dist-info": "",
            f"{SITE}/vcbatch-2.dist-info/METADATA": "Name: vcbatch\nVersion: 2\nRequires-Dist: foo.bar; extra == 'x'\n",
        },
        config={"Labels": {"org.opencontainers.image.version": "2"}, "Env": ["PYTHON_VERSION=3.13.9"]},
    )
    document = sbom.document(sbom.read(file))
    assert purls(document) == {
        "pkg:pypi/vcbatch@2",
        "pkg:pypi/foo-bar@1",
        "pkg:deb/debian/libc6@2.41-12%2Bdeb13u1?arch=amd64&distro=debian-13",
        "pkg:generic/python@3.13.9",
    }
    edges = {one["ref"]: one["dependsOn"] for one in document["dependencies"]}
    assert edges["pkg:pypi/vcbatch@2"] == ["pkg:pypi/foo-bar@1"]
    assert "pkg:pypi/vcbatch@2" in edges["image"] and "pkg:pypi/foo-bar@1" not in edges["image"]
    (licensed,) = [one for one in document["components"] if "licenses" in one]
    assert licensed["licenses"] == [{"expression": "MIT"}]
    assert document == sbom.document(sbom.read(file))


def test_a_bill_of_materials_of_a_folder(tmp_path: Path):
    write(tmp_path, "usr/share/doc/METADATA", f"{SITE}/a-1.dist-info/METADATA")
    (tmp_path / SITE / "a-1.dist-info/METADATA").write_text("Name: a\nVersion: 1\n")
    assert purls(sbom.document(sbom.read(tmp_path))) == {"pkg:pypi/a@1"}


@pytest.mark.parametrize("content", [b"", b"no archive", packed({"other": "x"}), packed({"index.json": "{}"})])
def test_what_is_no_image_is_said(tmp_path: Path, content: bytes):
    (tmp_path / "image.tar").write_bytes(content)
    with pytest.raises(sbom.ImageError, match=r"image\.tar: "):
        sbom.read(tmp_path / "image.tar")


# -- list of images ---------------------------------------------------------------------------------------------------


def chart(folder: Path, values: str) -> Path:
    (folder / "Chart.yaml").write_text("appVersion: 1.2.3\n")
    (folder / "values.yaml").write_text(values)
    return folder


VALUES = """
image: {registry: '', repository: vcbatch, tag: '', digest: ''}
tests: {image: {registry: r.example, repository: other, tag: v1}}
extra: [{image: {repository: listed, tag: v2, digest: 'sha256:ab'}}, {image: text}]
none: {image: {repository: ''}}
"""


def test_each_image_of_the_values_is_listed(tmp_path: Path):
    assert listing.listed(chart(tmp_path, VALUES), []) == ["listed@sha256:ab", "r.example/other:v1", "vcbatch:1.2.3"]


def test_own_values_and_a_mirror_are_followed(tmp_path: Path):
    own = tmp_path / "own.yaml"
    own.write_text("image: {tag: v9}\ntests: {image: {repository: ''}}\nextra: []\n")
    assert listing.listed(chart(tmp_path, VALUES), [own]) == ["vcbatch:v9"]
    own.write_text("global: {imageRegistry: mirror.example/x}\nextra: []\n")
    assert listing.listed(tmp_path, [own]) == ["mirror.example/x/other:v1", "mirror.example/x/vcbatch:1.2.3"]
    assert listing.listed(tmp_path, [own], "m:5000") == ["m:5000/other:v1", "m:5000/vcbatch:1.2.3"]


@pytest.mark.parametrize("values", ["", "- a", "a: [", "image: {}"])
def test_values_without_an_image_are_an_error(tmp_path: Path, values: str):
    with pytest.raises(listing.ValuesError, match=r"values\.yaml: "):
        listing.listed(chart(tmp_path, values), [])


# -- caches -----------------------------------------------------------------------------------------------------------


def test_a_digest_is_of_names_contents_and_modes(tmp_path: Path):
    write(tmp_path, "a/x", "b")
    seen = {tree_digest(tmp_path, ["a", "b"])}
    (tmp_path / "a/x").write_text("changed")
    seen.add(tree_digest(tmp_path, ["a", "b"]))
    (tmp_path / "a/x").chmod(0o755)
    seen.add(tree_digest(tmp_path, ["a", "b"]))
    write(tmp_path, "a/y")
    seen.add(tree_digest(tmp_path, ["a", "b"]))
    assert len(seen) == 4
    write(tmp_path, "a/y.pyc")
    assert tree_digest(tmp_path, ["b", "a"]) in seen
    assert digest(["ab", "c"]) != digest(["a", "bc"])


def test_what_is_made_once_is_made_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def fail(folder: Path) -> None:
        write(folder, "half")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        made_once("kind", "key", fail)
    made = made_once("kind", "key", lambda folder: write(folder, "whole"))
    assert (made / "whole").exists() and not (made / "half").exists()
    assert made_once("kind", "key", fail) == made
    assert [path.name for path in made.parent.iterdir()] == ["key"]


def test_the_launcher_is_executable():
    """COPY keeps the mode that git knows."""
    assert stat.S_IMODE((REPOSITORY / "image/vcbatch").stat().st_mode) & 0o111
    assert importlib.util.find_spec("vcbatch.cli.main") is not None


# -- make image -------------------------------------------------------------------------------------------------------

TOOL = """#!/bin/sh
echo "$(basename "$0") $*" >> "$CALLS"
case "$0 $1" in *docker\\ info) exit "${DAEMON:-0}" ;; esac
"""


@pytest.fixture
def built(tmp_path: Path):
    """Runs build.sh with tools that only note how they were called; returns the exit status and the calls."""

    def build(tools: tuple[str, ...], *arguments: str, **variables: str) -> tuple[int, list[str]]:
        programs, calls = tmp_path / "bin", tmp_path / "calls"
        shutil.rmtree(programs, ignore_errors=True)
        programs.mkdir()
        for name in ("bash", "basename", "cat", "dirname", "git", "sed", "sh"):
            (programs / name).symlink_to(str(shutil.which(name)))
        for name in tools:
            (programs / name).write_text(TOOL)
            (programs / name).chmod(0o755)
        calls.write_text("")
        env = {"PATH": str(programs), "CALLS": str(calls), **variables}
        done = subprocess.run(
            [REPOSITORY / "image/build.sh", *(arguments or ("build",))], env=env, capture_output=True, check=False
        )
        return done.returncode, calls.read_text().splitlines()

    return build


def test_the_tool_that_works_is_chosen(built: Any):
    status, calls = built(("docker", "podman"))
    assert status == 0 and calls[-1].startswith("docker buildx build ") and " --load" in calls[-1]
    status, calls = built(("docker", "buildah"), DAEMON="1")
    assert status == 0 and calls[-1].startswith("buildah build ")
    assert built(())[0] == 1
    assert built(("podman",), TOOL="kaniko")[0] == 2
    assert built(("docker", "podman"), TOOL="podman")[1][-1].startswith("podman build ")


def test_the_labels_are_given(built: Any):
    given = {"VERSION": "1.2", "REVISION": "abc", "SOURCE": "https://s.example", "CREATED": "2026-01-01T00:00:00Z"}
    _, calls = built(("podman",), **given, BASE="b@sha256:1", EXTRAS="webhooks", IMAGE="r.example/v", TAG="t")
    for name, value in {**given, "BASE": "b@sha256:1", "EXTRAS": "webhooks"}.items():
        assert f"--build-arg {name}={value}" in calls[-1]
    assert " --tag r.example/v:t ." in calls[-1]


@pytest.mark.parametrize("tool", ["podman", "buildah"])
def test_several_platforms_make_a_manifest_list(built: Any, tool: str):
    _, calls = built((tool,), PLATFORMS="linux/amd64,linux/arm64", IMAGE="i", TAG="1", PUSH="true")
    assert " --platform linux/amd64,linux/arm64 --manifest i:1 ." in calls[-2]
    assert calls[-1] == f"{tool} manifest push --all i:1 docker://i:1"


def test_docker_is_told_where_several_platforms_go(built: Any):
    several = {"PLATFORMS": "linux/amd64,linux/arm64"}
    assert built(("docker",), **several)[0] == 2
    assert " --push --platform linux/amd64,linux/arm64 " in built(("docker",), **several, PUSH="true")[1][-1]
    status, calls = built(("docker",), **several, ARGS="--output=type=oci,dest=f")
    assert status == 0 and " --output=type=oci,dest=f " in calls[-1] and "--load" not in calls[-1]


@pytest.mark.parametrize(
    ("tool", "call"),
    [
        ("docker", "docker save --output f i:1"),
        ("podman", "podman save --quiet --format oci-archive --output f i:1"),
        ("buildah", "buildah push --quiet i:1 oci-archive:f:i:1"),
    ],
)
def test_the_image_is_saved(built: Any, tool: str, call: str):
    status, calls = built((tool,), "save", "f", IMAGE="i", TAG="1")
    assert status == 0 and calls[-1] == call
