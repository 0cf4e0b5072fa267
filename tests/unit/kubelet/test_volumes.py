"""Projected volumes change in one step, and nothing of a volume leads out of it."""

from __future__ import annotations

import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vcbatch.interfaces.processes import BindMount
from vcbatch.local.kubelet.environment import ConfigError, PodFacts
from vcbatch.local.kubelet.links import place, remove
from vcbatch.local.kubelet.volumes import (
    File,
    Sources,
    VolumeError,
    bind_mounts,
    prepare,
    project,
    references,
    write_files,
)

POD = {"metadata": {"name": "p", "namespace": "n", "uid": "u", "labels": {"a": "b"}}, "spec": {}}
SOURCES = Sources(
    config_map={"m": {"k": b"v", "l": b"w"}}.get,
    secret={"s": {"k": b"\x00\xff"}}.get,
    facts=PodFacts(node_name="n", host_ip="h", pod_ip="i", allocatable={}),
)
names = st.sampled_from(["a", "b", "c", "d/e", "d/f", "g/h/i"])
contents = st.dictionaries(names, st.tuples(st.binary(max_size=20), st.sampled_from([0o644, 0o600, 0o400])))


def seen(directory: Path) -> dict[str, tuple[bytes, int]]:
    """What a container finds by walking from the top-level names."""
    found: dict[str, tuple[bytes, int]] = {}
    for top in directory.iterdir():
        if top.name.startswith(".."):
            continue
        for path in [top] if top.is_file() else [p for p in top.rglob("*") if p.is_file()]:
            name = str(path.relative_to(directory))
            found[name] = (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
    return found


@settings(max_examples=60)
@given(st.lists(contents, min_size=1, max_size=5))
def test_a_volume_holds_exactly_the_latest_files(versions: list[dict[str, tuple[bytes, int]]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name) / "volume"
        for version in versions:
            files = [File(path=path, data=data, mode=mode) for path, (data, mode) in version.items()]
            write_files(directory, files)
            assert seen(directory) == version
            assert not write_files(directory, files), "the same again changes nothing"
        assert len([p for p in directory.iterdir() if p.name.startswith("..") and not p.is_symlink()]) == 1


@pytest.mark.parametrize(
    ("volume", "want"),
    [
        ({"configMap": {"name": "m"}}, {"k": b"v", "l": b"w"}),
        ({"configMap": {"name": "m", "items": [{"key": "k", "path": "x/y"}]}}, {"x/y": b"v"}),
        ({"secret": {"secretName": "s"}}, {"k": b"\x00\xff"}),
        ({"configMap": {"name": "none", "optional": True}}, {}),
        ({"downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}}, {"l": b'a="b"'}),
        (
            {"projected": {"sources": [{"configMap": {"name": "m"}}, {"secret": {"name": "s"}}]}},
            {"k": b"\x00\xff", "l": b"w"},
        ),
    ],
)  # fmt: skip
def test_what_a_volume_holds(volume: dict, want: dict[str, bytes]) -> None:
    assert {file.path: file.data for file in project(POD, {"name": "v", **volume}, SOURCES)} == want


@pytest.mark.parametrize(
    ("volume", "error"),
    [
        ({"configMap": {"name": "none"}}, 'configmap "none" not found'),
        ({"secret": {"secretName": "s", "items": [{"key": "z", "path": "z"}]}}, "non-existent config key: z"),
        ({"configMap": {"name": "m", "items": [{"key": "k", "path": "../x"}]}}, "must be relative"),
        ({"configMap": {"name": "m", "items": [{"key": "k", "path": "/x"}]}}, "must be relative"),
        ({"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}, "serviceAccountToken is not available"),
    ],
)
def test_what_a_volume_cannot_hold(volume: dict, error: str) -> None:
    with pytest.raises((VolumeError, ConfigError), match=error):
        project(POD, {"name": "v", **volume}, SOURCES)


def test_a_sub_path_never_leads_outside(tmp_path: Path) -> None:
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / "link").symlink_to("/etc")
    (tmp_path / "v" / "out").symlink_to(tmp_path / "elsewhere")
    for sub_path in ("../x", "/etc", "link", "link/passwd", "out/new", "a/../../x"):
        container = {"name": "c", "volumeMounts": [{"name": "v", "mountPath": "/m", "subPath": sub_path}]}
        with pytest.raises(ConfigError):
            bind_mounts(container, {"v": tmp_path / "v"}, {})
    assert [path.name for path in tmp_path.iterdir()] == ["v"]


def test_a_sub_path_may_come_from_a_variable(tmp_path: Path) -> None:
    container = {"name": "c", "volumeMounts": [{"name": "v", "mountPath": "/m/", "subPathExpr": "$(POD)/out"}]}
    (mount,) = bind_mounts(container, {"v": tmp_path}, {"POD": "p-0"})
    assert mount == BindMount(source=tmp_path / "p-0" / "out", target="/m")


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ({"path": "/not/there"}, "no such file or directory"),
        ({"path": "/etc", "type": "File"}, "hostPath type check failed: /etc is not a file"),
        ({"path": "/etc/passwd", "type": "Directory"}, "is not a directory"),
    ],
)
def test_host_paths_are_checked(tmp_path: Path, source: dict, error: str) -> None:
    with pytest.raises(VolumeError, match=error):
        prepare({"name": "v", "hostPath": source}, pod_directory=tmp_path, memory_directory=tmp_path)


def test_a_host_path_depends_on_nobodys_working_directory(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="hostPath 'data' must be absolute"):
        prepare({"name": "v", "hostPath": {"path": "data"}}, pod_directory=tmp_path, memory_directory=tmp_path)


def test_every_object_that_a_pod_reads_is_known() -> None:
    variable = {"name": "K", "valueFrom": {"secretKeyRef": {"name": "s3", "key": "k"}}}
    spec = {
        "volumes": [
            {"name": "a", "configMap": {"name": "c1"}},
            {"name": "b", "projected": {"sources": [{"secret": {"name": "s1"}}]}},
            {"name": "d", "secret": {"secretName": "s2"}},
            {"name": "e", "emptyDir": {}},
        ],
        "containers": [{"name": "x", "envFrom": [{"configMapRef": {"name": "c2"}}]}],
        "initContainers": [{"name": "y", "env": [variable]}],
    }  # fmt: skip
    assert references(spec) == {
        ("configmap", "c1"), ("configmap", "c2"), ("secret", "s1"), ("secret", "s2"), ("secret", "s3"),
    }  # fmt: skip


def test_links_touch_nothing_that_is_there(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (tmp_path / "there").write_text("mine")
    made = place([BindMount(source=source, target=str(tmp_path / "new" / "link"))], mode="plain")
    assert (tmp_path / "new" / "link").resolve() == source
    wanted = [BindMount(source=source, target=str(tmp_path / n)) for n in ("other", "there")]
    with pytest.raises(ConfigError, match="exists on this machine"):
        place(wanted, mode="plain")
    assert not (tmp_path / "other").is_symlink(), "what was made before the refusal is taken back"
    assert (tmp_path / "there").read_text() == "mine"
    remove(made)
    assert not (tmp_path / "new" / "link").is_symlink()
